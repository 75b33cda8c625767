import sys

import pytest
from byte_tokenizer import ByteTokenizer, with_pieces
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgespec.errors import BadInput
from edgespec.text.stops import StopFilter, StopStrings

# two letters, so that stop strings often begin again inside themselves
letters = st.text(alphabet="ab", max_size=24)
stop_lists = st.lists(st.text(alphabet="ab", min_size=1, max_size=5), min_size=1, max_size=4)
sizes = st.lists(st.integers(1, 4), max_size=24)


def parts(text: str, lengths: list[int]) -> list[str]:
    cut, at = [], 0
    for length in lengths:
        cut.append(text[at : at + length])
        at += length
    return [*cut, text[at:]]


def up_to_stop(text: str, stops: list[str]) -> tuple[str, bool]:
    """By definition: the stop that is complete first counts, the longer one of two."""
    found = [(text.find(stop) + len(stop), text.find(stop)) for stop in stops if stop in text]
    return (text[: min(found)[1]], True) if found else (text, False)


def longest_beginning(text: str, stops: list[str]) -> int:
    """Length of the longest tail of `text` that is a proper beginning of a stop string."""
    lengths = [n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])]
    return max(lengths, default=0)


@settings(deadline=None)
@given(letters, stop_lists, sizes)
@example("aaab", ["aab"], [1, 1, 1])
@example("abab", ["abb", "ba"], [2])
@example("xab", ["b", "ab"], [])
def test_the_text_ends_before_the_first_stop_string_wherever_it_is_cut(text, stops, lengths):
    stop_filter = StopFilter(stops)
    shown = "".join(map(stop_filter.feed, parts(text, lengths))) + stop_filter.flush()
    assert (shown, stop_filter.stopped) == up_to_stop(text, stops)


@settings(deadline=None)
@given(letters, stop_lists)
def test_exactly_the_longest_possible_beginning_of_a_stop_is_held_back(text, stops):
    stop_filter = StopFilter(stops)
    seen = shown = ""
    for char in text:
        seen, shown = seen + char, shown + stop_filter.feed(char)
        if stop_filter.stopped:
            return
        assert shown == seen[: len(seen) - longest_beginning(seen, stops)]


@settings(deadline=None)
@given(
    st.text(alphabet="aé", max_size=16),
    st.lists(st.text(alphabet="aé", min_size=1, max_size=4), min_size=1, max_size=3),
    st.lists(st.integers(1, 5), max_size=20),
)
def test_the_token_that_completes_a_stop_is_the_last_one_kept(text, stops, rounds):
    tokens = list(text.encode())
    first = next(
        (
            n
            for n in range(1, len(tokens) + 1)
            if up_to_stop(bytes(tokens[:n]).decode(errors="ignore"), stops)[1]
        ),
        None,
    )
    check, done, found = StopStrings(ByteTokenizer(), stops), 0, None
    for size in [*rounds, len(tokens)]:
        keep = check.first_stop(tokens[done : done + size])
        if keep is not None:
            found = done + keep
            break
        done += size
    assert found == first


def test_a_stop_string_across_three_tokens_of_two_rounds_is_found():
    tokenizer, tokens = with_pieces([b"say EN", b"D", b"OF here", b"more"])
    check = StopStrings(tokenizer, ["ENDOF"])
    assert check.first_stop(tokens[:2]) is None
    assert check.first_stop(tokens[2:]) == 1


def test_a_stop_string_whose_emoji_is_split_between_tokens_is_found():
    data = "a🛑".encode()
    tokenizer, tokens = with_pieces([data[:3], data[3:], b"z"])
    assert StopStrings(tokenizer, ["🛑"]).first_stop(tokens) == 2


def test_nothing_is_shown_behind_a_stop():
    stop_filter = StopFilter(["."])
    assert stop_filter.feed("one. two") == "one"
    assert (stop_filter.feed("three"), stop_filter.flush()) == ("", "")


def test_without_stop_strings_everything_passes_at_once():
    stop_filter = StopFilter([])
    assert stop_filter.feed("text") == "text"
    assert StopStrings(ByteTokenizer(), []).first_stop([1, 2, 3]) is None


def test_one_string_is_one_stop_and_not_one_for_each_of_its_letters():
    stop_filter = StopFilter("END")
    assert stop_filter.feed("NEED END") == "NEED "


def test_what_was_held_back_comes_with_the_flush():
    stop_filter = StopFilter(["</s>"])
    assert stop_filter.feed("a </") == "a "
    assert stop_filter.flush() == "</"
    assert not stop_filter.stopped


@pytest.mark.parametrize("stops", [[""], ["a", ""], ""])
def test_an_empty_stop_string_is_refused(stops):
    with pytest.raises(BadInput, match="empty"):
        StopFilter(stops)
    with pytest.raises(BadInput, match="empty"):
        StopStrings(ByteTokenizer(), stops)


def calls(feed, text: str) -> int:
    """How many function calls it takes to feed `text` in pieces of four characters."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        for at in range(0, len(text), 4):
            feed(text[at : at + 4])
    finally:
        sys.setprofile(before)
    return count


def test_work_per_token_does_not_grow_with_the_answer():
    stops = ["aaaaaaab", "ba"]
    short = calls(StopFilter(stops).feed, "a" * 20_000)
    assert calls(StopFilter(stops).feed, "a" * 40_000) <= 2 * short + 10


def test_a_megabyte_without_a_newline_never_holds_back_more_than_a_stop_string():
    stop_filter, given_out = StopFilter(["aaaaaaab", "\n"]), 0
    for at in range(0, 1_000_000, 4):
        given_out += len(stop_filter.feed("aaaa"))
        assert given_out >= at + 4 - 7
