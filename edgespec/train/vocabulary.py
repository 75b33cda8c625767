"""Which of a target's tokens a small drafter knows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Tokens
from edgespec.train.records import Record


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The drafter's ids: 0 to k - 1 for the kept tokens, then one for all the others.

    ids: the target's id of each kept token, int32 [k], ascending. vocab: number of the target's.
    """

    ids: Tokens
    vocab: int

    @property
    def unknown(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """Rows of the drafter's tables, in whole blocks of 32."""
        return (len(self.ids) + 32) // 32 * 32

    def table(self) -> Tokens:
        """The drafter's id of each of the target's, int32 [vocab]."""
        own = np.full(self.vocab, self.unknown, np.int32)
        own[self.ids] = np.arange(len(self.ids), dtype=np.int32)
        return own


def most_common(
    records: Iterable[Record], most: int, vocab: int, always: Collection[int]
) -> Vocabulary:
    """The `most` tokens that answers said most often. always: tokens that are kept whatever."""
    counts = counted(records, vocab)
    counts[list(always)] = counts.sum() + 1
    best = np.argsort(-counts, kind="stable")[:most]
    return Vocabulary(np.sort(best[counts[best] > 0]).astype(np.int32), vocab)


def counted(records: Iterable[Record], vocab: int) -> NDArray[np.int64]:
    """How often answers said each token, int64 [vocab]."""
    counts = np.zeros(vocab, np.int64)
    for record in records:
        counts += np.bincount(record.answer, minlength=vocab)
    return counts
