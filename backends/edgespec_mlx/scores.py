"""The scores of one pass, on the device until they are asked for."""

from __future__ import annotations

import math
from typing import Any

import mlx.core as mx
import numpy as np

from edgespec.decoding.draft import ROOT, Row
from edgespec.errors import BackendFailed


class MlxScores:
    """Rows [n, vocab] of one pass. What is moved: every row's best token, and rows asked for.

    looked_at: whether a whole row was asked for. hidden: hidden states of these rows by layer,
    each [n, width], where the session watches some. first: the node of the first row.
    """

    first = ROOT

    def __init__(self, rows: mx.array, hidden: dict[int, mx.array], stream: Any) -> None:
        self._rows, self.hidden, self._stream = rows, hidden, stream
        self.best = mx.argmax(rows, axis=-1)  # the first among equals
        self._best_scores = mx.take_along_axis(rows, self.best[:, None], axis=-1)[:, 0]
        self._moved: list[int] | None = None
        self.looked_at = False

    def arrays(self) -> list[mx.array]:
        return [self.best, self._best_scores, *self.hidden.values()]

    def move(self) -> list[int]:
        """Wait for the pass and fetch the best tokens, one small array.

        Nothing is computed for it that would have to wait behind the next pass.
        """
        if self._moved is None:
            mx.eval(self.arrays())
            if not all(math.isfinite(score) for score in _numbers(self._best_scores)):
                raise BackendFailed(
                    "The model returned scores that are no numbers; its files may be damaged, or"
                    " their number format does not suit this chip. Try another quantisation."
                )
            self._moved = [int(token) for token in _numbers(self.best)]
        return self._moved

    def top(self, node: int) -> int:
        return self.move()[self._row(node)]

    def logits(self, node: int) -> Row:
        self.looked_at = True
        with mx.stream(self._stream):
            row: Row = np.asarray(self._rows[self._row(node)].astype(mx.float32))
        return row

    def _row(self, node: int) -> int:
        assert node >= self.first, "scores of an earlier pass"
        return node - self.first


def _numbers(array: mx.array) -> list[Any]:
    numbers = array.tolist()
    assert isinstance(numbers, list)
    return numbers
