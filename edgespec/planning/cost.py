"""What a verify pass costs here, by its number of rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

_SCALE_RATE, _SHAPE_RATE = 0.15, 0.05
_OUTLIER = 0.5  # log ratio beyond which a round says more about the machine than about the width


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
        self._shape = {n: math.log(s) for n, s in seconds.items()}
        self._scale, self._row_s = 0.0, 0.0  # of a row, for the text behind `context`
        self._context, self._token_s = context, token_s

    def at(self, context: int) -> None:
        """The text has so many tokens from now on."""
        self._row_s = (context - self._context) * self._token_s

    def seconds(self, rows: int) -> float:
        """Expected seconds of a pass of `rows` rows."""
        shape = self._shape_at(rows)
        return math.exp(self._scale) * max(shape / 2, shape + rows * self._row_s)

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
            self._shape[rows] = math.log(self._shape_at(rows))
        self._scale += _SCALE_RATE * error
        self._shape[rows] += _SHAPE_RATE * error

    @property
    def context(self) -> int:
        """Tokens of text behind which measured() is so."""
        return self._context

    def measured(self) -> dict[int, float]:
        """Seconds at every width that was seen, whatever text stands now."""
        return {n: math.exp(self._scale + self._shape[n]) for n in sorted(self._shape)}

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
