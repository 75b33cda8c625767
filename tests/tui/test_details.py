"""One token in detail: folded from its round and from what the engine explains."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from beside import ANSWER, AT_3, Explained
from fake_model import guessed, plain

from edgespec.tui.details import Refused, detail_of, percent
from edgespec.tui.rounds import RoundRow, Rounds
from edgespec.tui.token_detail import detail_lines


def row_of(index: int) -> RoundRow:
    rounds = Rounds()
    for event in ANSWER:
        rounds.add(1, event)
    row = rounds.find(1, index)
    assert row is not None
    return row


def test_a_token_tells_who_proposed_it_or_why_it_is_the_models_own() -> None:
    origins = [detail_of(index, "", row_of(index)).origin for index in (0, 1, 3, 7)]
    assert origins == [
        "the model's own: nothing was guessed",
        "guessed by draft model, and right",
        "the model's own: a guess was wrong here",
        "the model's own, behind right guesses",
    ]


def test_a_correction_names_the_guess_that_was_turned_down() -> None:
    detail = detail_of(3, "", row_of(3), AT_3)
    assert detail.refused == (Refused(" things", "draft model", None, pytest.approx(0.25)),)
    assert detail.number == 2


def test_the_probabilities_are_those_of_target_and_draft() -> None:
    event = guessed(" a", " b", accepted=1)
    sure = replace(event, guesses=(replace(event.guesses[0], probability=0.75),))
    found = Explained(0, math.log(0.5), ())
    detail = detail_of(0, "", RoundRow(1, sure), found)
    assert detail.target == pytest.approx(0.5)
    assert detail.draft == 0.75
    assert detail_of(0, "", RoundRow(1, event), found).draft is None


def test_a_refused_guess_keeps_the_drafters_confidence() -> None:
    event = guessed(" a", " b", accepted=0)
    sure = replace(event, guesses=(replace(event.guesses[0], probability=0.75),))
    assert detail_of(0, "", RoundRow(1, sure)).refused == (
        Refused(" a", "draft model", 0.75, None),
    )


def test_a_token_that_came_with_alternatives_needs_no_explanation() -> None:
    row = row_of(3)
    own = replace(row.token(3), logprob=AT_3.logprob, alternatives=AT_3.alternatives)
    event = replace(row.event, tokens=(*row.event.tokens[:-1], own))
    detail = detail_of(3, "", RoundRow(2, event))
    assert detail.alternatives == AT_3.alternatives
    assert detail.target == pytest.approx(0.5)


def test_of_a_token_without_a_round_only_what_the_engine_says_is_claimed() -> None:
    unknown = detail_of(3, " items", None)
    assert unknown.origin == "not written in this session: no round is known"
    assert (unknown.text, unknown.token, unknown.target) == (" items", None, None)
    known = detail_of(3, " items", None, AT_3)
    assert (known.token, known.target) == (99, pytest.approx(0.5))


def test_a_hostile_text_is_shown_in_words() -> None:
    detail = detail_of(0, "\x1b]0;owned\x07", None)
    assert detail.text == "\\x1b]0;owned\\x07"


@pytest.mark.parametrize(
    ("probability", "text"),
    [(1.0, "100.0%"), (0.312, "31.2%"), (0.001, "0.1%"), (0.0002, "<0.1%"), (0.0, "<0.1%")],
)
def test_a_small_probability_is_not_shown_as_none(probability: float, text: str) -> None:
    assert percent(probability) == text


def test_a_logprob_above_zero_by_rounding_is_still_a_probability() -> None:
    assert detail_of(0, "a", None, Explained(1, 1e-7, ())).target == 1.0


def test_a_token_tells_in_full_why_nothing_was_guessed_in_its_round() -> None:
    reason = "the draft model is right 41% of the time; a pass of 4 costs 3.1 plain ones"
    event = plain(" a", plan=f"auto \N{RIGHTWARDS ARROW} plain: {reason}")
    detail = detail_of(0, "", RoundRow(1, event))
    assert detail.why == f"plain: {reason}"
    assert any(reason in line.plain for line in detail_lines(detail))


def test_the_end_of_an_answer_and_a_guess_of_it_go_by_their_name() -> None:
    event = guessed("", "", accepted=0)
    row = RoundRow(1, event, {0: "<|im_end|>", 99: ""})
    detail = detail_of(0, "", row)
    assert detail.text == "end"
    assert detail.refused[0].text == "<|im_end|>"
    assert [piece.text for piece in row.pieces] == ["<|im_end|>", "end"]


def test_a_tree_tells_who_made_it_and_how_its_other_guesses_are_marked() -> None:
    event = guessed(" a", " b", " c", accepted=0)
    other = replace(event.guesses[1], parent=-1, source="memory")
    detail = detail_of(0, "", RoundRow(1, replace(event, guesses=(event.guesses[0], other))))
    assert "earlier answers" in detail.why
    assert detail.why.endswith("a tree; | is another guess for the same place")
    assert detail_of(0, "", RoundRow(1, event)).why == ""
