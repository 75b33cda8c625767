"""The text model of the chat: wrapping, re-wrapping and extraction."""

from __future__ import annotations

import pytest
from counting import calls
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from edgespec.tui.blocks import BlockContent
from edgespec.tui.layout import Manner
from edgespec.tui.transcript import Mark, Place, Transcript, Voice

TEXTS = st.text(
    alphabet=st.sampled_from("ab  \n-.éß漢字、。🙂\u0301\u200d\ufe0f👩🚀"), min_size=1, max_size=60
)


def begun(width: int, voice: Voice = Voice.ANSWER) -> Transcript:
    transcript = Transcript(width)
    transcript.begin(BlockContent(1, voice, whole=False))
    return transcript


def written(width: int, *tokens: str) -> Transcript:
    transcript = begun(width)
    for token in tokens:
        transcript.append(token)
        assert transcript.rows  # so that they grow, and are not laid out once at the end
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
    transcript = begun(8)
    transcript.append("one two", Mark.ACCEPTED)
    transcript.append(" three", Mark.BONUS)
    assert [row.runs for row in transcript.rows] == [
        [("one two", Mark.ACCEPTED), (" ", Mark.BONUS)],
        [("three", Mark.BONUS)],
    ]


def test_blocks_stand_apart_but_notes_do_not() -> None:
    transcript = Transcript(20)
    for voice in (Voice.NOTE, Voice.NOTE, Voice.USER):
        transcript.say(voice, voice.value)
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
    transcript.set_manner(Manner(second))
    assert transcript.rows == written(second, text).rows


def test_a_full_row_never_changes_while_text_is_added() -> None:
    transcript = written(12, "")
    for number in range(50):
        before = lines(transcript)[:-1]
        transcript.append(f" w{number}" * (number % 3))
        assert lines(transcript)[: len(before)] == before


@pytest.mark.parametrize("piece", ["x", " ", "\u0301", "漢", "e\u0301 "])
def test_a_very_long_line_costs_twice_what_half_of_it_costs(piece: str) -> None:
    def write(tokens: int) -> None:
        transcript = written(80, "")
        for _ in range(tokens):
            transcript.append(piece)
        assert transcript.rows[-1].length <= 16 * 80

    half = calls(lambda: write(2 * 16 * 80))  # full rows, of characters without a width too
    assert calls(lambda: write(4 * 16 * 80)) < 2.2 * half


def test_extraction_joins_wrapped_rows_and_keeps_real_line_ends() -> None:
    transcript = written(10, "a quick brown fox\njumps")
    assert lines(transcript) == ["a quick ", "brown fox", "jumps"]
    assert transcript.text(Place(0, 2), Place(2, 3)) == "quick brown fox\njum"


def test_a_message_never_laid_out_is_copied_as_it_was_written() -> None:
    transcript = Transcript(10)
    for voice, text in ((Voice.USER, "a quick question"), (Voice.ANSWER, "a **quick** answer")):
        transcript.say(voice, text)
    assert transcript.text() == "a quick question\n\na **quick** answer"
    assert not transcript.blocks[0].is_laid_out(transcript.manner)
    assert transcript.text(Place(0, 2)) == "quick question\n\na **quick** answer"
    assert transcript.blocks[0].is_laid_out(transcript.manner)


def test_a_place_is_found_again_after_rewrapping() -> None:
    transcript = written(10, "a quick brown fox\njumps over the lazy dog")
    anchor = transcript.anchor(lines(transcript).index("jumps over "))
    transcript.set_manner(Manner(40))
    assert transcript.rows[transcript.find(anchor)].text == "jumps over the lazy dog"


@given(tokens=st.lists(TEXTS, min_size=1, max_size=8), width=st.integers(4, 20))
def test_every_character_that_is_shown_belongs_to_the_token_that_wrote_it(
    tokens: list[str], width: int
) -> None:
    transcript = written(width, *tokens)
    block = transcript.blocks[0]
    for row in transcript.rows:
        for column, char in enumerate(row.text):
            assert row.start is not None
            index = block.token_at(row.start + column)
            assert index is not None
            start, end = block.span_of(index)
            assert start <= row.start + column < end
            assert tokens[index][row.start + column - start] == char


def test_tokens_are_numbered_by_the_calls_that_added_them() -> None:
    transcript = written(20, "one", "", "\ttwo", "\n", "three")
    block = transcript.blocks[0]
    assert block.count == 5
    assert [block.token_at(place) for place in (0, 2, 3, 9, 10, 11)] == [0, 0, 2, 2, 3, 4]


def test_a_note_said_while_an_answer_is_written_stays_below_it() -> None:
    transcript = written(20, "an answer")
    transcript.say(Voice.NOTE, "by the way")
    transcript.append(" goes on")
    assert lines(transcript) == ["an answer goes on", "", "by the way"]


def test_a_label_stands_in_the_row_above_and_is_no_text() -> None:
    transcript = Transcript(30)
    transcript.say(Voice.USER, "why?")
    transcript.begin(BlockContent(7, Voice.ANSWER, whole=False))
    transcript.append("because")
    height = transcript.height
    transcript.label(7, "branch 2 of 3")
    assert [row.aside for row in transcript.rows] == ["", "branch 2 of 3", ""]
    assert transcript.height == height
    assert transcript.text() == "why?\n\nbecause"


@given(
    tokens=st.lists(st.text("ab  \n漢", max_size=9), max_size=4),
    rest=st.lists(st.text("ab  \n漢", max_size=9), min_size=1, max_size=3),
    width=st.integers(4, 20),
)
def test_what_belongs_to_the_last_token_is_no_token_of_its_own(
    tokens: list[str], rest: list[str], width: int
) -> None:
    grown = written(width, *tokens)
    for text in rest:
        grown.extend(text)
        assert grown.rows
    whole = written(width, *tokens[:-1], "".join([*tokens[-1:], *rest]))
    assert grown.rows == whole.rows
    assert grown.blocks[0].count == max(len(tokens), 1)
    last = grown.blocks[0].count - 1
    assert grown.blocks[0].span_of(last) == whole.blocks[0].span_of(last)


def test_a_label_of_the_first_block_has_a_row_of_its_own() -> None:
    transcript = written(30, "because")
    transcript.label(1, "cut off")
    assert [row.aside for row in transcript.rows] == ["cut off", ""]
    transcript.label(1, "")
    assert [row.aside for row in transcript.rows] == [""]


def test_only_the_rows_below_the_first_change_are_painted_anew() -> None:
    transcript = written(10, "one two three four five")
    rows = len(transcript.rows)
    transcript.take_change()
    transcript.append(" six seven")
    change = transcript.take_change()
    assert change is not None
    assert change.row == rows - 1
    assert transcript.take_change() is None


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=12),
    row=st.integers(0, 60),
    margin=st.integers(0, 12),
)
def test_what_is_near_the_window_is_laid_out_and_stands_where_it_is_said_to(
    texts: list[str], row: int, margin: int
) -> None:
    transcript = Transcript(9)
    transcript.show(BlockContent(n, Voice.USER, ((t, Mark.PLAIN),)) for n, t in enumerate(texts))
    row = min(row, transcript.height - 1)
    before = transcript.spot(row)
    assert before is not None
    now = transcript.lay_out_near(row, margin)
    after = transcript.spot(now)
    assert after is not None
    assert after.block == before.block
    near = range(max(now - margin, 0), min(now + margin, transcript.height))
    shown = {number: transcript.spot(number) for number in near}
    rows = Transcript(9)
    rows.show(BlockContent(n, Voice.USER, ((t, Mark.PLAIN),)) for n, t in enumerate(texts))
    for spot in shown.values():
        assert spot is not None
        assert transcript.blocks[spot.block].is_laid_out(transcript.manner)
        assert transcript.row(spot) == rows.rows_of(spot.block)[spot.row]
