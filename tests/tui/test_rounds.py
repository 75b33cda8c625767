# ruff: noqa: RUF001  the multiplication sign is meant
"""Rounds as rows: what each says, finding a token's round, rewriting, bounded memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from beside import ANSWER, alternatives, in_order
from fake_model import guessed, plain
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from edgespec.decoding.events import Committed, Guess, Kind, Round
from edgespec.tui.rounds import Fate, Piece, Rounds, in_view, token_text


def folded(*events: Round, key: int = 1) -> Rounds:
    rounds = Rounds()
    for event in events:
        rounds.add(key, event)
    return rounds


def test_a_row_shows_what_was_right_wrong_and_unseen_and_the_models_own_token() -> None:
    row = folded(*ANSWER).of(1)[1]
    assert [piece.label for piece in row.pieces] == ["✓ means", "✓ giving", "✗ things", "→ items"]
    unseen = folded(*in_order(guessed("a", "b", "c", "d", accepted=0))).of(1)[0]
    assert [piece.label for piece in unseen.pieces] == ["✗a", "→d", "·b", "·c"]


def test_a_bonus_token_has_a_glyph_of_its_own() -> None:
    assert folded(*ANSWER).of(1)[2].pieces[-1] == Piece(Fate.BONUS, ".", 7)


def test_a_round_without_guesses_says_why_and_one_with_guesses_who_made_how_many() -> None:
    rows = folded(*ANSWER).of(1)
    assert rows[0].summary == "plain: the text rarely repeats"
    assert rows[1].summary == "draft model ×3"
    assert rows[1].times == "1.0+4.0"


def test_a_draft_of_two_proposers_names_both() -> None:
    event = guessed("a", "b", "c", accepted=2)
    mixed = replace(event, guesses=(event.guesses[0], replace(event.guesses[1], source="ngram")))
    assert folded(mixed).of(1)[0].summary == "draft model ×1 + n-gram ×1"


def test_a_round_that_failed_to_draft_shows_the_fault() -> None:
    event = plain("a", plan="auto → plain", note="drafter 'ngram' is off: \x1b[31mValueError")
    assert folded(event).of(1)[0].summary == "drafter 'ngram' is off: \\x1b[31mValueError"


def test_branches_of_a_tree_stand_apart() -> None:
    guesses = (
        Guess(1, -1, "draft", tested=True, accepted=False, text="a"),
        Guess(2, 0, "draft", tested=False, accepted=False, text="b"),
        Guess(3, -1, "draft", tested=True, accepted=True, text="c"),
    )
    tokens = (Committed(3, Kind.ACCEPTED, "draft", "c"), Committed(4, Kind.BONUS, text="d"))
    row = folded(Round(5, tokens, guesses, 0.0, 0.1, 0.1)).of(1)[0]
    assert [piece.label for piece in row.pieces] == ["✗a", "·b", "| ✓c", "+d"]
    assert [piece.index for piece in row.pieces] == [5, 6, 5, 6]
    assert [guess.token for guess in row.guesses_at(5)] == [1, 3]


def test_every_token_of_an_answer_finds_the_round_that_wrote_it() -> None:
    rounds = folded(*ANSWER)
    written = [rounds.find(1, index) for index in range(10)]
    numbers = [row.number for row in written if row is not None]
    assert numbers == [1, 2, 2, 2, 3, 3, 3, 3, 4, 4]
    assert rounds.find(1, 10) is None
    assert rounds.find(1, -1) is None
    assert rounds.find(2, 0) is None


def test_answers_do_not_mix() -> None:
    rounds = folded(*ANSWER)
    rounds.add(2, plain("other"))
    assert len(rounds.of(1)) == len(ANSWER)
    assert rounds.of(2)[0].number == 1


def test_a_continued_answer_is_numbered_on() -> None:
    rounds = folded(*ANSWER)
    assert rounds.add(1, replace(plain("more"), index=10)).number == 5
    assert rounds.find(1, 10) is rounds.of(1)[-1]


@pytest.mark.parametrize("kept", range(12))
def test_a_retracted_answer_knows_the_rounds_of_what_is_kept_and_no_others(kept: int) -> None:
    rounds = folded(*ANSWER)
    rounds.retract(1, kept)
    assert all(rounds.find(1, index) is not None for index in range(min(kept, 10)))
    assert all(rounds.find(1, index) is None for index in range(kept, 12))


def test_a_chosen_token_stands_in_a_round_of_its_own_and_the_answer_goes_on_behind_it() -> None:
    rounds = folded(*ANSWER)
    (chosen,) = alternatives((7, " stuff", 0.1))
    rounds.steer(1, 3, chosen)
    row = rounds.find(1, 3)
    assert row is not None
    assert row.summary == "chosen by you"
    assert row.times == ""
    assert [piece.label for piece in row.pieces] == ["→ stuff"]
    assert rounds.find(1, 4) is None
    rounds.add(1, replace(plain(" on"), index=4))
    assert [r.number for i in range(5) if (r := rounds.find(1, i))] == [1, 2, 2, 3, 4]


def test_a_round_that_is_cut_shows_the_guesses_alone_that_still_stand() -> None:
    rounds = folded(*ANSWER)
    rounds.retract(1, 6)
    assert [piece.label for piece in rounds.of(1)[-1].pieces] == ["✓ a", "✓ fixed"]
    rounds.retract(1, 5)
    (row,) = rounds.of(1)[-1:]
    assert [piece.label for piece in row.pieces] == ["✓ a"]
    assert row.guesses_at(5) == ()


def test_a_tree_that_is_cut_keeps_its_branches_where_they_were() -> None:
    guesses = (
        Guess(1, -1, "draft", tested=True, accepted=False, text="a"),
        Guess(2, 0, "draft", tested=False, accepted=False, text="b"),
        Guess(3, 1, "draft", tested=False, accepted=False, text="c"),
        Guess(4, -1, "draft", tested=True, accepted=True, text="d"),
        Guess(5, 3, "draft", tested=True, accepted=True, text="e"),
        Guess(6, 4, "draft", tested=True, accepted=True, text="f"),
    )
    tokens = tuple(
        Committed(n, Kind.ACCEPTED, "draft", t) for n, t in ((4, "d"), (5, "e"), (6, "f"))
    )
    rounds = folded(Round(0, (*tokens, Committed(7, Kind.BONUS, text="g")), guesses, 0.0, 0.1, 0.1))
    rounds.retract(1, 2)
    (row,) = rounds.of(1)
    assert [piece.label for piece in row.pieces] == ["✗a", "·b", "| ✓d", "✓e"]
    assert row.depths() == (0, 1, 0, 1)
    assert [guess.token for guess in row.guesses_at(1)] == [5]


def test_memory_is_bounded_and_the_oldest_rounds_go_first() -> None:
    rounds = Rounds(most=100)
    for event in in_order(*[plain(f"w{n}") for n in range(1000)]):
        rounds.add(1, event)
        assert len(rounds.of(1)) <= 100
    assert rounds.of(1)[-1].number == 1000
    assert rounds.find(1, 0) is None
    found = rounds.find(1, 999)
    assert found is not None
    assert found.number == 1000


def test_answers_of_which_nothing_is_left_are_forgotten() -> None:
    rounds = Rounds(most=8)
    for key in range(50):
        rounds.add(key, plain("x"))
    assert [key for key in range(50) if rounds.of(key)] == list(range(42, 50))


def test_retracting_makes_room_in_the_memory() -> None:
    rounds = Rounds(most=10)
    for _ in range(5):
        for event in in_order(*[plain("w")] * 6):
            rounds.add(1, event)
        rounds.retract(1, 0)
    rounds.add(2, plain("x"))
    for event in in_order(*[plain("w")] * 9):
        rounds.add(1, event)
    assert len(rounds.of(2)) == 1
    assert len(rounds.of(1)) == 9


def test_every_change_is_told_by_the_version() -> None:
    rounds = Rounds()
    versions = [rounds.version]
    rounds.add(1, ANSWER[0])
    versions.append(rounds.version)
    rounds.steer(1, 0, alternatives((7, "x", 0.5))[0])
    versions.append(rounds.version)
    rounds.retract(1, 0)
    versions.append(rounds.version)
    rounds.clear()
    versions.append(rounds.version)
    assert versions == sorted(set(versions))


def test_a_round_without_tokens_is_no_tokens_round() -> None:
    rounds = folded(*ANSWER, Round(10, (), ANSWER[1].guesses, 0.0, 0.1, 0.1))
    assert rounds.find(1, 10) is None
    found = rounds.find(1, 9)
    assert found is not None
    assert found.number == 4


@pytest.mark.parametrize(
    ("text", "token", "visible"),
    [
        ("\n\n", 1, "⏎⏎"),
        ("\t", 1, "\\t"),
        ("", 1234, "#1234"),
        ("\x1b]52;c;AAAA\x07", 1, "\\x1b]52;c;AAAA\\x07"),
        ("\u202eevil", 1, "\\u202eevil"),
        ("x" * 99, 1, "x" * 40 + "…"),
    ],
)
def test_nothing_invisible_is_left_of_a_token(text: str, token: int, visible: str) -> None:
    assert token_text(text, token, {}) == visible


def test_a_token_that_ends_an_answer_is_called_by_its_name() -> None:
    ends = {2: "<|im_end|>", 3: "", 4: "\x1b]0;owned\x07"}
    shown = [token_text("", token, ends) for token in (2, 3, 4, 5)]
    assert shown == ["<|im_end|>", "end", "\\x1b]0;owned\\x07", "#5"]


@given(st.text())
def test_whatever_a_token_says_it_is_one_printable_line(text: str) -> None:
    assert token_text(text, 1, {1: text}).isprintable()


PIECES = st.lists(st.sampled_from(["a", " of", " word", "漢字", " internationally"]), min_size=1)


@given(PIECES, st.integers(1, 60), st.data())
def test_what_is_in_view_fits_and_holds_the_selected_token(
    texts: list[str], width: int, data: st.DataObject
) -> None:
    pieces = [Piece(Fate.ACCEPTED, text, n) for n, text in enumerate(texts)]
    selected = data.draw(st.integers(0, len(pieces) - 1))
    first, last = in_view(pieces, width, selected)
    assert first <= selected < last
    used = sum(cell_len(piece.label) + 1 for piece in pieces[first:last]) - 1
    marks = 2 * (first > 0) + 2 * (last < len(pieces))
    assert used + marks <= width or last - first == 1


def test_a_draft_that_fits_is_shown_from_its_beginning() -> None:
    pieces = [Piece(Fate.ACCEPTED, "ab", n) for n in range(4)]
    assert in_view(pieces, 15, 3) == (0, 4)
    assert in_view(pieces, 14, 0) == (0, 3)


def test_of_a_long_draft_the_end_of_what_was_right_is_shown() -> None:
    right = [Piece(Fate.ACCEPTED, "ab", n) for n in range(9)]
    pieces = [*right, Piece(Fate.REJECTED, "cd", 9), Piece(Fate.CORRECTION, "ef", 9)]
    unseen = [Piece(Fate.UNTESTED, "gh", 9)] * 9
    first, last = in_view([*pieces, *unseen], 20, None)
    assert first <= 9
    assert last == 11
