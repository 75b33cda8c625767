"""Many conversations side by side: what writing answers by the thousand needs of a backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from edgespec.decoding.draft import Row


class Batch(Protocol):
    """A cache with so many slots, each with room for `context` tokens."""

    slots: int
    context: int

    def step(self, slots: Sequence[int], tokens: Sequence[int]) -> Row:
        """Append one token to each of these slots; the scores behind them, float32 [n, vocab].

        The rows are valid until the next step. Raises: CacheFull where a slot has no room.
        """
        ...

    def forget(self, slot: int) -> None:
        """Empty a slot."""
        ...

    def close(self) -> None:
        """Free the cache."""
        ...


@runtime_checkable
class OffersBatches(Protocol):
    """A LoadedModel that can go on with many texts in one pass."""

    def batch(self, slots: int, context: int, threads: int | None = None) -> Batch:
        """context: tokens of each slot. Raises: OutOfMemory."""
        ...
