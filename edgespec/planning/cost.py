"""What a verify pass costs here, by its number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

_SCALE_RATE, _SHAPE_RATE = 0.15, 0.05
_OUTLIER = 0.5  # log ratio beyond which a round says more about the machine than about the width


class CostCurve:
    """T(n): seconds for a pass of n rows, measured at some widths and refined by every round.

    Real curves have steps, so a width that was seen keeps its own value; others lie on the line
    between their neighbours. A drift that all widths share (a longer context, a hot machine) is
    kept apart from the shape.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        if not seconds or min(seconds.values()) <= 0:
            raise ValueError("a cost curve needs at least one positive measurement")
        self._shape = {n: math.log(s) for n, s in seconds.items()}
        self._scale = 0.0

    def seconds(self, rows: int) -> float:
        """Expected seconds of a pass of `rows` rows."""
        return math.exp(self._scale) * self._shape_at(rows)

    def relative(self, rows: int) -> float:
        """Cost of a pass of `rows` rows in plain passes."""
        return self._shape_at(rows) / self._shape_at(1)

    def observe(self, rows: int, seconds: float) -> None:
        """Learn from a real pass."""
        if seconds <= 0:
            return
        error = math.log(seconds / self.seconds(rows))
        error = max(-_OUTLIER, min(_OUTLIER, error))
        if rows not in self._shape:
            self._shape[rows] = math.log(self._shape_at(rows))
        self._scale += _SCALE_RATE * error
        self._shape[rows] += _SHAPE_RATE * error

    def measured(self) -> dict[int, float]:
        """Seconds at every width that was seen."""
        return {n: self.seconds(n) for n in sorted(self._shape)}

    def _shape_at(self, rows: int) -> float:
        if rows in self._shape:
            return math.exp(self._shape[rows])
        below = max((n for n in self._shape if n < rows), default=None)
        above = min((n for n in self._shape if n > rows), default=None)
        if below is None:
            assert above is not None
            return math.exp(self._shape[above])
        low = math.exp(self._shape[below])
        if above is None:
            return low * rows / below  # beyond what was measured, expect no discount
        high = math.exp(self._shape[above])
        return low + (high - low) * (rows - below) / (above - below)
