import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgespec.text.sanitize import Sanitizer, clean

# format characters that are drawn: signs in front of Arabic, Syriac and Kaithi numbers, and the
# controls that lay out hieroglyphs
DRAWN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}
DRAWN |= set(range(0x13430, 0x13440))
JOINERS = "\u200c\u200d"
FILLERS = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
# what Unicode wants ignored where it is not known (Default_Ignorable_Code_Point), but for joiners
# and variation selectors
IGNORABLE = (
    *map(ord, FILLERS), 0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F),
    *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF0, 0xFFF9), *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE0100), *range(0xE01F0, 0xE1000),
)  # fmt: skip
NASTY = (
    "\x1b\x9b\x9d\x90\x98\x9c\x9e\x9f[]PX^_\\\x07\x18\x1a\r\n\t\x00\x7f\x85\u2028\u2029\u202e\u2066"
    "\u200b\u200d\ufe0f\u00ad\ufeff\ud800\udfff\U000e0041;05m?!é字👍 (#~"
)
hostile = st.text(st.one_of(st.sampled_from(NASTY), st.characters(exclude_categories=[])))
sizes = st.lists(st.integers(0, 5), max_size=40)


def in_pieces(text: str, lengths: list[int]) -> str:
    sanitizer, shown, at = Sanitizer(), "", 0
    for length in [*lengths, len(text)]:
        shown += sanitizer.feed(text[at : at + length])
        at += length
    return shown + sanitizer.flush()


def allowed(char: str) -> bool:
    if char in "\n\t" or char in JOINERS or ord(char) in DRAWN:
        return True
    return unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}


@settings(deadline=None)
@given(hostile, sizes)
@example("a\r\nb", [2])
@example("\x1b]0;title\x1b\\x", [3, 5, 2, 1])
def test_how_the_text_is_cut_makes_no_difference(text, lengths):
    assert in_pieces(text, lengths) == clean(text)


@settings(deadline=None)
@given(hostile)
def test_nothing_forbidden_is_ever_shown(text):
    assert all(map(allowed, clean(text)))
    assert not set(clean(text, one_line=True)) & set("\n\t")


@settings(deadline=None)
@given(hostile)
def test_clean_text_stays_as_it_is(text):
    once = clean(text)
    assert clean(once) == once
    line = clean(text, one_line=True)
    assert clean(line, one_line=True) == line


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"], exclude_characters=FILLERS)))
def test_ordinary_text_of_any_language_passes_unchanged(text):
    assert clean(text) == text


def test_nothing_that_cannot_be_seen_is_shown():
    shown = [f"U+{code:04X}" for code in IGNORABLE if clean(f"a{chr(code)}b") != "ab"]
    assert not shown


def test_every_control_and_format_character_of_unicode_is_judged_right():
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.category(char) in {"Cc", "Cf", "Cs"}:
            shown = clean(f"a{char}")
            expected = "a\n" if char == "\r" else f"a{char}" if allowed(char) else "a"
            assert shown == expected, f"U+{code:04X}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred\x1b[0mb", "aredb"),
        ("a\x1b[2J\x1b[H\x1b[?1049hb", "ab"),
        ("a\x1b]52;c;cm0gLXJmIC8=\x07b", "ab"),  # writes to the clipboard
        ("a\x1b]52;c;cm0gLXJmIC8=\x1b\\b", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bPq#0;2;0;0;0\x1b\\b", "ab"),
        ("a\x1b_Gf=24;AAAA\x1b\\b\x1b^x\x1b\\c\x1bXy\x1b\\d", "abcd"),
        ("a\x9b31mb", "ab"),
        ("a\x9d52;c;evil\x9cb", "ab"),
        ("a\x90q\x9cb\x98q\x9cc\x9eq\x9cd\x9fq\x9ce", "abcde"),
        ("a\x1bcb\x1b(0c\x1b#8d", "abcd"),
        ("a\x1b", "a"),
        ("a\x1b\x1b[31mb", "ab"),
        ("a\x1béb", "aéb"),
        ("a\x1b[31\x1b[0mb", "ab"),
        ("a\x1b]0;x\x18b\x1b]0;x\x1ac", "abc"),
        ("a\x07\x08\x0b\x0c\x7f\x85b", "ab"),
    ],
)
def test_no_part_of_an_escape_sequence_is_shown(text, shown):
    assert clean(text) == shown
    assert in_pieces(text, [1] * len(text)) == shown


@pytest.mark.parametrize("text", ["a\r\nb", "a\rb", "a\nb", "a\u2028b", "a\u2029b"])
def test_every_kind_of_line_end_becomes_one_newline(text):
    assert clean(text) == "a\nb"
    assert in_pieces(text, [1] * len(text)) == "a\nb"


def test_two_returns_are_two_lines():
    assert clean("a\r\r\n\r\nb") == "a\n\n\nb"


def test_bidi_tricks_and_hidden_tags_are_taken_out():
    assert clean("pay\u202eeval\u202c \u2066x\u2069\u200e\u200f\u061c") == "payeval x"
    assert clean("ok" + "".join(chr(0xE0000 + ord(c)) for c in "ignore all")) == "ok"
    assert clean("soft\u00adhy\ufeffphen\u200b\u2060") == "softhyphen"


@pytest.mark.parametrize(
    "text", ["👩\u200d🚀", "❤\ufe0f", "\u0645\u06cc\u200c\u062e", "क्\u200dष", "葛\U000e0100"]
)
def test_joiners_and_variation_selectors_stay(text):
    assert clean(text) == text


def test_half_a_surrogate_pair_is_dropped_even_if_the_other_half_follows():
    assert in_pieces("a\ud83d\udc4db", [2]) == "ab"


def test_a_body_without_end_stops_at_the_line_end():
    assert clean("a\x1b]0;never closed\nnext line") == "a\nnext line"
    assert clean("a\x1b]0;never closed\r\nnext line") == "a\nnext line"


def test_a_body_without_end_swallows_at_most_4096_characters():
    assert clean("a\x1b]" + "x" * 4095 + "yz") == "ayz"
    assert clean("a\x1b[" + "1" * 5000) == "a" + "1" * (5000 - 4095)


def test_an_unfinished_sequence_does_not_reach_into_the_next_stream():
    sanitizer = Sanitizer()
    sanitizer.feed("a\x1b]0;tit")
    assert sanitizer.flush() == ""
    assert sanitizer.feed("le") == "le"


def test_one_line_turns_line_ends_and_tabs_into_spaces():
    assert clean("evil\r\nname\twith\u2028lines", one_line=True) == "evil name with lines"


@pytest.mark.parametrize("unit", ["abcd", "\x1b[0m", "\x1b]0;", "\x9dxyz", "\r\n\r\n"])
def test_a_megabyte_in_small_pieces_costs_twice_what_half_of_it_costs(unit):
    def work(pieces: int) -> int:
        count = 0

        def profile(frame, event, arg):
            nonlocal count
            count += event in ("call", "c_call")

        sanitizer, before = Sanitizer(), sys.getprofile()
        sys.setprofile(profile)
        try:
            for _ in range(pieces):
                sanitizer.feed(unit)
        finally:
            sys.setprofile(before)
        return count

    assert work(20_000) <= 2 * work(10_000) + 10


def test_a_megabyte_of_text_in_pieces_of_four_passes_whole():
    sanitizer = Sanitizer()
    assert sum(len(sanitizer.feed("abcd")) for _ in range(250_000)) == 1_000_000
