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
_KEEP, _EXPECTATION = 0.85, 2.0  # of a past attempt's weight; attempts a prior counts as
HORIZON = 256  # tokens that an answer without a limit is expected to have
WAIT = 8  # tokens after which a dear prompt may be read, when free guesses have shown their worth
READING = 0.04  # share of an answer's time that reading its prompt with a drafter may cost


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

    def gain(self, pace: float) -> float:
        """Tokens won over what its time would bring at `pace`, tokens a second."""
        return self.tokens - pace * self.seconds


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


class NGramSource:
    """Free guesses, priced by match length; scored in the shadow when another source drafts."""

    probes = False
    spent_s = 0.0

    def __init__(self, cost: CostCurve) -> None:
        self.proposer = NGram()
        self._cost, self._luck = cost, MatchAcceptance()
        self._offered = EMPTY

    def begin(self, request: Request) -> None:
        self._offered = EMPTY
        self._luck.new_text()

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        self._offered = self.proposer.propose(state, UpTo(min(room, MOST_GUESSES)))
        draft, match = self._offered, self.proposer.match_length
        if not draft:
            return None
        chances = [self._luck.probability(match + n) for n in range(len(draft))]
        n, tokens = _best_length(chances, self._cost, pace)
        n = max(1, n)
        tokens = tokens if tokens > 1 else 1 + chances[0]
        return Offer(self, tokens, self._cost.seconds(n + 1), lambda: draft.cut(n))

    def observe(self, outcome: Outcome) -> None:
        draft, self._offered = self._offered, EMPTY
        for n, right in enumerate(_answered(draft, outcome)):
            self._luck.learn(self.proposer.match_length + n, right)

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
    """A small model: each guess costs a pass of its own, and the text it missed must be read.

    What an attempt brings is measured, not derived: tokens and seconds of the latest attempts,
    with more weight on later ones, start from what the prior promises.
    """

    probes = True

    def __init__(self, proposer: SmallModel, cost: CostCurve, guess_s: float) -> None:
        self.proposer = proposer
        self._cost, self._luck = cost, ConfidenceAcceptance()
        self._guess_s, self._read_s = guess_s, guess_s / 6
        self._begun = -1  # reply index at the first question; -1 before it
        self._read_to = -1  # tokens the drafter has read; -1 before its first draft
        self._drafted, self._attempted = EMPTY, False
        self._past, self._left = _Past(), HORIZON
        self.spent_s = 0.0

    def begin(self, request: Request) -> None:
        self._luck.new_text()
        self._past = self._past.halved()
        self._read_to, self._begun, self._attempted = -1, -1, False
        self._left = request.max_tokens + (request.reply.start if request.reply else 0)

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        room = min(room, MOST_GUESSES, self.proposer.room(state))
        if room < 1:
            return None
        chances = [self._luck.typical] * room
        n, tokens = _best_length(chances, self._cost, pace, self._guess_s)
        n = max(1, n)
        tokens = tokens if tokens > 1 else 1 + chances[0]
        seconds = self._cost.seconds(n + 1) + n * self._guess_s
        tokens, seconds = self._past.blended(tokens, seconds)
        if self._begun < 0:
            self._begun = state.index
        left = min(HORIZON, self._left - state.index)
        reading_s, share = self._reading_s(state), 1.0
        if self._read_to < 0:  # reading a prompt is spread over the attempts that may follow
            share = 2.0 / max(left, 2)
        worth_trying = reading_s < READING * left * self._cost.seconds(1)
        if self._read_to < 0 and not worth_trying and state.index - self._begun < WAIT:
            return None
        budget = WhilePays(room, self._luck, self._cost, self._guess_s, 1.0 / pace)
        return Offer(
            self,
            tokens,
            seconds + share * reading_s,
            lambda: self._draft(state, budget, pace),
            worth_trying,
        )

    def _reading_s(self, state: State) -> float:
        """Seconds to read what the drafter has not seen; a token or two ride with its pass."""
        return max(0, len(state.tokens) - max(0, self._read_to) - 2) * self._read_s

    def _draft(self, state: State, budget: Budget, pace: float) -> Draft:
        self._drafted = draft = self.proposer.propose(state, budget)
        first = self._read_to < 0
        self._attempted, self._read_to = True, len(state.tokens)
        timing = self.proposer.timing
        if timing.guesses > 1:
            each = (timing.total_s - timing.first_s) / (timing.guesses - 1)
            self._guess_s += 0.2 * (each - self._guess_s)
        if timing.read_tokens > 16:
            each = max(0.0, timing.first_s - self._guess_s) / timing.read_tokens
            self._read_s += 0.5 * (each - self._read_s)
        self.spent_s = len(draft) * self._guess_s if first else timing.total_s
        if not state.rule.may_drop:
            return draft
        chances = [self._luck.probability(c) for c in self.proposer.confidences]
        return draft.cut(_best_length(chances, self._cost, pace)[0])

    def observe(self, outcome: Outcome) -> None:
        if not self._attempted:
            return
        self._attempted = False
        answers = _answered(self._drafted, outcome)
        for confidence, right in zip(self.proposer.confidences, answers, strict=False):
            self._luck.learn(confidence, right)
        seconds = len(self._drafted) * self._guess_s + outcome.verify_s
        self._past = self._past.after(len(outcome.accepted.path) + 1, seconds)

    @property
    def words(self) -> str:
        return f"the draft model is right {self._luck.typical:.0%} of the time"


@dataclass(frozen=True, slots=True)
class _Past:
    """Attempts so far, later ones counting more."""

    weight: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0

    def after(self, tokens: int, seconds: float) -> _Past:
        keep = _KEEP
        return _Past(
            keep * self.weight + 1, keep * self.tokens + tokens, keep * self.seconds + seconds
        )

    def halved(self) -> _Past:
        return _Past(self.weight / 2, self.tokens / 2, self.seconds / 2)

    def blended(self, tokens: float, seconds: float) -> tuple[float, float]:
        """Means of the past and of an expectation that counts as some attempts."""
        whole = self.weight + _EXPECTATION
        return (
            (self.tokens + _EXPECTATION * tokens) / whole,
            (self.seconds + _EXPECTATION * seconds) / whole,
        )


def _best_length(
    chances: Sequence[float], cost: CostCurve, pace: float, guess_s: float = 0.0
) -> tuple[int, float]:
    """How many guesses gain the most over `pace`, and the tokens then expected; 0 if none do."""
    best_n, best_tokens, best_gain = 0, 1.0, 1.0 - pace * cost.seconds(1)
    path, tokens = 1.0, 1.0
    for n, chance in enumerate(chances, 1):
        path *= chance
        tokens += path
        gain = tokens - pace * (cost.seconds(n + 1) + n * guess_s)
        if gain > best_gain:
            best_n, best_tokens, best_gain = n, tokens, gain
    return best_n, best_tokens


def _answered(draft: Draft, outcome: Outcome) -> list[bool]:
    """Which guesses of a chain were right, as far as the committed tokens tell: whoever drafted
    this round, they say what really followed."""
    answers: list[bool] = []
    for token, told in zip(draft.tokens, outcome.accepted.tokens(outcome.draft), strict=False):
        answers.append(token == told)
        if token != told:
            break
    return answers
