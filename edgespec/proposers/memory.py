"""Guesses by what this model said in earlier answers, where the text itself has no match.

Source of the idea of a second, larger source beside the text: arXiv:2411.04975.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.decoding.request import Request
from edgespec.proposers.ngram import LONGEST, NOT_A_TOKEN, Match, SuffixIndex
from edgespec.proposers.ngram_tree import NGramTree

MOST_TOKENS = 100_000  # of earlier answers; their index takes some 15 MB
SHORTEST = 2  # match that is a reason to guess


class Memory(NGramTree):
    """An n-gram over earlier answers; of the present text only the end is looked up.

    answers: token ids, the latest first; what goes beyond MOST_TOKENS is left out.
    """

    name, trust = "memory", 0.8

    def __init__(self, answers: Iterable[Sequence[int]], shortest: int = SHORTEST) -> None:
        super().__init__(shortest)
        self._index = SuffixIndex(_in_a_row(answers))
        self._added = 0  # tokens of the present text behind them

    @property
    def plan(self) -> str:
        if not self.match.length:
            return "memory: no earlier answer went like this"
        return f"memory: the last {self.match.length} tokens are in an earlier answer"

    def begin(self, request: Request) -> None:
        self._index.retract(self._added)
        self._added = 0
        self._seen, self._track, self.match = -1, -1, Match()

    def _read(self, tokens: Tokens) -> None:
        # a longer match than that is not told from one of this length
        start = max(0, len(tokens) - LONGEST) if self._seen < 0 else self._seen
        self._index.extend(tokens[start:].tolist())
        self._added += len(tokens) - start
        self._seen = len(tokens)


def _in_a_row(answers: Iterable[Sequence[int]]) -> Tokens:
    """The latest answers, the very latest at the end, each with a border behind it; the last
    border is like no other, so that no match reaches from the present text across it."""
    kept, room = list[Sequence[int]](), MOST_TOKENS
    for answer in answers:
        if len(answer) >= room:
            break
        kept.append(answer)
        room -= len(answer) + 1
    parts = chain.from_iterable((*answer, NOT_A_TOKEN) for answer in reversed(kept))
    row = np.fromiter(parts, dtype=np.int32)
    row[-1:] = NOT_A_TOKEN - 1
    return row
