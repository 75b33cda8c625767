from byte_tokenizer import ByteTokenizer, cut, with_pieces
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.text.detokenize import Detokenizer

FAMILY = "👩‍👩‍👧‍👦"
borders = st.lists(st.integers(0, 200), max_size=40)


def fed(pieces: list[bytes]) -> list[str]:
    """What each piece adds, and at the end what the flush adds."""
    tokenizer, tokens = with_pieces(pieces)
    detokenizer = Detokenizer(tokenizer)
    return [*map(detokenizer.feed, tokens), detokenizer.flush()]


@settings(deadline=None)
@given(st.text(), borders)
def test_valid_text_never_shows_a_replacement_character_wherever_tokens_are_cut(text, places):
    text = text.replace("\ufffd", "")
    shown = fed(cut(text.encode(), places))
    assert "".join(shown) == text
    assert "\ufffd" not in "".join(shown)


@settings(deadline=None)
@given(st.binary(max_size=60), borders)
def test_any_bytes_give_what_decoding_them_at_once_gives(data, places):
    assert "".join(fed(cut(data, places))) == data.decode("utf-8", errors="replace")


@settings(deadline=None)
@given(st.text(min_size=1), borders)
def test_a_character_appears_with_the_token_that_completes_it(text, places):
    pieces = cut(text.encode(), places)
    so_far, shown = b"", ""
    for piece, new in zip(pieces, fed(pieces), strict=False):
        so_far, shown = so_far + piece, shown + new
        assert shown == so_far.decode("utf-8", errors="ignore")


def test_a_joined_emoji_fed_byte_by_byte_comes_out_whole_code_points():
    shown = fed([bytes([byte]) for byte in FAMILY.encode()])
    assert "".join(shown) == FAMILY
    assert [text for text in shown if text] == list(FAMILY)


def test_bytes_that_nothing_can_complete_are_replaced_at_once():
    assert fed([b"\xe2\x82", b"A"]) == ["", "\ufffdA", ""]
    assert fed([b"\xff", b"A"]) == ["\ufffd", "A", ""]


def test_an_answer_that_ends_inside_a_character_shows_it_as_replaced_only_at_the_end():
    assert fed([b"ok", "€".encode()[:2]]) == ["ok", "", "\ufffd"]


def test_control_tokens_have_no_text():
    detokenizer = Detokenizer(ByteTokenizer())
    assert [detokenizer.feed(token) for token in (65, 256, 257, 66)] == ["A", "", "", "B"]


def test_after_a_flush_nothing_of_the_old_answer_is_left():
    tokenizer, (half, letter) = with_pieces([b"\xe2\x82", b"A"])
    detokenizer = Detokenizer(tokenizer)
    detokenizer.feed(half)
    detokenizer.flush()
    assert detokenizer.feed(letter) == "A"
    assert detokenizer.flush() == ""
