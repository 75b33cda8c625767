"""A small model as the planner sees it: each guess costs a pass, and so does unread text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Outcome, State
from edgespec.decoding.request import Request
from edgespec.planning.acceptance import ConfidenceAcceptance
from edgespec.planning.cost import CostCurve
from edgespec.planning.sources import (
    LOOK_AHEAD,
    MOST_GUESSES,
    NO_TAIL,
    NGramSource,
    Offer,
    Tail,
    answered,
    best_length,
    worth,
)
from edgespec.proposers.draft_model import SmallModel

HORIZON = 256  # tokens that an answer without a limit is expected to have
READING = 0.04  # share of an answer's time that reading may cost a model that is still unproven
PATIENCE = 3.0  # times its cost, how much a model must be missed before a dear prompt is read
HOPE, HOPED_GAIN = 0.85, 1.05  # a model this often right must pay this well, or is not tried
FIRST_TRY = 6  # guesses of a model that nothing is known of yet
_KEEP, _EXPECTATION = 0.85, 2.0  # of a past attempt's weight; attempts a prior counts as


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
    """A small model whose drafts an n-gram may carry on for nothing.

    What an attempt brings is measured, not derived: tokens and seconds of the latest attempts,
    with more weight on later ones, start from what the prior promises. Text that it has not read
    is read when that is cheap, or when going without it has cost several times as much.
    """

    probes = True

    def __init__(
        self,
        proposer: SmallModel,
        cost: CostCurve,
        guess_s: float,
        follower: NGramSource | None = None,
    ) -> None:
        self.proposer, self._follower = proposer, follower
        self._cost, self._luck = cost, ConfidenceAcceptance()
        self._guess_s, self._read_s = guess_s, guess_s / 6
        self._read_to = -1  # tokens the drafter has read; -1 before its first draft
        self._drafted, self._tail, self._attempted = EMPTY, NO_TAIL, False
        self._past, self._left = _Past(), HORIZON
        self._missed_s = 0.0  # lost so far by going without it, by its typical luck
        self._hopeful = True
        self.spent_s = 0.0

    def begin(self, request: Request) -> None:
        self._luck.new_text()
        self._past = self._past.halved()
        self._read_to, self._attempted, self._missed_s = -1, False, 0.0
        self._left = request.max_tokens + (request.reply.start if request.reply else 0)
        self._hopeful = worth(self._cost, HOPE, self._guess_s)[0] > HOPED_GAIN

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        room = min(room, MOST_GUESSES, self.proposer.room(state))
        if room < 1:
            return None
        if not self._past.weight:
            room = min(room, FIRST_TRY)
        left = min(HORIZON, self._left - state.index)
        reading_s = self._reading_s(state)
        cheap = self._hopeful and reading_s < READING * left * self._cost.seconds(1)
        first = self._read_to < 0
        paid = self._missed_s >= reading_s * (PATIENCE if first else 1.0)
        if first and not cheap and not (paid and self._missed_s > 0):
            return None
        chances = [self._luck.typical] * room
        n, tokens = best_length(chances, self._cost, pace, self._guess_s)
        n = max(1, n)
        tokens = tokens if tokens > 1 else 1 + chances[0]
        seconds = self._cost.seconds(n + 1) + n * self._guess_s
        tokens, seconds = self._past.blended(tokens, seconds)
        # reading a prompt is spread over the attempts that may follow
        share = 2.0 / max(left, 2) if first else 0.0 if paid else 1.0
        budget = WhilePays(room, self._luck, self._cost, self._guess_s, 1.0 / pace)
        return Offer(
            self,
            tokens,
            seconds + share * reading_s,
            lambda: self._draft(state, budget, pace),
            self._hopeful and (cheap or paid),
        )

    def _reading_s(self, state: State) -> float:
        """Seconds to read what the drafter has not seen; a token or two ride with its pass."""
        return max(0, len(state.tokens) - max(0, self._read_to) - 2) * self._read_s

    def _draft(self, state: State, budget: WhilePays, pace: float) -> Draft:
        self._drafted = draft = self.proposer.propose(state, budget)
        first = self._read_to < 0
        self._attempted, self._read_to, self._missed_s = True, len(state.tokens), 0.0
        self._tail = NO_TAIL
        self._learn_timing()
        self.spent_s = len(draft) * self._guess_s if first else self.proposer.timing.total_s
        if not state.rule.may_drop or not draft:
            return draft
        chances = [self._luck.probability(c) for c in self.proposer.confidences]
        if self._follower is not None and len(draft) < budget.nodes:
            self._tail = self._follower.tail(draft.tokens, budget.nodes - len(draft))
        n, _ = best_length([*chances, *self._tail.chances], self._cost, pace)
        return _followed(draft, self._tail, n)

    def _learn_timing(self) -> None:
        timing = self.proposer.timing
        if timing.guesses > 1:
            each = (timing.total_s - timing.first_s) / (timing.guesses - 1)
            self._guess_s += 0.2 * (each - self._guess_s)
        if timing.read_tokens > 16:
            each = max(0.0, timing.first_s - self._guess_s) / timing.read_tokens
            self._read_s += 0.5 * (each - self._read_s)

    def observe(self, outcome: Outcome) -> None:
        tokens, seconds = len(outcome.accepted.path) + 1, outcome.verify_s + outcome.draft_s
        if self._missed_s or not self._attempted:
            chance = max(self._luck.typical, HOPE) if self._hopeful else self._luck.typical
            each_s = self._cost.seconds(1) / worth(self._cost, chance, self._guess_s)[0]
            self._missed_s = max(0.0, self._missed_s + seconds - tokens * each_s)
        if not self._attempted:
            return
        self._attempted = False
        answers = answered(self._drafted, outcome)
        self._read_to += sum(answers)  # what it guessed right it has read
        for confidence, right in zip(self.proposer.confidences, answers, strict=False):
            self._luck.learn(confidence, right)
        if self._follower is not None and sum(answers) == len(self._drafted):
            told = answered(outcome.draft, outcome)
            self._follower.observe_tail(self._tail, told[len(self._drafted) :])
        seconds = len(self._drafted) * self._guess_s + outcome.verify_s
        self._past = self._past.after(tokens, seconds)

    @property
    def words(self) -> str:
        return f"the draft model is right {self._luck.typical:.0%} of the time"


def _followed(draft: Draft, tail: Tail, n: int) -> Draft:
    """The first `n` nodes of a model's chain and the n-gram's tail behind it."""
    added = tail.tokens[: max(0, n - len(draft))]
    if not added:
        return draft.cut(n)
    return Draft(
        [*draft.tokens, *added],
        range(-1, n - 1),
        [*draft.source, *["ngram"] * len(added)],
        [*draft.q, *[None] * len(added)],
        draft.confidence,
    )


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
