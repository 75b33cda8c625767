"""Pastes told from keys, whatever they hold and however the input is cut into reads."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.tui.pasting import END, SETTLE_S, START, Pasted, PasteGuard, Piece, Typed

# pieces that make marks, torn marks and lookalikes likely
bodies = st.lists(
    st.one_of(
        st.sampled_from(
            [END, START, "\x1b", "\x1b[", "\x1b[20", "\r", "\r\n", "\x1b[13u", "~", "0"]
        ),
        # "\x1b[I" and "\x1b[<35" are reports that need not wait
        st.text(st.characters(exclude_characters="IO<"), max_size=5),
        st.just("long text " * 10),
    ),
    max_size=12,
).map("".join)
cuts = st.lists(st.integers(1, 12), max_size=20)


def reads(text: str, lengths: Sequence[int]) -> list[str]:
    """The text cut into reads of these lengths and a last one."""
    parts = []
    for length in lengths:
        parts.append(text[:length])
        text = text[length:]
    return [part for part in [*parts, text] if part]


def fed(guard: PasteGuard, parts: Sequence[str], now_s: float = 0.0) -> list[Piece]:
    return [piece for part in parts for piece in guard.feed(part, now_s)]


def pasted(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, Pasted))


def typed(pieces: Sequence[Piece]) -> str:
    """What the parser of keys gets, without the marks, which it knows."""
    text = "".join(piece.text for piece in pieces if isinstance(piece, Typed))
    return text.replace(START, "").replace(END, "")


@given(bodies, cuts)
def test_nothing_of_a_paste_is_ever_typed(body: str, lengths: list[int]) -> None:
    guard = PasteGuard()
    pieces = fed(guard, reads(START + body + END, lengths))
    assert typed(pieces) == ""
    assert guard.rested() == []
    assert typed(fed(guard, ["x"], SETTLE_S * 2)) == "x", "keys work again"


@given(bodies, cuts)
def test_a_paste_without_marks_in_it_arrives_whole_and_once(body: str, lengths: list[int]) -> None:
    body = body.replace("\x1b[20", "")
    pieces = fed(PasteGuard(), reads(START + body + END, lengths))
    assert [piece.text for piece in pieces if isinstance(piece, Pasted)] == [body] * bool(body)


@given(bodies, bodies, cuts)
def test_what_stands_behind_an_end_mark_within_a_paste_is_pasted_too(
    before: str, behind: str, lengths: list[int]
) -> None:
    before, behind = before.replace("\x1b", ""), behind.replace("\x1b", "")
    pieces = fed(PasteGuard(), reads(START + before + END + behind + END, lengths))
    assert pasted(pieces) == before + behind


@given(st.text(st.characters(exclude_characters="\x1b\r\n"), max_size=30), cuts)
def test_what_is_typed_is_passed_on_at_once_and_unchanged(text: str, lengths: list[int]) -> None:
    pieces = fed(PasteGuard(), reads(text, lengths))
    assert typed(pieces) == text
    assert pasted(pieces) == ""


@pytest.mark.parametrize("keys", ["\r", "\x1b", "\x1b[13u", "\x1b[A", "\x03"])
def test_a_key_behind_a_paste_waits_until_the_input_rests(keys: str) -> None:
    guard = PasteGuard()
    guard.feed(START + "text" + END, 0.0)
    assert guard.feed(keys, 0.1) == []
    assert guard.until_s == SETTLE_S
    assert guard.rested() == [Typed(keys)]
    assert guard.until_s is None


def test_a_read_that_comes_late_on_a_busy_machine_still_counts_as_of_the_paste() -> None:
    guard = PasteGuard()
    guard.feed(START + "text" + END, 0.0)
    assert guard.feed("evil\r", 5.0) == []
    assert guard.until_s is not None
    assert guard.until_s > 5.0
    assert fed(guard, ["more\r" + END], 5.001) == [Pasted("evil\rmore\r")]


def test_two_pastes_are_two() -> None:
    text = START + "one" + END + START + "two" + END
    assert [p.text for p in fed(PasteGuard(), [text]) if isinstance(p, Pasted)] == ["one", "two"]


def test_the_mouse_and_the_focus_need_not_wait_for_the_end_of_a_paste() -> None:
    guard = PasteGuard()
    guard.feed(START + "text" + END, 0.0)
    moved = "\x1b[<35;10;5M\x1b[<35;11;5M\x1b[I"
    assert guard.feed(moved, 0.01) == [Typed(moved)]
    assert guard.feed("\x1b[<0;10;5M", 0.02) == [], "a click does something"


def test_lines_in_one_read_are_a_paste_where_the_terminal_marks_none() -> None:
    guard = PasteGuard()
    assert guard.feed("one\rtwo\r", 0.0) == [Pasted("one\rtwo\r")]
    rest = "the rest of what was pasted, a little later\r"
    assert guard.feed(rest, 0.1) == [Pasted(rest)]
    assert guard.feed("\r", 1.0) == [Typed("\r")]


@pytest.mark.parametrize("keys", ["what is sorting?\r", "\r\x03", "a\r\x1b[<35;1;1M", "\r\r"])
def test_keys_in_one_read_stay_keys(keys: str) -> None:
    assert PasteGuard().feed(keys, 0.0) == [Typed(keys)]
