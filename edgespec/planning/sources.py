"""Proposers as the planner sees them: what a draft would bring and what it would cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.planning.acceptance import ConfidenceAcceptance, MatchAcceptance
from edgespec.planning.cost import CostCurve
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.ngram import NGram

MOST_GUESSES = 31
LOOK_AHEAD = 8
HORIZON = 96  # tokens over which reading the prompt with the drafter should pay back


@dataclass(frozen=True, slots=True)
class Offer:
    """The best draft a source can make now. tokens: expected to be committed, own one included.

    make: builds the draft.
    """

    source: Source
    guesses: int
    tokens: float
    seconds: float
    make: Callable[[], Draft]

    @property
    def rate(self) -> float:
        return self.tokens / self.seconds


class Source(Protocol):
    """A proposer with an estimate of its luck."""

    @property
    def proposer(self) -> Proposer: ...

    @property
    def probes(self) -> bool:
        """Whether it must be tried to be judged."""
        ...

    def begin(self, request: Request) -> None: ...

    def offer(self, state: State, room: int) -> Offer | None:
        """The best this source can do now, or None when it has nothing to say."""
        ...

    def observe(self, outcome: Outcome) -> None:
        """Learn from a round, whoever drafted it."""
        ...

    @property
    def words(self) -> str:
        """How it has been doing, for people."""
        ...


class NGramSource:
    """Free guesses, priced by match length; scored in the shadow when another source drafts."""

    probes = False

    def __init__(self, cost: CostCurve) -> None:
        self.proposer = NGram()
        self._cost, self._luck = cost, MatchAcceptance()
        self._offered = EMPTY

    def begin(self, request: Request) -> None:
        self._offered = EMPTY

    def offer(self, state: State, room: int) -> Offer | None:
        self._offered = self.proposer.propose(state, UpTo(min(room, MOST_GUESSES)))
        draft, match = self._offered, self.proposer.match_length
        if not draft:
            return None
        best, path, tokens = (0, 1.0, 0.0), 1.0, 1.0
        for n in range(1, len(draft) + 1):
            path *= self._luck.probability(match + n - 1)
            tokens += path
            seconds = self._cost.seconds(n + 1)
            if tokens / seconds > best[2]:
                best = (n, tokens, tokens / seconds)
        n, tokens, rate = best
        return Offer(self, n, tokens, tokens / rate, lambda: draft.cut(n))

    def observe(self, outcome: Outcome) -> None:
        draft, self._offered = self._offered, EMPTY
        if not draft:
            return
        match = self.proposer.match_length
        # a drafted chain is scored along its length, a shadow one at its first token, which the
        # target answered whatever it verified
        told = outcome.accepted.tokens(outcome.draft)
        verified = len(outcome.draft) if outcome.draft.source[:1] == (self.proposer.name,) else 1
        for n, token in enumerate(draft.tokens[: min(verified, len(told))]):
            right = token == told[n]
            self._luck.learn(match + n, right)
            if not right:
                break

    @property
    def words(self) -> str:
        return self.proposer.plan


@dataclass(slots=True)
class WhilePays:
    """Draft on while some more guesses are expected to save more time than they cost.

    seconds_per_token: what a token costs at the best rate known now.
    """

    nodes: int
    luck: ConfidenceAcceptance
    cost: CostCurve
    guess_s: float
    seconds_per_token: float

    def another(self, confidences: Sequence[float]) -> bool:
        n = len(confidences)
        if n == 0:
            return self.nodes > 0
        path = 1.0
        for confidence in confidences:
            path *= self.luck.probability(confidence)
        gain, here_s = 0.0, self.cost.seconds(n + 1)
        # beyond a dear width may lie a cheap one
        for more in range(1, min(self.nodes - n, LOOK_AHEAD) + 1):
            path *= self.luck.typical
            gain += path * self.seconds_per_token
            if gain > more * self.guess_s + self.cost.seconds(n + 1 + more) - here_s:
                return True
        return False


class ModelSource:
    """A small model: each guess costs a pass of its own, and the text it missed must be read."""

    probes = True

    def __init__(self, proposer: SmallModel, cost: CostCurve, guess_s: float) -> None:
        self.proposer = proposer
        self._cost, self._luck = cost, ConfidenceAcceptance()
        self._guess_s, self._read_s = guess_s, guess_s / 6
        self._behind_from = -1  # tokens the drafter has read; -1 before its first draft

    def begin(self, request: Request) -> None:
        self._luck.new_text()
        self._behind_from = -1

    def offer(self, state: State, room: int) -> Offer | None:
        room = min(room, MOST_GUESSES, self.proposer.room(state))
        if room < 1:
            return None
        behind = (
            len(state.tokens) if self._behind_from < 0 else len(state.tokens) - self._behind_from
        )
        # reading a prompt is spread over the answer, catching up after a pause is paid at once
        share = 1.0 / HORIZON if self._behind_from < 0 else 1.0
        reading = max(0, behind - 2) * self._read_s * share
        best, path, tokens = (0, 1.0, 0.0), 1.0, 1.0
        for n in range(1, room + 1):
            path *= self._luck.typical
            tokens += path
            seconds = self._cost.seconds(n + 1) + n * self._guess_s + reading
            if tokens / seconds > best[2]:
                best = (n, tokens, tokens / seconds)
        n, tokens, rate = best
        per_token = 1.0 / max(rate, 1.0 / self._cost.seconds(1))
        budget = WhilePays(room, self._luck, self._cost, self._guess_s, per_token)
        return Offer(self, n, tokens, tokens / rate, lambda: self._draft(state, budget))

    def _draft(self, state: State, budget: Budget) -> Draft:
        draft = self.proposer.propose(state, budget)
        timing = self.proposer.timing
        if timing.guesses > 1:
            each = (timing.total_s - timing.first_s) / (timing.guesses - 1)
            self._guess_s += 0.2 * (each - self._guess_s)
        if timing.read_tokens > 16:
            each = max(0.0, timing.first_s - self._guess_s) / timing.read_tokens
            self._read_s += 0.5 * (each - self._read_s)
        self._behind_from = len(state.tokens)
        return draft

    def observe(self, outcome: Outcome) -> None:
        if outcome.draft.source[:1] != (self.proposer.name,):
            return
        accepted = len(outcome.accepted.path) + (outcome.accepted.cut_at is not None)
        for n, confidence in enumerate(self.proposer.confidences[: accepted + 1]):
            self._luck.learn(confidence, n < accepted)

    @property
    def words(self) -> str:
        return f"the draft model is right {self._luck.typical:.0%} of the time"
