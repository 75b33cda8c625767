"""A chat that grows costs its draft model only what is new in it, also where its room is short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from simulator import PROMPT, T1, Cost, Guesses, Holds, Run, curve, flat, machine_for, run, usual

from edgespec.bench.replay import Machine
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.proposers.recent import RecentSession

ANSWER, QUESTION = 200, 20
ROOM, CONTEXT = 1024, 10**6
GUESS_S = 0.1 * T1


class Reads(Guesses):
    """Needs the sixth part of a guess for each token that it has to read."""

    read_s = GUESS_S / 6

    def __init__(self, machine: Machine, often: float) -> None:
        super().__init__(machine, lambda _: often, GUESS_S)

    def _confidence(self, mean: float) -> float:
        return 1.0 if mean == 1.0 else super()._confidence(mean)


class ReadsTheEnd(Reads):
    """The same in little room."""

    def __init__(self, machine: Machine, often: float) -> None:
        super().__init__(machine, often)
        self._session = RecentSession(Holds(machine, ROOM), CONTEXT)


def chat(kind: type[Reads], turns: int) -> list[Run]:
    """The answers of one growing conversation."""
    turn = QUESTION + ANSWER
    machine, costs = machine_for(usual, tokens=turns * turn), curve(usual)
    auto = Auto([ModelSource(kind(machine, 1.0), costs, DraftCost(GUESS_S))], costs)
    return [run(machine, auto, ANSWER, PROMPT + QUESTION + n * turn) for n in range(turns)]


def first_draft(told: Run) -> int:
    """Tokens of the answer before the draft model was asked."""
    return next((round_.index for round_ in told.rounds if round_.guesses), ANSWER)


@pytest.mark.parametrize("kind", [Reads, ReadsTheEnd])
def test_a_draft_model_that_holds_the_chat_guesses_from_the_start_of_every_answer(
    kind: type[Reads],
) -> None:
    told = chat(kind, turns=12)
    assert [first_draft(answer) for answer in told] == [1] * len(told)
    assert max(len(answer.rounds) for answer in told) == len(told[0].rounds)


def long_answer(kind: type[Reads], cost: Cost, often: float) -> Run:
    machine, costs = machine_for(cost, tokens=3000), curve(cost)
    source = ModelSource(kind(machine, often), costs, DraftCost(GUESS_S))
    return run(machine, Auto([source], costs), 3000)


def test_that_another_part_must_be_read_is_not_held_against_a_model_that_pays() -> None:
    """In an answer of 3000 tokens it begins anew with some 450 every 450."""
    ample, little = (long_answer(kind, flat, 0.7).relative for kind in (Reads, ReadsTheEnd))
    assert ample < little < 1.02 * ample


class Forgets(Reads):
    """Keeps nothing of a text that it guessed wrongly about, as models with a state may."""

    def _reads(self, start: int, guesses: Sequence[int]) -> None:
        super()._reads(start, guesses)
        if guesses != self._machine.text[start : start + len(guesses)]:
            list(self._session.prefill(np.empty(0, dtype=np.int32)))


def test_a_model_that_must_read_everything_again_and_again_is_given_up() -> None:
    told = long_answer(Forgets, flat, 0.7)
    assert any(round_.guesses for round_ in told.rounds), "it was tried"
    assert told.relative < 1.1
