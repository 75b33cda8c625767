"""The text model of the chat: wrapping, re-wrapping and extraction."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from edgespec.tui.transcript import Mark, Place, Transcript, Voice

TEXTS = st.text(
    alphabet=st.sampled_from("ab  \n-.éß漢字、。🙂\u0301\u200d\ufe0f👩🚀"), min_size=1, max_size=60
)


def written(width: int, *tokens: str, voice: Voice = Voice.ANSWER) -> Transcript:
    transcript = Transcript(width)
    transcript.begin(voice)
    for token in tokens:
        transcript.append(token)
    return transcript


def lines(transcript: Transcript) -> list[str]:
    return [row.text for row in transcript.rows]


def test_words_are_kept_whole_and_the_space_stays_on_the_upper_row() -> None:
    assert lines(written(10, "a quick", " brown", " fox")) == ["a quick ", "brown fox"]


def test_a_word_that_grows_past_the_edge_moves_down_as_a_whole() -> None:
    assert lines(written(10, "some extra", "ordinary")) == ["some ", "extraordin", "ary"]


def test_spaces_hang_over_the_edge_and_do_not_open_a_row() -> None:
    assert lines(written(5, "hello", "   ", "you")) == ["hello   ", "you"]


def test_indentation_is_kept_and_never_leaves_an_empty_row() -> None:
    assert lines(written(8, "    ", "abcdefgh")) == ["    abcd", "efgh"]


def test_wide_characters_count_two_cells_and_may_be_broken_between() -> None:
    assert lines(written(5, "漢字漢字")) == ["漢字", "漢字"]


def test_a_closing_mark_never_begins_a_row() -> None:
    assert lines(written(4, "漢字。")) == ["漢", "字。"]


def test_an_emoji_of_several_characters_is_not_cut() -> None:
    family = "👩\u200d🚀"
    assert lines(written(3, "ab", family)) == ["ab", family]


def test_marks_survive_a_break() -> None:
    transcript = Transcript(8)
    transcript.begin(Voice.ANSWER)
    transcript.append("one two", Mark.ACCEPTED)
    transcript.append(" three", Mark.BONUS)
    assert [row.runs for row in transcript.rows] == [
        [("one two", Mark.ACCEPTED), (" ", Mark.BONUS)],
        [("three", Mark.BONUS)],
    ]


def test_blocks_stand_apart_but_notes_do_not() -> None:
    transcript = Transcript(20)
    for voice in (Voice.NOTE, Voice.NOTE, Voice.USER):
        transcript.begin(voice)
        transcript.append(voice.value)
    assert lines(transcript) == ["note", "note", "", "user"]


@given(tokens=st.lists(TEXTS, max_size=8), width=st.integers(4, 20))
def test_how_text_is_cut_into_tokens_does_not_change_what_it_says(
    tokens: list[str], width: int
) -> None:
    assert written(width, *tokens).text() == "".join(tokens)


@given(tokens=st.lists(TEXTS, max_size=8), width=st.integers(4, 20))
def test_no_row_is_wider_than_the_screen_but_for_the_spaces_that_hang_over(
    tokens: list[str], width: int
) -> None:
    for row in written(width, *tokens).rows:
        assert sum(cell_len(text) for text, _ in row.runs) == row.cells
        if row.text.isascii():
            assert len(row.text.rstrip(" ")) <= width


@given(text=TEXTS, first=st.integers(4, 20), second=st.integers(4, 20))
def test_rewrapping_is_the_same_as_wrapping_afresh(text: str, first: int, second: int) -> None:
    transcript = written(first, text)
    transcript.rewrap(second)
    assert transcript.rows == written(second, text).rows


def test_a_full_row_never_changes_while_text_is_added() -> None:
    transcript = written(12, "")
    for number in range(50):
        before = lines(transcript)[:-1]
        transcript.append(f" w{number}" * (number % 3))
        assert lines(transcript)[: len(before)] == before


@pytest.mark.parametrize("piece", ["x", " ", "\u0301", "漢", "e\u0301 "])
def test_a_very_long_line_stays_cheap(piece: str) -> None:
    transcript = written(80, "")
    started = time.process_time()
    for _ in range(20_000):
        transcript.append(piece)
    assert time.process_time() - started < 3
    assert transcript.rows[-1].length <= 16 * 80


def test_extraction_joins_wrapped_rows_and_keeps_real_line_ends() -> None:
    transcript = written(10, "a quick brown fox\njumps")
    assert lines(transcript) == ["a quick ", "brown fox", "jumps"]
    assert transcript.text(Place(0, 2), Place(2, 3)) == "quick brown fox\njum"


def test_a_place_is_found_again_after_rewrapping() -> None:
    transcript = written(10, "a quick brown fox\njumps over the lazy dog")
    offset = transcript.offset_of(lines(transcript).index("jumps over "))
    transcript.rewrap(40)
    assert transcript.rows[transcript.row_at(offset)].text == "jumps over the lazy dog"
