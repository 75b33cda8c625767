"""When to begin the next pass before anyone has asked for it."""

from __future__ import annotations

_FIRST, _MOST = 4, 64


class Patience:
    """How many plain greedy tokens in a row it takes until the pass after the next is begun early.

    A pass begun early hides the work between two passes; one begun in vain costs a whole pass and
    doubles the patience. A long row of plain tokens wins it back.
    """

    def __init__(self) -> None:
        self._needed, self._row = _FIRST, 0

    @property
    def enough(self) -> bool:
        return self._row >= self._needed

    def one_more(self) -> None:
        self._row += 1
        if self._row >= 4 * self._needed > 4 * _FIRST:
            self._needed //= 2

    def broken(self) -> None:
        """Something else than a plain greedy token came."""
        self._row = 0

    def in_vain(self) -> None:
        self._row, self._needed = 0, min(_MOST, 2 * self._needed)
