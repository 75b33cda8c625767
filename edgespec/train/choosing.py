"""Choosing the next token of many texts at once, and keeping what nearly was chosen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Row, Tokens
from edgespec.train.records import NEAR

_STRIDE = 64  # every such score is looked at to guess where the best few begin
_SAMPLED = 4  # of the looked-at scores that shall lie above that


def nearest(rows: Row) -> tuple[Tokens, Row]:
    """The NEAR best tokens of each row, best first, and their scores relative to the best.

    rows: float32 [n, vocab]. Returns: int32 [n, NEAR], float32 [n, NEAR].
    """
    count, vocab = rows.shape
    ids = np.empty((count, NEAR), np.int32)
    scores = np.empty((count, NEAR), np.float32)
    for n, row in enumerate(rows):
        near = np.arange(vocab)
        if vocab > 4096:
            sample = row[::_STRIDE]
            edge = np.partition(sample, -_SAMPLED)[-_SAMPLED]
            found = np.flatnonzero(row >= edge)
            near = found if len(found) >= NEAR else near
        values = row[near]
        best = np.argpartition(values, -NEAR)[-NEAR:]
        best = best[np.lexsort((near[best], -values[best]))]
        ids[n], scores[n] = near[best], values[best] - values[best[0]]
    return ids, scores


def drawn(
    scores: Row, temperatures: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """For each row of nearest(), which of its tokens is said: index into it.

    Temperature 0 takes the best; else top-p 0.95 and min-p 0.05 cut as the default sampler does.
    """
    warm = np.maximum(temperatures, 1e-6)[:, None]
    p = np.exp(scores / warm)
    p /= p.sum(axis=1, keepdims=True)
    kept = (np.cumsum(p, axis=1) - p < 0.95) & (p >= 0.05 * p[:, :1])
    cumulative = np.cumsum(np.where(kept, p, 0.0), axis=1)
    u = rng.random(len(scores)) * cumulative[:, -1]
    at = (cumulative <= u[:, None]).sum(axis=1)
    return np.where(temperatures <= 0, 0, np.minimum(at, scores.shape[1] - 1))
