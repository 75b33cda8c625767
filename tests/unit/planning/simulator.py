"""A machine made of numbers: costs and luck are scripted, and time is what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from edgespec.bench.replay import Cost, Machine, Scripted
from edgespec.decoding.draft import Draft, Tokens
from edgespec.decoding.events import Round
from edgespec.decoding.history import common_prefix
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import RIDES_ALONG, DraftTiming, SmallModel
from edgespec.proposers.nothing import Nothing

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


class Holds(Scripted):
    """Remembers which text it has read, of which it has room for so much."""

    def __init__(self, machine: Machine, context: int = 2**31 - 1) -> None:
        super().__init__(machine, VOCAB)
        self.caps, self._read = replace(self.caps, context=context), np.empty(0, dtype=np.int32)

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        assert len(tokens) <= self.caps.context
        yield self.held(tokens)
        self._read = tokens

    def held(self, tokens: Tokens) -> int:
        return common_prefix(self._read, tokens[:-1])


class Guesses(SmallModel):
    """A draft model whose guesses are right as often as was scripted.

    sure: whether its confidence tells a good guess from a bad one. read_s: what a token takes
    that it has not read.
    """

    read_s = 0.0

    def __init__(
        self, machine: Machine, luck: Luck, guess_s: float, *, sure: bool = True, seed: int = 0
    ) -> None:
        super().__init__(Holds(machine), VOCAB)
        self._machine, self._luck, self._guess_s, self._sure = machine, luck, guess_s, sure
        self._rng = np.random.default_rng(seed)

    @property
    def plan(self) -> str:
        return "scripted"

    def begin(self, request: Request) -> None:
        pass

    def room(self, state: State) -> int:
        return 1000

    def propose(self, state: State, budget: Budget) -> Draft:
        self.confidences, started = [], self._machine.now
        guesses = self.guesses = list[int]()
        start = len(state.tokens)
        unread = max(1, self.unread(state.tokens) - RIDES_ALONG)
        self._machine.now += unread * self.read_s
        while len(guesses) < budget.nodes and budget.another(self.confidences):
            self._machine.now += self._guess_s
            confidence = self._confidence(self._luck(start + len(guesses) - PROMPT))
            right = self._rng.random() < confidence
            truth = self._machine.text[start + len(guesses)]
            guesses.append(truth if right else (truth + 1) % VOCAB)
            self.confidences.append(confidence if self._sure else 0.5)
        seconds = self._machine.now - started
        first_s = unread * self.read_s + self._guess_s
        self.timing = DraftTiming(len(guesses), unread, first_s, seconds)
        self._reads(start, guesses)
        return Draft.chain(guesses, "draft")

    def _reads(self, start: int, guesses: Sequence[int]) -> None:
        """The text as far as its guesses are right."""
        told = self._machine.text[start : start + len(guesses)]
        right = sum(accumulate((a == b for a, b in zip(told, guesses, strict=False)), min))
        text = np.array(self._machine.text[: start + right], dtype=np.int32)
        list(self._session.prefill(text))

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


def run(machine: Machine, proposer: Proposer, tokens: int, prompt: int = PROMPT) -> Run:
    """An answer behind so many tokens of the machine's text."""
    request = Request(
        np.array(machine.text[:prompt], dtype=np.int32), Sampling(0.0, seed=0), tokens
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
    return run(machine, Auto([ModelSource(drafter, curve_, DraftCost(guess_s))], curve_), tokens)


def run_auto_ngram(cost: Cost, text: Sequence[int], tokens: int = 1000) -> Run:
    machine, curve_ = machine_for(cost, text), curve(cost)
    return run(machine, Auto([NGramSource(curve_)], curve_), tokens)


def run_fixed(cost: Cost, luck: Luck, guess_s: float, guesses: int, tokens: int = 1000) -> Run:
    machine = machine_for(cost, tokens=tokens)
    if not guesses:
        return run(machine, Nothing(), tokens)
    return run(machine, Fixed(Guesses(machine, luck, guess_s), guesses), tokens)
