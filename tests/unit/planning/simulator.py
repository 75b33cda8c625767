"""A machine made of numbers: costs and luck are scripted, and time is what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgespec.bench.replay import Cost, Machine, Scripted
from edgespec.decoding.draft import Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import DraftTiming, SmallModel
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.watchdog import Watchdog

T1 = 0.020
VOCAB = 1000
PROMPT = 8
Luck = Callable[[int], float]  # how likely the guess for a place in the reply is right


def linear(rows: int) -> float:
    return T1 * rows


def flat(rows: int) -> float:
    return T1 * (1 + 0.002 * rows)


def usual(rows: int) -> float:
    """A CPU with a model in bf16: four rows cost 1.8 times one."""
    return T1 * (0.74 + 0.26 * rows)


def curve(cost: Cost) -> CostCurve:
    return CostCurve({n: cost(n) for n in (1, 2, 4, 8, 16)})


class Guesses(SmallModel):
    """A draft model whose guesses are right as often as was scripted.

    sure: whether its confidence tells a good guess from a bad one.
    """

    def __init__(
        self, machine: Machine, luck: Luck, guess_s: float, *, sure: bool = True, seed: int = 0
    ) -> None:
        self._machine, self._luck, self._guess_s, self._sure = machine, luck, guess_s, sure
        self._rng = np.random.default_rng(seed)
        self.timing, self.confidences = DraftTiming(), []
        self._watchdog = Watchdog()

    @property
    def plan(self) -> str:
        return "scripted"

    def begin(self, request: Request) -> None:
        pass

    def room(self, state: State) -> int:
        return 1000

    def propose(self, state: State, budget: Budget) -> Draft:
        self.confidences, guesses, started = [], list[int](), self._machine.now
        start = len(state.tokens)
        while len(guesses) < budget.nodes and budget.another(self.confidences):
            self._machine.now += self._guess_s
            confidence = self._confidence(self._luck(start + len(guesses) - PROMPT))
            right = self._rng.random() < confidence
            truth = self._machine.text[start + len(guesses)]
            guesses.append(truth if right else (truth + 1) % VOCAB)
            self.confidences.append(confidence if self._sure else 0.5)
        seconds = self._machine.now - started
        self.timing = DraftTiming(len(guesses), 1, self._guess_s, seconds)
        return Draft.chain(guesses, "draft")

    def _confidence(self, mean: float) -> float:
        """0.97 or 0.15, in the mix that has this mean."""
        share = min(1.0, max(0.0, (mean - 0.15) / 0.82))
        return 0.97 if self._rng.random() < share else 0.15


@dataclass
class Run:
    """What an answer cost, and its rounds."""

    seconds: float
    tokens: int
    rounds: list[Round] = field(default_factory=list)

    @property
    def relative(self) -> float:
        """Time in units of what plain decoding takes for the same text."""
        return self.seconds / (self.tokens * T1)

    def drafted(self, start: int, stop: int, source: str = "") -> float:
        """Guesses a round while the reply was between two lengths."""
        counts = [
            sum(guess.source == source or not source for guess in round_.guesses)
            for round_ in self.rounds
            if start <= round_.index < stop
        ]
        return sum(counts) / max(1, len(counts))


def random_text(length: int, letters: int = VOCAB, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, letters, length)]


def run(machine: Machine, proposer: Proposer, tokens: int) -> Run:
    request = Request(
        np.array(machine.text[:PROMPT], dtype=np.int32), Sampling(0.0, seed=0), tokens
    )
    events = speculate(Scripted(machine, VOCAB), request, proposer, clock=machine.clock)
    rounds = [event for event in events if isinstance(event, Round)]
    return Run(machine.now, sum(len(round_.tokens) for round_ in rounds), rounds)


def machine_for(cost: Cost, text: Sequence[int] | None = None, tokens: int = 1000) -> Machine:
    return Machine(text or random_text(tokens + PROMPT + 80), cost)


def run_auto(
    cost: Cost, luck: Luck, guess_s: float, *, tokens: int = 1000, sure: bool = True
) -> Run:
    """Auto with a draft model alone, on a text without repeats."""
    machine, curve_ = machine_for(cost, tokens=tokens), curve(cost)
    drafter = Guesses(machine, luck, guess_s, sure=sure)
    return run(machine, Auto([ModelSource(drafter, curve_, guess_s)], curve_), tokens)


def run_auto_ngram(cost: Cost, text: Sequence[int], tokens: int = 1000) -> Run:
    machine, curve_ = machine_for(cost, text), curve(cost)
    return run(machine, Auto([NGramSource(curve_)], curve_), tokens)


def run_fixed(cost: Cost, luck: Luck, guess_s: float, guesses: int, tokens: int = 1000) -> Run:
    machine = machine_for(cost, tokens=tokens)
    if not guesses:
        return run(machine, Nothing(), tokens)
    return run(machine, Fixed(Guesses(machine, luck, guess_s), guesses), tokens)
