"""Trees as the planner sees them: every node has a chance, and must be worth its row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.planning.acceptance import StatedAcceptance
from edgespec.planning.cost import CostCurve
from edgespec.planning.sources import MOST_GUESSES, Offer, best_size
from edgespec.proposers.growing import GrowingTree, part, stated

OWED = 2.0  # plain passes that guessing may cost more than it has won, before it rests


class Charged:
    """A proposer whose own time counts, and that can be sent to rest.

    took_s: all its time. spent_s: since the last time it was asked for.
    """

    def __init__(self, inner: Proposer) -> None:
        self.inner, self.name = inner, inner.name
        self.resting = False
        self.took_s = self._spent_s = 0.0

    @property
    def note(self) -> str:
        return self.inner.note

    @property
    def plan(self) -> str:
        return self.inner.plan

    def begin(self, request: Request) -> None:
        self.inner.begin(request)
        self.resting, self._spent_s = False, 0.0

    def propose(self, state: State, budget: Budget) -> Draft:
        if self.resting:
            return EMPTY
        started_s = perf_counter()
        draft = self.inner.propose(state, budget)
        self._took(perf_counter() - started_s)
        return draft

    def observe(self, outcome: Outcome) -> None:
        if self.resting:
            return
        started_s = perf_counter()
        self.inner.observe(outcome)
        self._took(perf_counter() - started_s)

    def end(self) -> None:
        self.inner.end()

    def take_spent_s(self) -> float:
        spent_s, self._spent_s = self._spent_s, 0.0
        return spent_s

    def _took(self, seconds: float) -> None:
        self.took_s += seconds
        self._spent_s += seconds


class TreeSource:
    """Trees of a proposer that guesses without a model of its own.

    A node is kept where its chance times the time of a round outweighs its share of the pass. How
    often guesses of some confidence are right is learned from every round, whoever drafted; what
    the guessing itself costs is booked against what it won, and beyond a bound it rests for the
    answer.
    """

    probes = False

    def __init__(self, proposer: Proposer, cost: CostCurve) -> None:
        self.proposer = Charged(proposer)
        self._cost, self._luck = cost, StatedAcceptance()
        self._offered, self._used = EMPTY, EMPTY
        self._won_s = self._owed_s = self.spent_s = 0.0

    def begin(self, request: Request) -> None:
        self._offered = self._used = EMPTY
        self._won_s = self._owed_s = 0.0
        self._luck.new_text()

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        self._used = EMPTY
        draft = self.proposer.propose(state, UpTo(min(room, MOST_GUESSES)))
        self._offered = draft = replace(draft, confidence=stated(draft))
        if not draft:
            return None
        tree = self._weighed(draft)
        chances = [tree.chance[node] for node in tree.best(len(tree))]
        n, tokens = best_size(chances, self._cost, pace)
        n, tokens = (n, tokens) if n else (1, 1.0 + chances[0])
        return Offer(self, tokens, self._cost.seconds(n + 1), lambda: self._take(tree, n))

    def observe(self, outcome: Outcome) -> None:
        self._learn(self._offered, outcome.accepted.tokens(outcome.draft))
        plain_s = self._cost.seconds(1)
        if self._used and outcome.draft:
            self._won_s += len(outcome.accepted.path) * plain_s + plain_s - outcome.verify_s
        self.spent_s = self.proposer.take_spent_s()
        self._owed_s += self.spent_s
        # bad luck with drafts is the planner's matter; here it is what guessing itself takes
        if self._owed_s - max(0.0, self._won_s) > OWED * plain_s:
            self.proposer.resting = True
        self._offered = self._used = EMPTY

    @property
    def words(self) -> str:
        return self.proposer.plan

    def _weighed(self, draft: Draft) -> GrowingTree:
        """The draft with chances in place of confidences. Where those of siblings exceed one, it
        is the least sure that have less."""
        sure, left, right = draft.confidence, dict[int, float](), dict[int, float]()
        for node in sorted(range(len(draft)), key=lambda node: -sure[node]):
            room = left.get(draft.parents[node], 1.0)
            right[node] = min(room, self._luck.probability(sure[node]))
            left[draft.parents[node]] = room - right[node]
        tree = GrowingTree()
        for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            tree.add(parent, token, right[node])
        return tree

    def _take(self, tree: GrowingTree, n: int) -> Draft:
        nodes = sorted(tree.best(n))
        self._used = taken = part(self._offered, nodes)
        return taken

    def _learn(self, draft: Draft, told: Sequence[int]) -> None:
        """Of the guesses for each place that the text came to, which was right."""
        for node, token in zip([ROOT, *draft.saying(told)], told, strict=False):
            for child in draft.children(node):
                self._luck.learn(draft.confidence[child], draft.tokens[child] == token)
