"""How keys or values lie in memory: one row for each token, growing, written and moved in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import mlx.core as mx

STEP = 256  # rows that are added at a time
GROUP = 32  # elements that share a scale, where rows are packed


class Rows(Protocol):
    """Rows [1, heads, n, width] of one layer."""

    def write(self, new: mx.array, at: int) -> None:
        """Put rows at `at`; what lay there and behind is of no more use."""
        ...

    def read(self, low: int, high: int) -> Any:
        """Rows low to high, in the form that attention takes."""
        ...

    def move(self, at: int, picked: mx.array) -> None:
        """Put copies of the rows `picked` one after the other at `at`."""
        ...

    def drop(self, count: int) -> None:
        """Forget the first `count` rows; the others move to the front."""
        ...

    def arrays(self) -> list[mx.array]:
        """What has to be computed for the rows to be there."""
        ...


MakeRows = Callable[[], Rows]


class PlainRows:
    """Rows in a floating-point type of their own, or as the model computes them."""

    def __init__(self, dtype: mx.Dtype | None = None) -> None:
        self._dtype = dtype
        self._computed = dtype
        self._held: mx.array | None = None

    def write(self, new: mx.array, at: int) -> None:
        self._computed = new.dtype
        new = new if self._dtype is None else new.astype(self._dtype)
        end = at + new.shape[2]
        if self._held is None or end > self._held.shape[2]:
            self._grow(new, at, end)
        assert self._held is not None
        self._held[..., at:end, :] = new

    def read(self, low: int, high: int) -> mx.array:
        assert self._held is not None
        rows = self._held[..., low:high, :]
        if self._computed is None or self._computed == rows.dtype:
            return rows
        return rows.astype(self._computed)

    def move(self, at: int, picked: mx.array) -> None:
        assert self._held is not None
        self._held[..., at : at + picked.size, :] = mx.take(self._held, picked, axis=2)

    def drop(self, count: int) -> None:
        if self._held is not None:
            self._held = mx.contiguous(self._held[..., count:, :])

    def arrays(self) -> list[mx.array]:
        return [] if self._held is None else [self._held]

    def _grow(self, new: mx.array, at: int, end: int) -> None:
        room = -(-end // STEP) * STEP
        kept = [] if self._held is None else [self._held[..., :at, :]]
        shape = (*new.shape[:2], room - (at if kept else 0), new.shape[3])
        self._held = mx.concatenate([*kept, mx.zeros(shape, new.dtype)], axis=2)


class PackedRows:
    """Rows of small integers with a scale and an offset for each group, unpacked to be read."""

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self._parts = (PlainRows(), PlainRows(), PlainRows())

    def write(self, new: mx.array, at: int) -> None:
        packed = mx.quantize(new, group_size=GROUP, bits=self.bits)
        for part, values in zip(self._parts, packed, strict=True):
            part.write(values, at)

    def read(self, low: int, high: int) -> Any:
        rows, scales, offsets = (part.read(low, high) for part in self._parts)
        return mx.dequantize(rows, scales, offsets, group_size=GROUP, bits=self.bits)

    def move(self, at: int, picked: mx.array) -> None:
        for part in self._parts:
            part.move(at, picked)

    def drop(self, count: int) -> None:
        for part in self._parts:
            part.drop(count)

    def arrays(self) -> list[mx.array]:
        return [array for part in self._parts for array in part.arrays()]


class RowsReadPacked(PackedRows):
    """Packed rows for attention that multiplies by them as they are."""

    def read(self, low: int, high: int) -> Any:
        return tuple(part.read(low, high) for part in self._parts)
