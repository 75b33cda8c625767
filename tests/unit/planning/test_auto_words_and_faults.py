"""What Auto says about its choices, and what a faulty source costs."""

from __future__ import annotations

from typing import Any

import pytest
from simulator import (
    T1,
    Guesses,
    curve,
    flat,
    machine_for,
    random_text,
    run,
    run_auto_ngram,
    usual,
)

from edgespec.decoding.draft import Draft
from edgespec.decoding.proposer import Budget, State
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource

CHEAP = 0.02 * T1


def test_a_plan_names_what_was_drafted_and_how_much() -> None:
    told = run_auto_ngram(flat, (random_text(30) * 30)[:600], 400)
    drafted = [round_ for round_ in told.rounds if round_.guesses]
    assert drafted
    for round_ in drafted:
        assert round_.plan == f"auto → n-gram ×{len(round_.guesses)}"  # noqa: RUF001


def test_a_plain_plan_says_why_and_what_a_wide_pass_costs() -> None:
    told = run_auto_ngram(usual, random_text(400), 100)
    assert told.rounds[-1].plan == (
        "auto → plain: nothing to guess from; a pass of 4 costs 1.8 plain ones"
    )
    machine, cost = machine_for(usual), curve(usual)
    source = ModelSource(Guesses(machine, lambda place: 0.0, CHEAP), cost, DraftCost(CHEAP))
    told = run(machine, Auto([source], cost), 200)
    plain = [r.plan for r in told.rounds if not r.guesses][-1]
    assert "the draft model is right" in plain
    assert "% of the time" in plain


class Breaks(Guesses):
    """Fails at its third draft."""

    drafts = 0

    def propose(self, state: State, budget: Budget) -> Draft:
        self.drafts += 1
        if self.drafts == 3:
            raise RuntimeError("out of paper")
        return super().propose(state, budget)


def test_a_source_that_fails_is_switched_off_and_the_others_go_on() -> None:
    text = (random_text(40) * 30)[:700]
    machine, cost = machine_for(flat, text), curve(flat)
    broken = Breaks(machine, lambda place: 0.5, CHEAP)
    auto = Auto([ModelSource(broken, cost, DraftCost(CHEAP)), NGramSource(cost)], cost)
    told = run(machine, auto, 500)
    assert told.tokens == 500
    notes = [round_.note for round_ in told.rounds if round_.note]
    assert notes == ["drafter 'draft' is off for this answer: RuntimeError: out of paper"]
    assert broken.drafts == 3
    assert told.drafted(200, 500, "ngram") > 3


def test_the_next_answer_tries_a_broken_source_again() -> None:
    machine, cost = machine_for(flat), curve(flat)
    broken = Breaks(machine, lambda place: 0.9, CHEAP)
    auto = Auto([ModelSource(broken, cost, DraftCost(CHEAP))], cost)
    run(machine, auto, 200)
    stopped_at = broken.drafts
    told = run(machine, auto, 200)
    assert broken.drafts > stopped_at
    assert told.drafted(0, 200) > 1


def test_luck_is_remembered_from_answer_to_answer() -> None:
    """What the first answer paid to learn of a model, the second need not."""
    machine, cost = machine_for(usual, random_text(900)), curve(usual)
    source = ModelSource(Guesses(machine, lambda place: 0.0, CHEAP), cost, DraftCost(CHEAP))
    first = run(machine, Auto([source], cost), 60)
    second = run(machine, Auto([source], cost), 60)
    assert first.drafted(0, 60) > 0
    assert second.seconds - first.seconds < first.seconds
    assert second.drafted(0, 60) < 0.9 * first.drafted(0, 60)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_short_answers_are_no_special_case(tokens: int) -> None:
    machine, cost = machine_for(flat), curve(flat)
    sources: list[Any] = [
        NGramSource(cost),
        ModelSource(Guesses(machine, lambda p: 1.0, CHEAP), cost, DraftCost(CHEAP)),
    ]
    told = run(machine, Auto(sources, cost), tokens)
    assert told.tokens == tokens


def test_of_two_sources_the_better_one_drafts() -> None:
    for chance, winner in ((0.02, "ngram"), (0.97, "draft")):
        rng_text = random_text(900, letters=3 if winner == "draft" else 1000)
        text = rng_text if winner == "draft" else (random_text(60) * 30)[:900]
        machine, cost = machine_for(flat, text), curve(flat)
        source = ModelSource(Guesses(machine, lambda p, c=chance: c, CHEAP), cost, DraftCost(CHEAP))
        told = run(machine, Auto([NGramSource(cost), source], cost), 700)
        loser = {"ngram": "draft", "draft": "ngram"}[winner]
        assert told.drafted(200, 700, winner) > 2 * told.drafted(200, 700, loser)
