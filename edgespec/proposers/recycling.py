"""Guesses by what nearly followed each token the last time it was said.

Every row of the target's scores tells what could have followed, of which one token is said and
the rest is thrown away. Kept in a small table, these are guesses without a second model.
Source: token recycling, arXiv:2408.08696.
"""

from __future__ import annotations

from heapq import heappop, heappush
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.history import common_prefix
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import best_tokens
from edgespec.proposers.growing import GrowingTree

SUCCESSORS = 8
PLACES = 1 << 15  # tokens that are remembered; with their successors 1.5 MB
TRUST = 0.5  # how often what could have followed before can follow now
_SPREAD = 0x9E3779B1  # so that tokens of a large vocabulary do not take each other's places


class Successors:
    """The likeliest tokens after each token, as of the last time it was said.

    A token that takes the place of another one is the one that is remembered.
    """

    def __init__(self) -> None:
        self._owner = np.full(PLACES, -1, dtype=np.int32)
        self._ids = np.zeros((PLACES, SUCCESSORS), dtype=np.int32)
        self._nats = np.zeros((PLACES, SUCCESSORS), dtype=np.float16)

    def clear(self) -> None:
        self._owner.fill(-1)

    def learn(self, token: int, row: Row) -> None:
        """`row`: the target's scores behind `token`."""
        ids, at = best_tokens(row, SUCCESSORS), _place(token)
        self._owner[at] = token
        self._ids[at, : len(ids)] = ids
        self._ids[at, len(ids) :] = -1
        self._nats[at, : len(ids)] = np.maximum(row[ids] - row[ids[0]], -60.0)

    def of(self, token: int) -> tuple[Tokens, NDArray[np.float64]] | None:
        """Ids and their scores in nats, best first; None where nothing is remembered."""
        at = _place(token)
        if self._owner[at] != token:
            return None
        ids = self._ids[at]
        known = ids >= 0
        return ids[known], self._nats[at][known].astype(np.float64)


def _place(token: int) -> int:
    return (token * _SPREAD & 0xFFFFFFFF) >> 17


class Recycling:
    """A tree of successors of successors; where no tree can be judged, the chain of the best.

    Learns from rows of committed tokens only, since those of rejected guesses are the answers to
    questions that were not asked. spent_s: what learning and guessing cost in the latest round.
    keeps: whether what one conversation taught is there in the next one.
    """

    name, note = "recycling", ""

    def __init__(self, memory: Successors | None = None, *, keeps: bool = False) -> None:
        self.memory, self._keeps = memory or Successors(), keeps
        self._prompt: Tokens = np.empty(0, dtype=np.int32)
        self.spent_s = 0.0
        self._last = -1
        self._made = 0

    @property
    def plan(self) -> str:
        if not self._made:
            return "recycling: the last token was not said before"
        return f"recycling: a tree of {self._made}"

    def begin(self, request: Request) -> None:
        goes_on = common_prefix(self._prompt, request.prompt) == len(self._prompt)
        if not (goes_on or self._keeps):
            self.memory.clear()
        self._prompt = request.prompt
        self._last, self._made = int(request.prompt[-1]), 0

    def propose(self, state: State, budget: Budget) -> Draft:
        started_s = perf_counter()
        self._last = int(state.tokens[-1])
        draft = self._tree(state, budget.nodes)
        self._made = len(draft)
        self.spent_s = perf_counter() - started_s
        return draft

    def observe(self, outcome: Outcome) -> None:
        started_s = perf_counter()
        token = self._last
        for node in (ROOT, *outcome.accepted.path):
            if node != ROOT:
                token = outcome.draft.tokens[node]
            self.memory.learn(token, outcome.scores.logits(node))
        self._last = outcome.accepted.next_token
        self.spent_s += perf_counter() - started_s

    def end(self) -> None:
        pass

    def _tree(self, state: State, most: int) -> Draft:
        """The likeliest nodes first, each followed by its successors."""
        tree, waiting, chosen = GrowingTree(), list[tuple[float, int]](), 0
        self._follow(tree, ROOT, state, waiting)
        while waiting and chosen < most:
            _, node = heappop(waiting)
            chosen += 1
            self._follow(tree, node, state, waiting)
        return tree.draft(chosen, self.name) if chosen else EMPTY

    def _follow(
        self, tree: GrowingTree, node: int, state: State, waiting: list[tuple[float, int]]
    ) -> None:
        known = self.memory.of(self._last if node == ROOT else tree.tokens[node])
        if known is None:
            return
        ids, scores = known
        shares = TRUST * state.rule.shares(ids, scores, state.index + len(tree.line(node)))
        if not state.rule.trees:
            ids, shares = ids[:1], shares[:1]
        for token, share in zip(ids.tolist(), shares.tolist(), strict=True):
            child = tree.add(node, token, share)
            heappush(waiting, (-tree.chance[child], child))
