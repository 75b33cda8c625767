"""Rejected guesses: what is shown of them, and that they never touch the text."""

from __future__ import annotations

from fake_model import guessed, plain

from edgespec.decoding.events import Committed, Guess, Kind, Round
from edgespec.tui.ghosts import Ghost, rejected


def test_a_rejected_chain_is_shown_with_what_would_have_followed() -> None:
    assert rejected(guessed(" a", " b", " c", " own", accepted=1)) == "⟨ b c⟩"


def test_a_round_without_a_wrong_guess_has_no_ghost() -> None:
    assert rejected(guessed(" a", " b", accepted=1)) == ""
    assert rejected(plain(" a")) == ""


def test_siblings_that_were_refused_stand_in_brackets_of_their_own() -> None:
    guesses = tuple(
        Guess(n, -1, "draft", tested=True, accepted=False, text=text)
        for n, text in enumerate((" red", " blue"))
    )
    event = Round(0, (Committed(9, Kind.CORRECTION, text=" green"),), guesses, 0, 0, 0)
    assert rejected(event) == "⟨ red⟩⟨ blue⟩"


def test_a_line_break_in_a_ghost_is_a_sign_not_a_break() -> None:
    assert rejected(guessed("\n\n", " own", accepted=0)) == "⟨⏎⏎⟩"


def test_a_guess_without_text_leaves_no_empty_brackets() -> None:
    assert rejected(guessed("", " own", accepted=0)) == ""


def test_a_ghost_without_room_goes_to_the_row_below() -> None:
    ghost = Ghost("⟨ something⟩", 0.0)
    assert ghost.row(last_row=3, free=20) == 3
    assert ghost.row(last_row=3, free=2) == 4


def test_a_ghost_is_cropped_to_the_free_cells() -> None:
    assert Ghost("⟨ something⟩", 0.0).cut_to(8) == "⟨ some…⟩"
    assert Ghost("⟨ something⟩", 0.0).cut_to(2) == ""
