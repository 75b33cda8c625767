"""Proposers as the planner sees them: what a draft would bring and what it would cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Protocol

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.planning.acceptance import MatchAcceptance
from edgespec.planning.cost import CostCurve
from edgespec.proposers.ngram import Match, NGram

MOST_GUESSES = 31
LOOK_AHEAD = 15


@dataclass(frozen=True, slots=True)
class Offer:
    """The best draft a source can make now. tokens: expected to be committed, own one included.

    make: builds the draft. worth_trying: to learn how it does, where it does not seem to pay.
    """

    source: Source
    tokens: float
    seconds: float
    make: Callable[[], Draft]
    worth_trying: bool = False


class Source(Protocol):
    """A proposer with an estimate of its luck."""

    @property
    def proposer(self) -> Proposer: ...

    @property
    def probes(self) -> bool:
        """Whether it must be tried to be judged."""
        ...

    def begin(self, request: Request) -> None: ...

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        """The best this source can do now, or None when it has nothing to say.

        pace: tokens a second that the time would bring otherwise.
        """
        ...

    def observe(self, outcome: Outcome) -> None:
        """Learn from a round, whoever drafted it."""
        ...

    @property
    def spent_s(self) -> float:
        """Seconds that its latest draft took, reading a prompt not counted."""
        ...

    @property
    def words(self) -> str:
        """How it has been doing, for people."""
        ...


@dataclass(frozen=True, slots=True)
class Tail:
    """What an n-gram would add behind the guesses of somebody else."""

    match: Match
    tokens: Sequence[int]
    chances: Sequence[float]


NO_TAIL = Tail(Match(), (), ())


class NGramSource:
    """Free guesses, priced by their match; scored in the shadow when another source drafts."""

    probes = False
    spent_s = 0.0

    def __init__(self, cost: CostCurve) -> None:
        self.proposer = NGram()
        self._cost, self._luck = cost, MatchAcceptance()
        self._offered, self._asked = EMPTY, False

    def begin(self, request: Request) -> None:
        self._offered, self._asked = EMPTY, False
        self._luck.new_text()

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        self._offered = draft = self.proposer.propose(state, UpTo(min(room, MOST_GUESSES)))
        self._asked = True
        if not draft:
            return None
        chances = self._luck.chances(self.proposer.match, len(draft))
        n, tokens = best_length(chances, self._cost, pace)
        n = max(1, n)
        tokens = tokens if tokens > 1 else 1 + chances[0]
        return Offer(self, tokens, self._cost.seconds(n + 1), lambda: draft.cut(n))

    def tail(self, guesses: Sequence[int], most: int) -> Tail:
        """How the text and these guesses would go on; nothing if it was not asked this round."""
        if not self._asked:
            return NO_TAIL
        match, tokens = self.proposer.follow(guesses, most)
        return Tail(match, tokens, self._luck.chances(match, len(tokens)) if tokens else ())

    def observe(self, outcome: Outcome) -> None:
        draft, self._offered, self._asked = self._offered, EMPTY, False
        self._luck.learn(self.proposer.match, answered(draft, outcome))

    def observe_tail(self, tail: Tail, right: Sequence[bool]) -> None:
        """Learn how a tail did."""
        self._luck.learn(tail.match, right)

    @property
    def words(self) -> str:
        return self.proposer.plan


def best_length(
    chances: Sequence[float], cost: CostCurve, pace: float, guess_s: float = 0.0
) -> tuple[int, float]:
    """How many guesses gain the most over `pace`, and the tokens then expected; 0 if none do."""
    return best_size(accumulate(chances, mul), cost, pace, guess_s)


def best_size(
    chances: Iterable[float], cost: CostCurve, pace: float, guess_s: float = 0.0
) -> tuple[int, float]:
    """The same for the nodes of a tree, likeliest first, by the chances of their whole paths."""
    best_n, best_tokens, best_gain = 0, 1.0, 1.0 - pace * cost.seconds(1)
    tokens = 1.0
    for n, chance in enumerate(chances, 1):
        tokens += chance
        gain = tokens - pace * (cost.seconds(n + 1) + n * guess_s)
        if gain > best_gain:
            best_n, best_tokens, best_gain = n, tokens, gain
    return best_n, best_tokens


def worth(cost: CostCurve, chance: float, guess_s: float = 0.0) -> tuple[float, int]:
    """Speed in units of plain decoding's if each guess is right this often, and the best number
    of guesses; (1.0, 0) where none pay."""
    best, best_n, path, tokens = 1.0, 0, 1.0, 1.0
    for n in range(1, LOOK_AHEAD + 1):
        path *= chance
        tokens += path
        speed = tokens * cost.seconds(1) / (cost.seconds(n + 1) + n * guess_s)
        if speed > best + 1e-9:
            best, best_n = speed, n
    return best, best_n


def answered(draft: Draft, outcome: Outcome) -> list[bool]:
    """Which guesses of a chain were right, as far as the committed tokens tell: whoever drafted
    this round, they say what really followed."""
    answers: list[bool] = []
    for token, told in zip(draft.tokens, outcome.accepted.tokens(outcome.draft), strict=False):
        answers.append(token == told)
        if token != told:
            break
    return answers
