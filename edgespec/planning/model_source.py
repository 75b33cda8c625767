"""A small model as the planner sees it: each guess costs a pass, and so does unread text.

What it held likely beside a guess costs only rows; a chain is the tree in which none pays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from edgespec.decoding.accept import Guessed
from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Outcome, State
from edgespec.decoding.request import Request
from edgespec.planning.acceptance import ConfidenceAcceptance
from edgespec.planning.beside import Alone, Beside
from edgespec.planning.cost import CostCurve
from edgespec.planning.sources import (
    LOOK_AHEAD,
    MOST_GUESSES,
    NO_TAIL,
    NGramSource,
    Offer,
    answered,
    best_length,
    best_size,
    worth,
)
from edgespec.proposers.draft_model import RIDES_ALONG, SmallModel
from edgespec.proposers.growing import GrowingTree, part

HORIZON = 256  # tokens that an answer without a limit is expected to have
READING = 0.04  # share of an answer's time that reading may cost a model that is still unproven
PATIENCE = 3.0  # times its cost, how much a model must be missed before a dear prompt is read
HOPED_GAIN = 1.05  # a model as often right as hoped must pay this well, or is not tried
FIRST_TRY = 6  # guesses of a model that nothing is known of yet
_LOOKING_S = 1e-3  # a guess that takes less is made sooner than an n-gram is asked
_KEEP, _EXPECTATION = 0.92, 2.0  # of a past attempt's weight; attempts a prior counts as


_READS_A_GUESS = 6  # tokens read in the time of a guess, where that was not measured


@dataclass(frozen=True, slots=True)
class DraftCost:
    """Seconds of a draft model: for one guess, and to read one token of a text; 0 = not known.

    Reading is wide work, and how much cheaper it is than guessing differs a hundredfold between
    processors and graphics cards.
    """

    guess_s: float
    read_s: float = 0.0


@dataclass(slots=True)
class WhilePays:
    """Draft on while some more guesses are expected to save more time than they cost.

    seconds_per_token: what a token costs at the best rate known now. beside: how often siblings
    are right, of each rank, where the guess is wrong. follows: chances of what an n-gram would
    put behind the guesses so far for nothing.
    """

    nodes: int
    luck: ConfidenceAcceptance
    cost: CostCurve
    guess_s: float
    seconds_per_token: float
    beside: Sequence[float] = ()
    follows: Callable[[], Sequence[float]] = tuple

    def another(self, confidences: Sequence[float]) -> bool:
        n = len(confidences)
        if n == 0:
            return self.nodes > 0
        path = 1.0
        for confidence in confidences:
            path *= self.luck.probability(confidence)
        gain, here_s = 0.0, self.cost.seconds(n + 1)
        free = self.follows()
        if free and path * free[0] * self.seconds_per_token > self.cost.seconds(n + 2) - here_s:
            return n < self.nodes and self._beats(free, path)
        # beyond a dear width may lie a cheap one
        for more in range(1, min(self.nodes - n, LOOK_AHEAD) + 1):
            rows_s = self.cost.seconds(n + 1 + more) - here_s
            gain += self._siblings_s(path, rows_s / more)
            path *= self.luck.typical
            gain += path * self.seconds_per_token
            if gain > more * self.guess_s + rows_s:
                return True
        return False

    def _beats(self, free: Sequence[float], path: float) -> bool:
        """Whether one more guess is worth its time where an n-gram would go on for nothing: it may
        be right more often, and all that the n-gram says behind it stands or falls with it."""
        behind: float = sum(accumulate(free, mul)) / free[0]
        surer = path * (self.luck.typical - free[0])
        return surer * behind * self.seconds_per_token > self.guess_s

    def _siblings_s(self, path: float, row_s: float) -> float:
        """Seconds that siblings at the end of `path` save, as far as they pay their rows."""
        wrong_s = path * (1.0 - self.luck.typical) * self.seconds_per_token
        return sum(max(0.0, wrong_s * right - row_s) for right in self.beside)


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
        takes: DraftCost,
        follower: NGramSource | None = None,
        beside: Beside | None = None,
    ) -> None:
        self.proposer, self._follower = proposer, follower
        self._cost, self._luck = cost, ConfidenceAcceptance()
        self._beside = beside or Alone()
        self._others: Sequence[Sequence[Guessed]] = ()  # beside the guesses of _drafted
        self._guess_s = takes.guess_s
        self._read_s = takes.read_s or takes.guess_s / _READS_A_GUESS
        self._read_to = -1  # tokens it has read in this answer; -1 before its first draft
        self._since_anew = 0  # attempts since it last had to begin anew
        self._drafted, self._tail, self._attempted = EMPTY, NO_TAIL, False
        self._past, self._left = _Past(), HORIZON
        self._missed_s = 0.0  # lost so far by going without it, by its typical luck
        self._hopeful = True
        self.spent_s = 0.0

    def begin(self, request: Request) -> None:
        self._luck.new_text()
        self._beside.new_text()
        self._past = self._past.halved()
        self._read_to, self._attempted, self._missed_s = -1, False, 0.0
        self._left = request.max_tokens + (request.reply.start if request.reply else 0)
        self._hopeful = worth(self._cost, self.proposer.hope, self._guess_s)[0] > HOPED_GAIN

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        room = min(room, MOST_GUESSES, self.proposer.room(state))
        if room < 1:
            return None
        if not self._past.weight:
            room = min(room, FIRST_TRY)
        left = min(HORIZON, self._left - state.index)
        unread = self.proposer.unread(state.tokens)
        reading_s, anew = self._reading_s(unread), self._begins_anew(state, unread)
        cheap = self._hopeful and reading_s < READING * left * self._cost.seconds(1)
        first = self._read_to < 0
        paid = self._missed_s >= reading_s * (PATIENCE if first else 1.0)
        if first and not cheap and not (paid and self._missed_s > 0):
            return None
        chances = [self._typical] * room
        n = max(1, best_length(chances, self._cost, pace, self._guess_s)[0])
        rows, tokens = self._expected(n, room, pace)
        seconds = self._cost.seconds(rows + 1) + n * self._guess_s
        tokens, seconds = self._past.blended(tokens, seconds)
        # reading a prompt is spread over the attempts that may follow, and reading it again over as
        # many as followed the last time
        spread = 2.0 / max(left, 2) if first else 1.0 / max(self._since_anew, 1) if anew else 1.0
        share = 0.0 if paid and not anew else spread
        typical = self._beside.typical if state.rule.trees else ()
        follows = self._follows if state.rule.may_drop and self._guess_s > _LOOKING_S else tuple
        budget = WhilePays(
            room, self._luck, self._cost, self._guess_s, 1.0 / pace, typical, follows
        )
        return Offer(
            self,
            tokens,
            seconds + share * reading_s,
            lambda: self._draft(state, budget, pace, spread if anew else None),
            self._hopeful and (cheap or paid) and (first or not anew),
        )

    def _follows(self) -> Sequence[float]:
        """Chances of what the n-gram would put behind the guesses that are being made."""
        if self._follower is None:
            return ()
        return self._follower.tail(self.proposer.guesses, LOOK_AHEAD).chances

    def _expected(self, guesses: int, room: int, pace: float) -> tuple[int, float]:
        """Rows and tokens of a draft of so many guesses, before any of them is made."""
        paths = [self._luck.typical**n for n in range(guesses + 1)]
        wrong = 1.0 - self._luck.typical
        beside = (path * wrong * right for path in paths[:-1] for right in self._beside.typical)
        nodes = sorted([*paths[1:], *beside], reverse=True)[:room]
        rows, tokens = best_size(nodes, self._cost, pace)
        return (rows, tokens) if rows else (1, 1.0 + nodes[0])

    @property
    def _typical(self) -> float:
        """How often it is right; before its first try no more than hoped."""
        typical = self._luck.typical
        return typical if self._past.weight else min(typical, self.proposer.hope)

    def _reading_s(self, unread: int) -> float:
        """Seconds to read what the drafter has not seen; a token or two ride with its pass."""
        return max(0, unread - RIDES_ALONG) * self._read_s

    def _begins_anew(self, state: State, unread: int) -> bool:
        """Whether it must read more than it missed while it rested: a prompt, or another part of
        a text that is too long for it."""
        missed = len(state.tokens) - self._read_to
        return self._read_to < 0 or unread > missed + RIDES_ALONG

    def _draft(self, state: State, budget: WhilePays, pace: float, spread: float | None) -> Draft:
        """spread: where it begins anew, the share of its reading that this draft has to earn."""
        self._since_anew = self._since_anew + 1 if spread is None else 0
        self._drafted = draft = self.proposer.propose(state, budget)
        self._attempted, self._read_to, self._missed_s = True, len(state.tokens), 0.0
        self._tail, self._others = NO_TAIL, self.proposer.others if state.rule.trees else ()
        self._learn_timing()
        guessing_s = len(draft) * self._guess_s
        reading_s = max(0.0, self.proposer.timing.total_s - guessing_s)
        self.spent_s = guessing_s + (1.0 if spread is None else spread) * reading_s
        if not state.rule.may_drop or not draft:
            return draft
        chances = [self._luck.probability(c) for c in self.proposer.confidences]
        if self._follower is not None and len(draft) < budget.nodes:
            self._tail = self._follower.tail(draft.tokens, budget.nodes - len(draft))
        whole, tree = self._whole(chances)
        nodes = tree.best(budget.nodes)
        n, _ = best_size([tree.chance[node] for node in nodes], self._cost, pace)
        return part(whole, sorted(nodes[:n]))

    def _whole(self, chances: Sequence[float]) -> tuple[Draft, GrowingTree]:
        """The model's guesses, their siblings and the n-gram's tail: all that may be verified, and
        the same with chances. chances: of the model's guesses."""
        draft, tail, tree = self._drafted, self._tail, GrowingTree()
        stated = list(self.proposer.confidences)
        for node, (token, chance) in enumerate(zip(draft.tokens, chances, strict=True)):
            tree.add(node - 1, token, chance)
        for node, others in enumerate(self._others):
            sure = [stated[node], *(other.confidence for other in others)]
            right = self._beside.chances(chances[node], sure)
            for other, chance in zip(others, right, strict=False):
                tree.add(node - 1, other.token, chance)
                stated.append(other.confidence)
        source = [self.proposer.name] * len(tree) + ["ngram"] * len(tail.tokens)
        above = len(draft) - 1
        for token, chance in zip(tail.tokens, tail.chances, strict=True):
            above = tree.add(above, token, chance)
        q = [*draft.q, *[None] * (len(tree) - len(draft))]
        return Draft(tree.tokens, tree.parents, source, q, stated), tree

    def _learn_timing(self) -> None:
        timing = self.proposer.timing
        if timing.guesses > 1:
            each = (timing.total_s - timing.first_s) / (timing.guesses - 1)
            self._guess_s += 0.2 * (each - self._guess_s)
        if timing.read_tokens > 16:
            each = max(0.0, timing.first_s - self._guess_s) / timing.read_tokens
            self._read_s += 0.5 * (each - self._read_s)

    def observe(self, outcome: Outcome) -> None:
        tokens = len(outcome.accepted.path) + 1
        if self._missed_s or not self._attempted:
            chance = max(self._typical, self.proposer.hope) if self._hopeful else self._typical
            each_s = self._cost.seconds(1) / worth(self._cost, chance, self._guess_s)[0]
            lost_s = outcome.verify_s + outcome.draft_s - tokens * each_s
            self._missed_s = max(0.0, self._missed_s + lost_s)
        if not self._attempted:
            return
        self._attempted = False
        answers = answered(self._drafted, outcome)
        self._read_to += sum(answers)  # what it guessed right it has read
        for confidence, right in zip(self.proposer.confidences, answers, strict=False):
            self._luck.learn(confidence, right)
        if answers[-1:] == [False] and self._others:
            self._learn_siblings(len(answers) - 1, outcome.accepted.tokens(outcome.draft))
        if self._follower is not None and sum(answers) == len(self._drafted):
            chain = Draft.chain([*self._drafted.tokens, *self._tail.tokens], self.proposer.name)
            told = answered(chain, outcome)
            self._follower.observe_tail(self._tail, told[len(self._drafted) :])
        took_s = outcome.verify_s
        if outcome.draft and outcome.draft.source[0] != self.proposer.name:
            # none of its guesses was worth a row, and what another's draft won is not its own
            tokens, took_s = 1, self._cost.seconds(1)
        self._past = self._past.after(tokens, took_s + len(self._drafted) * self._guess_s)

    def _learn_siblings(self, place: int, told: Sequence[int]) -> None:
        """The guess at `place` was wrong; `told` is the text from the first guess on."""
        others = self._others[place]
        sure = [self.proposer.confidences[place], *(other.confidence for other in others)]
        ranks = (rank for rank, other in enumerate(others, 1) if other.token == told[place])
        self._beside.learn(sure, next(ranks, -1))

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
