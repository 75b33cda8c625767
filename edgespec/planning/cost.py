"""What a verify pass costs here, by its number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

_SCALE_RATE, _SHAPE_RATE = 0.15, 0.05
_OUTLIER = 0.5  # log ratio beyond which a round says more about the machine than about the width
_USUAL = np.arange(33)  # widths of the passes that a round may choose from


class CostCurve:
    """T(n): seconds for a pass of n rows, measured at some widths and refined by every round.

    Real curves have steps, so a width that was seen keeps its own value; others lie on the line
    between their neighbours. A longer text makes every row dearer by as much. A drift that all
    widths share (a hot machine) is kept apart from the shape.

    context: tokens of text at which `seconds` were measured. token_s: seconds that a row takes
    longer for each further token of text.
    """

    def __init__(
        self, seconds: Mapping[int, float], context: int = 0, token_s: float = 0.0
    ) -> None:
        if not seconds or min(seconds.values()) <= 0:
            raise ValueError("a cost curve needs at least one positive measurement")
        self._shape = dict(seconds)
        self._scale, self._row_s = 1.0, 0.0  # of a row, for the text behind `context`
        self._context, self._token_s = context, token_s
        self._table: list[float] = []  # of the usual widths, until something changes

    def at(self, context: int) -> None:
        """The text has so many tokens from now on."""
        row_s = (context - self._context) * self._token_s
        if row_s != self._row_s:
            self._row_s, self._table = row_s, []

    def seconds(self, rows: int) -> float:
        """Expected seconds of a pass of `rows` rows."""
        if rows >= len(_USUAL):
            return float(self._seconds(np.array([rows]))[0])
        if not self._table:
            self._table = self._seconds(_USUAL).tolist()
        return self._table[rows]

    def relative(self, rows: int) -> float:
        """Cost of a pass of `rows` rows in plain passes."""
        return self.seconds(rows) / self.seconds(1)

    def observe(self, rows: int, seconds: float) -> None:
        """Learn from a real pass."""
        if seconds <= 0:
            return
        error = math.log(seconds / self.seconds(rows))
        error = max(-_OUTLIER, min(_OUTLIER, error))
        if rows not in self._shape:
            self._shape[rows] = float(self._shape_at(np.array([rows]))[0])
        self._scale *= math.exp(_SCALE_RATE * error)
        self._shape[rows] *= math.exp(_SHAPE_RATE * error)
        self._table = []

    @property
    def context(self) -> int:
        """Tokens of text behind which measured() is so."""
        return self._context

    def measured(self) -> dict[int, float]:
        """Seconds at every width that was seen, whatever text stands now."""
        return {n: self._scale * self._shape[n] for n in sorted(self._shape)}

    def _seconds(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        shape = self._shape_at(rows)
        taken: NDArray[np.float64] = np.maximum(shape / 2, shape + rows * self._row_s)
        return self._scale * taken

    def _shape_at(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Seconds as they were measured, on the line between neighbours; beyond what was measured
        expect no discount."""
        widths = sorted(self._shape)
        between = np.interp(rows, widths, [self._shape[n] for n in widths])
        return between * np.maximum(1.0, rows / widths[-1])
