from dataclasses import replace

from byte_tokenizer import ByteTokenizer, with_pieces
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.decoding.events import Alternative, Committed, Finished, Guess, Kind, Round, Stop
from edgespec.text.narrate import Narrator
from edgespec.text.sanitize import clean
from edgespec.text.stops import StopFilter


def round_of(tokens: list[int], guesses: tuple[Guess, ...] = ()) -> Round:
    committed = tuple(Committed(token, Kind.PLAIN) for token in tokens)
    return Round(0, committed, guesses, draft_s=0.0, verify_s=0.0, round_s=0.0)


def told(pieces: list[bytes], stops: list[str] | None = None) -> list[str]:
    """The text of each token, and at the end what finishing adds."""
    tokenizer, tokens = with_pieces(pieces)
    narrator = Narrator(tokenizer, stops or [])
    texts = [narrator.round(round_of([token])).text for token in tokens]
    return [*texts, narrator.finish(Finished(Stop.LENGTH)).text]


pieces = st.lists(
    st.one_of(
        st.binary(max_size=4),
        st.sampled_from([b"\x1b", b"]52;c;", b"\x07", b"EN", b"D", b"\r", b"\n", b"ab", b"\xc2"]),
    ),
    max_size=20,
)


@settings(deadline=None)
@given(pieces, st.lists(st.sampled_from(["END", "ab", "\n\n", "\ufffd"]), max_size=2))
def test_all_texts_together_are_the_clean_answer_without_its_stop_string(data, stops):
    plain = b"".join(data).decode("utf-8", errors="replace")
    stop_filter = StopFilter(stops)
    expected = stop_filter.feed(plain) + stop_filter.flush()
    assert "".join(told(data, stops)) == clean(expected)


def test_how_tokens_fall_into_rounds_makes_no_difference():
    tokenizer, tokens = with_pieces(["é".encode()[:1], "é".encode()[1:], b"EN", b"x"])
    one_by_one = Narrator(tokenizer, ["END"])
    at_once = Narrator(tokenizer, ["END"])
    single = [one_by_one.round(round_of([token])).text for token in tokens]
    assert [item.text for item in at_once.round(round_of(tokens)).tokens] == single


def test_a_split_character_and_a_false_stop_appear_with_the_token_that_settles_them():
    euro = "€".encode()
    assert told([b"a", euro[:2], euro[2:], b"EN", b"D", b"S"], ["ENDING"]) == [
        *("a", "", "€", "", "", "ENDS", "")
    ]


def test_what_was_held_back_comes_with_the_end():
    assert told([b"so EN"], ["END"]) == ["so ", "EN"]
    assert told([b"half \xe2\x82"]) == ["half ", "\ufffd"]


def test_nothing_of_a_stop_string_is_told():
    assert told([b"so E", b"N", b"D", b" more"], ["END"]) == ["so ", "", "", "", ""]


def test_a_sequence_split_over_tokens_never_reaches_the_terminal():
    assert told([b"a\x1b", b"]", b"52;c;ev", b"il\x07", b"b"]) == ["a", "", "", "", "b", ""]
    assert told([b"a", b"\xc2", b"\x9b", b"31m", b"b"]) == ["a", "", "", "", "b", ""]


def test_end_tokens_say_nothing_even_where_the_tokenizer_has_text_for_them():
    tokenizer = ByteTokenizer(end_tokens=frozenset({ord("!")}))
    narrator = Narrator(tokenizer)
    guess = Guess(ord("!"), -1, "ngram", tested=True, accepted=True)
    told_round = narrator.round(round_of([72, ord("!")], (guess,)))
    assert told_round.text == "H"
    assert told_round.guesses[0].text == ""


def test_each_guess_shows_its_own_text_cleaned():
    tokenizer, tokens = with_pieces([b" the", b"\xe2\x82", b"\x1b[31m", b"\n"])
    guesses = tuple(Guess(token, -1, "ngram", tested=True, accepted=False) for token in tokens)
    event = Narrator(tokenizer).round(round_of([65], guesses))
    assert [guess.text for guess in event.guesses] == [" the", "\ufffd", "", "\n"]


def test_guesses_leave_no_trace_in_the_answer():
    tokenizer, (half, rest) = with_pieces([b"\xe2\x82", b"\xac"])
    narrator = Narrator(tokenizer)
    guess = Guess(half, -1, "ngram", tested=True, accepted=False)
    first = narrator.round(round_of([half], (guess,)))
    assert first.text + narrator.round(round_of([rest], (guess,))).text == "€"


def test_everything_but_the_texts_stays_as_it_was():
    event = Round(
        7, (Committed(65, Kind.ACCEPTED, "ngram"),), (), 0.1, 0.2, 0.4, plan="p", note="n"
    )
    narrated = Narrator(ByteTokenizer()).round(event)
    assert narrated.tokens == (Committed(65, Kind.ACCEPTED, "ngram", "A"),)
    assert (narrated.index, narrated.plan, narrated.note, narrated.round_s) == (7, "p", "n", 0.4)
    assert Narrator(ByteTokenizer()).finish(Finished(Stop.CONTEXT)) == Finished(Stop.CONTEXT)


@settings(deadline=None)
@given(pieces, st.lists(st.sampled_from(["END", "ab", "\n\n"]), max_size=2), st.integers(0, 20))
def test_what_follows_tokens_that_stand_goes_on_where_their_text_ends(data, stops, cut):
    tokenizer, tokens = with_pieces(data)
    narrator = Narrator(tokenizer, stops)
    begun = narrator.begun(tokens[:cut])
    rest = [narrator.round(round_of([token])).text for token in tokens[cut:]]
    assert [*begun, *rest, narrator.finish(Finished(Stop.LENGTH)).text] == told(data, stops)


def test_what_a_token_might_have_been_is_told_by_itself_and_harmless():
    tokenizer, tokens = with_pieces([b"\x1b]52;c;", b" word", "é".encode()[:1]])
    others = tuple(Alternative(token, -1.0) for token in tokens)
    item = replace(round_of(tokens[1:2]).tokens[0], logprob=-0.5, alternatives=others)
    narrator = Narrator(tokenizer)
    (token,) = narrator.round(replace(round_of([]), tokens=(item,))).tokens
    assert [other.text for other in token.alternatives] == [clean("\x1b]52;c;"), " word", "\ufffd"]
    assert (token.text, token.logprob) == (" word", -0.5)
