"""Recorded answers and costs that tests of several files share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgespec.bench.recorded import Recorded

T1 = 0.1


def steep(rows: int) -> float:
    """Every row costs a plain pass."""
    return T1 * rows


def level(_rows: int) -> float:
    """Wide passes cost no more than narrow ones."""
    return T1


def usual(rows: int) -> float:
    """Four rows cost 1.8 plain passes."""
    return T1 * (0.74 + 0.26 * rows)


def fresh(length: int, first: int = 100) -> list[int]:
    """Tokens that never repeat."""
    return list(range(first, first + length))


def recorded(
    reply: Sequence[int],
    right: Sequence[bool] | None = None,
    prompt: Sequence[int] = (1, 2, 3),
    confidence: float = 0.9,
) -> Recorded:
    """An answer; right: at which places a draft model guesses it, None = no draft model."""
    ids, tokens = np.array(prompt, np.int32), np.array(reply, np.int32)
    if right is None:
        return Recorded("one", "test", ids, tokens)
    guesses = np.where(np.array(right), tokens, tokens + 1).astype(np.int32)
    sure = np.where(np.array(right), confidence, 1 - confidence).astype(np.float32)
    return Recorded("one", "test", ids, tokens, guesses, sure)
