"""What the planner counts for whom: what is done once, and what others won, says nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from simulator import (
    PROMPT,
    T1,
    Guesses,
    Machine,
    Run,
    curve,
    flat,
    machine_for,
    random_text,
    run,
    usual,
)

from edgespec.bench.replay import Says
from edgespec.decoding.accept import Accepted, Coupled
from edgespec.decoding.draft import Draft
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import Outcome, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.planning.acceptance import ConfidenceAcceptance
from edgespec.planning.model_source import DraftCost, ModelSource, WhilePays
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource, Offer
from edgespec.proposers.nothing import Nothing

GUESS_S = 0.375 * T1
LONG = 600
GREEDY = Coupled(Sampling(0.0), Noise(0, 0))


class ReadsFast(Guesses):
    """As on a graphics card, where reading is wide and guessing is not."""

    read_s = GUESS_S / 60


def behind_a_long_prompt(takes: DraftCost) -> Run:
    machine, costs = machine_for(flat, tokens=1000), curve(flat)
    drafter = ReadsFast(machine, lambda _: 0.85, GUESS_S)
    return run(machine, Auto([ModelSource(drafter, costs, takes)], costs), 200, LONG)


def test_a_model_known_to_read_fast_guesses_behind_a_long_prompt_from_the_start() -> None:
    known = behind_a_long_prompt(DraftCost(GUESS_S, GUESS_S / 60))
    assert known.rounds[1].guesses
    unknown = behind_a_long_prompt(DraftCost(GUESS_S))
    assert not any(round_.guesses for round_ in unknown.rounds[:40]), "so the knowledge is needed"
    assert known.seconds < 0.9 * unknown.seconds


class Hears:
    """A source that notes at which pace it is asked, and reads a prompt with its first draft."""

    probes, words = True, "scripted"
    spent_s = 0.3 * T1

    def __init__(self, machine: Machine, reading_s: float) -> None:
        self.proposer, self.paces = Nothing(), list[float]()
        self._machine, self._reading_s = machine, reading_s

    def begin(self, request: Request) -> None:
        pass

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        self.paces.append(pace)
        at = len(state.tokens)

        def make() -> Draft:
            self._machine.now += self.spent_s + self._reading_s
            self._reading_s = 0.0
            return Draft.chain(self._machine.text[at : at + 3], self.proposer.name)

        return Offer(self, 4.0, 1.8 * T1, make)

    def observe(self, outcome: Outcome) -> None:
        pass


def paces(reading_s: float) -> list[float]:
    machine, costs = machine_for(usual), curve(usual)
    source = Hears(machine, reading_s)
    run(machine, Auto([source], costs), 100)
    return source.paces


def test_that_a_prompt_was_read_does_not_slow_the_pace_that_guesses_are_held_against() -> None:
    assert paces(20 * T1) == pytest.approx(paces(0.0))


class Unsure(Guesses):
    """Holds its own guesses for unlikely."""

    def _confidence(self, mean: float) -> float:
        return 0.02


def test_what_anothers_draft_wins_is_no_win_of_a_model_whose_guesses_were_all_dropped() -> None:
    machine, costs = machine_for(usual), curve(usual)
    source = ModelSource(Unsure(machine, lambda _: 0.0, 0.05 * T1), costs, DraftCost(0.05 * T1))
    source.begin(Request(np.array(machine.text[:PROMPT], np.int32), Sampling(0.0, seed=0), 100))
    promised = list[float]()
    for at in range(PROMPT, PROMPT + 45, 9):
        state = State(np.array(machine.text[:at], np.int32), at - PROMPT, GREEDY)
        offer = source.offer(state, 16, 3 / T1)
        if offer is None:
            break
        promised.append(offer.tokens)
        assert not offer.make(), "no guess is worth a row"
        copy = Draft.chain(machine.text[at : at + 8], "ngram")
        accepted = Accepted(tuple(range(8)), machine.text[at + 8])
        source.observe(Outcome(copy, accepted, Says(machine, {}), 0.05 * T1, costs.seconds(9)))
    assert len(promised) > 2
    assert promised == sorted(promised, reverse=True), "what it promises only falls"


def goes_on(free: list[float], guess_s: float = 0.2 * T1) -> bool:
    """Whether a model that is sure of its first guess makes another one."""
    luck = ConfidenceAcceptance()
    budget = WhilePays(31, luck, curve(flat), guess_s, T1, follows=lambda: free)
    return budget.another([0.99])


def test_a_model_leaves_to_an_ngram_what_that_guesses_as_well_for_nothing() -> None:
    assert goes_on([])
    assert not goes_on([0.95] * 10)
    assert goes_on([0.3] * 10), "so poor a guess is worth beating"
    assert not goes_on([0.3] * 10, guess_s=2 * T1), "but not at any price"


def test_copies_are_the_ngrams_and_what_lies_between_them_the_models() -> None:
    block = random_text(40, seed=3)
    text = [*random_text(PROMPT, seed=1), *block]
    for seed in range(12):
        text += [*random_text(3, seed=10 + seed), *block]
    machine, costs = machine_for(flat, text), curve(flat)
    ngram = NGramSource(costs)
    drafter = Guesses(machine, lambda _: 0.97, 0.06 * T1)
    model = ModelSource(drafter, costs, DraftCost(0.06 * T1), ngram)
    told = run(machine, Auto([ngram, model], costs), 400, PROMPT + 43)
    by = Counter(guess.source for round_ in told.rounds for guess in round_.guesses)
    right = Counter(g.source for r in told.rounds for g in r.guesses if g.accepted)
    assert right["ngram"] > 200
    assert 0 < by["draft"] < 60, "three tokens in 43 are the model's to guess"
