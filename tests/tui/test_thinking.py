"""Reasoning sections: found however they come, and folded to one row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.text.thoughts import THOUGHT_MARKS
from edgespec.tui.blocks import BlockContent
from edgespec.tui.layout import Manner
from edgespec.tui.rows import Mark, Voice
from edgespec.tui.thinking import Reasoning
from edgespec.tui.transcript import Transcript

PIECES = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<thi",
            "nk>",
            "</",
            "think>",
            "\n",
            " ",
            "so",
            "[THINK]",
            "[/THINK]",
        ]
    ),
    max_size=10,
)


def found(text: str, by_prompt: bool = False) -> tuple[str | None, str]:
    """The reasoning in a text, and the answer."""
    reasoning = Reasoning(by_prompt)
    reasoning.feed(text)
    if reasoning.opened is None:
        return None, text
    if reasoning.closed is None:
        return text[reasoning.opened :], ""
    return text[reasoning.opened : reasoning.closed], text[reasoning.resumed :]


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("<think>hm</think>4", "hm", "4"),
        ("\n <think>hm</think>4", "hm", "4"),
        ("<think>hm", "hm", ""),
        ("[THINK]hm[/THINK]4", "hm", "4"),
        ("hm\n</think>\n\n4", "hm", "\n\n4"),
        ("</think>4", "", "4"),
    ],
)
def test_a_reasoning_section_stands_at_the_beginning(text: str, thought: str, answer: str) -> None:
    assert found(text) == (thought, answer)


@pytest.mark.parametrize(
    "text",
    [
        "an answer",
        "the tag <think> opens a thought",
        "write `<think>` and\n</think>\nto close it",
        "in a line, </think> closes nothing",
        "<thinly sliced>",
    ],
)
def test_tags_elsewhere_are_text(text: str) -> None:
    assert found(text) == (None, text)


@pytest.mark.parametrize(("opening", "closing"), THOUGHT_MARKS.items())
def test_every_mark_of_a_thought_is_known(opening: str, closing: str) -> None:
    assert found(f"{opening}hm{closing}4") == ("hm", "4")
    assert found(f"hm\n{closing}4") == ("hm", "4")


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("hm", "hm", ""),
        ("hm</think>4", "hm", "4"),
        ("<think>hm</think>4", "hm", "4"),
        ("</think>4", "", "4"),
        ("is `<think>` a tag?\n</think>\n4", "is `<think>` a tag?\n", "\n4"),
    ],
)
def test_where_the_prompt_opened_a_thought_the_text_begins_in_it(
    text: str, thought: str, answer: str
) -> None:
    assert found(text, by_prompt=True) == (thought, answer)


@given(pieces=PIECES, by_prompt=st.booleans())
def test_how_the_text_is_cut_into_tokens_makes_no_difference(
    pieces: list[str], by_prompt: bool
) -> None:
    text = "".join(pieces)
    at_once, in_pieces, by_characters = (Reasoning(by_prompt) for _ in range(3))
    at_once.feed(text)
    for piece in pieces:
        in_pieces.feed(piece)
    for char in text:
        by_characters.feed(char)
    places = {(r.opened, r.closed, r.resumed) for r in (at_once, in_pieces, by_characters)}
    assert len(places) == 1


def thinking(*tokens: str, whole: bool = False) -> Transcript:
    transcript = Transcript(30)
    transcript.begin(BlockContent(1, Voice.ANSWER, whole=False))
    for token in tokens:
        transcript.append(token)
    if whole:
        transcript.end(1)
    return transcript


def shown(transcript: Transcript) -> list[str]:
    return [row.text for row in transcript.rows]


def test_a_thought_is_folded_to_one_row_that_says_how_long_it_was() -> None:
    transcript = thinking("<think>", "\n", "two", " and", " two\n", "</think>", "\n\n", "4")
    assert shown(transcript) == ["▸ thought for 4 tokens", "4"]


def test_a_thought_that_goes_on_shows_its_last_row() -> None:
    transcript = thinking("<think>", "first\n", "then this")
    assert shown(transcript) == ["▸ thinking, 2 tokens so far", "then this"]


def test_a_thought_that_was_cut_off_is_folded_like_any_other() -> None:
    assert shown(thinking("<think>", "first", " then", whole=True)) == ["▸ thought for 2 tokens"]


def test_a_thought_that_the_prompt_is_known_to_have_opened_is_folded_at_once() -> None:
    transcript = thinking()
    transcript.think()
    assert shown(transcript) == [""]
    for token in ("two", "\nand three", "\n"):
        transcript.append(token)
    assert shown(transcript) == ["▸ thinking, 3 tokens so far", "and three"]
    transcript.think()
    for token in ("</think>", "4"):
        transcript.append(token)
    assert shown(transcript) == ["▸ thought for 3 tokens", "4"]


def test_what_stood_before_the_prompt_was_read_is_part_of_that_thought() -> None:
    transcript = thinking("two", " and")
    transcript.think()
    assert shown(transcript) == ["▸ thinking, 2 tokens so far", "two and"]


def test_a_thought_opened_by_the_prompt_is_folded_once_it_is_closed() -> None:
    transcript = thinking("two", "\n")
    assert shown(transcript) == ["two", ""]
    transcript.append("</think>")
    transcript.append("4")
    assert shown(transcript) == ["▸ thought for 1 token", "4"]


def test_a_tag_that_the_last_token_is_extended_by_ends_the_thought() -> None:
    transcript = thinking("<think>", "two", "\t</th")
    transcript.extend("ink>4")
    assert shown(transcript) == ["▸ thought for 2 tokens", "4"]
    assert transcript.blocks[0].count == 3


def test_unfolded_it_stands_above_the_answer() -> None:
    transcript = thinking("<think>", "two\nand two\n", "</think>", "\n4")
    transcript.set_manner(Manner(30, folded=False))
    assert shown(transcript) == ["▾ thought for 1 token", "two", "and two", "", "4"]


def test_a_thought_without_a_thought_is_not_shown() -> None:
    assert shown(thinking("<think>", "\n\n", "</think>", "\n\n", "4")) == ["4"]


def test_the_answer_is_what_stands_behind_the_thought() -> None:
    transcript = thinking("<think>", "\ta\t", "b</think>\n", "\tif x:\n", "\t\ty")
    assert transcript.blocks[0].answer == "\n\tif x:\n\t\ty"
    assert thinking("<think>", "a").blocks[0].answer == ""
    assert thinking("a", "b").blocks[0].answer == "ab"


@given(pieces=PIECES, folded=st.booleans())
def test_rows_that_grew_are_the_rows_of_the_whole(pieces: list[str], folded: bool) -> None:
    grown = Transcript(12)
    grown.set_manner(Manner(12, folded=folded))
    grown.begin(BlockContent(1, Voice.ANSWER, whole=False))
    for piece in pieces:
        grown.append(piece)
        assert grown.rows
    runs = tuple((piece, Mark.PLAIN) for piece in pieces)
    whole = Transcript(12)
    whole.set_manner(Manner(12, folded=folded))
    whole.show([BlockContent(1, Voice.ANSWER, runs, whole=False)])
    assert grown.rows == whole.rows


@given(pieces=PIECES, folded=st.booleans())
def test_what_is_painted_anew_covers_every_row_that_changed(
    pieces: list[str], folded: bool
) -> None:
    transcript = Transcript(12)
    transcript.set_manner(Manner(12, folded=folded))
    transcript.begin(BlockContent(1, Voice.ANSWER, whole=False))
    for piece in pieces:
        before = [list(row.runs) for row in transcript.rows]
        transcript.take_change()
        transcript.append(piece)
        change = transcript.take_change()
        assert change is not None
        after = [list(row.runs) for row in transcript.rows]
        assert after[: change.row] == before[: change.row]
