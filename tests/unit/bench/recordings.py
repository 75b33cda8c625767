"""Recorded answers and costs that tests of several files share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from edgespec.bench.recorded import Recorded

T1 = 0.1


def steep(rows: int) -> float:
    """Every row costs a plain pass."""
    return T1 * rows


def level(_rows: int) -> float:
    """Wide passes cost no more than narrow ones."""
    return T1


def cheap(rows: int) -> float:
    """Four rows cost 1.1 plain passes."""
    return T1 * (1 + 0.1 * (rows - 1) / 3)


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


def beside(answer: Recorded, right: Sequence[bool]) -> Recorded:
    """The same, with another token noted beside each guess; right: where a guess is wrong, whether
    that one is what follows."""
    assert answer.guesses is not None
    assert answer.confidences is not None
    follows = np.array(right) & (answer.guesses != answer.reply)
    others = np.where(follows, answer.reply, answer.reply + 2).astype(np.int32)
    left = (0.6 * (1 - answer.confidences)).astype(np.float32)
    return replace(
        answer,
        noted=np.stack([answer.guesses, others], axis=1),
        shares=np.stack([answer.confidences, left], axis=1),
    )
