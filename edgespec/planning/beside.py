"""What a model held likely beside its guess: free to have, not to verify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from edgespec.proposers.model_tree import OTHERS

_PROMISED, _HELD = 3.0, 0.8  # shares that the prior counts as; how far it takes them to hold
_TYPICAL = (0.25, 0.12, 0.08)  # of what a first guess leaves, before anything is known
_KEEP = 0.98  # weight of the past, at each wrong guess


class Beside(Protocol):
    """Estimates of guesses that are siblings of a model's own."""

    @property
    def typical(self) -> Sequence[float]:
        """By rank, how often one is right where the first guess is wrong."""
        ...

    def chances(self, first: float, sure: Sequence[float]) -> list[float]:
        """How likely each sibling is right. first: the chance of the guess itself; sure: the
        confidences, its own first."""
        ...

    def learn(self, sure: Sequence[float], right: int) -> None:
        """The first guess was wrong, and the one at `right` was not; -1 where all were wrong."""
        ...

    def new_text(self) -> None: ...


class Alone:
    """No siblings: a chain."""

    typical: Sequence[float] = ()

    def chances(self, first: float, sure: Sequence[float]) -> list[float]:
        return []

    def learn(self, sure: Sequence[float], right: int) -> None:
        pass

    def new_text(self) -> None:
        pass


class Siblings:
    """What the first guess leaves of certainty is divided as the model divides it, times how far
    that has held at each rank; so together they never promise more than one token."""

    def __init__(self) -> None:
        self._wrong = _PROMISED
        self._promised = [share * _PROMISED / _HELD for share in _TYPICAL]
        self._right = [share * _PROMISED for share in _TYPICAL]

    @property
    def typical(self) -> Sequence[float]:
        return [right / self._wrong for right in self._right]

    def chances(self, first: float, sure: Sequence[float]) -> list[float]:
        left = 1.0 - first
        chances: list[float] = []
        for rank, share in enumerate(_shares(sure)):
            held = self._right[rank] / self._promised[rank]
            chances.append(min(left, (1.0 - first) * share * held))
            left -= chances[-1]
        return chances

    def learn(self, sure: Sequence[float], right: int) -> None:
        self._wrong = _KEEP * self._wrong + 1.0
        for rank, share in enumerate(_shares(sure)):
            self._promised[rank] = _KEEP * self._promised[rank] + share
            self._right[rank] = _KEEP * self._right[rank] + (right == rank + 1)

    def new_text(self) -> None:
        """Another text begins: what was seen counts half, the prior stays."""
        fresh = Siblings()
        self._wrong = (self._wrong + fresh._wrong) / 2
        self._promised = [(a + b) / 2 for a, b in zip(self._promised, fresh._promised, strict=True)]
        self._right = [(a + b) / 2 for a, b in zip(self._right, fresh._right, strict=True)]


def _shares(sure: Sequence[float]) -> list[float]:
    """Each sibling's share of what the first guess leaves."""
    left = max(1.0 - sure[0], 1e-6)
    return [min(1.0, other / left) for other in sure[1 : 1 + OTHERS]]
