"""A tree of guesses in one forward pass of an unchanged mlx_lm model.

Two things make it one: a node's position is its depth behind the text, and it sees the text and
its own ancestors only. Masks come from the caches; positions need rotary embeddings that take one
for each row, which the library's do for each member of a batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cache
from typing import Any

import mlx.core as mx
import numpy as np

from edgespec.decoding.draft import Draft


class TreeLayout:
    """Where rows behind a text stand: a line of tokens that all see, then a draft's nodes.

    base: tokens of the text. positions: int32 [n]. kin: bool [n, n], row i sees column j.
    first: of the rows that one pass computes; the caches hold those before it.
    """

    first = 0

    def __init__(self, base: int, parents: Sequence[int]) -> None:
        n = len(parents)
        depth, kin = np.zeros(n, dtype=np.int32), np.eye(n, dtype=np.bool_)
        for row, parent in enumerate(parents):
            if parent >= 0:
                depth[row] = depth[parent] + 1
                kin[row] |= kin[parent]
        self.base = base
        self.positions = mx.array(depth + base)
        self.kin = mx.array(kin)

    @classmethod
    def behind(cls, base: int, line: int, draft: Draft) -> TreeLayout:
        """`line` tokens in a row, the last of them the draft's root."""
        last = line - 1
        return cls(base, [*range(-1, last), *(last + 1 + parent for parent in draft.parents)])

    @property
    def new_positions(self) -> mx.array:
        """Those of the rows that the pass computes."""
        return self.positions[self.first :]

    def mask(self, low: int, window: int | None) -> mx.array:
        """bool [n - first, base - low + n] over the rows from position `low` on."""
        kin = self.kin[self.first :]
        seen = mx.concatenate([mx.ones((kin.shape[0], self.base - low), mx.bool_), kin], axis=1)
        if window is None:
            return seen
        places = mx.concatenate([mx.arange(low, self.base, dtype=mx.int32), self.positions])
        return seen & (self.new_positions[:, None] < places[None] + window)


def causal_mask(low: int, start: int, count: int, window: int | None) -> mx.array:
    """bool [count, start - low + count]: each row sees itself and what came before it."""
    rows = mx.arange(start, start + count)[:, None]
    places = mx.arange(low, start + count)[None]
    seen = rows >= places
    return seen if window is None else seen & (rows < places + window)


def give_each_row_its_position(module: Any) -> None:
    """Let the model's rotary embeddings take a position for each row of a pass.

    Only the classes of these instances change; weights and their names stay what they were.
    """
    for name, part in module.named_modules():
        kind: Any = type(part)
        if _is_rotary(name, kind) and not hasattr(kind, "_by_row"):
            part.__class__ = _by_row(kind)


def _is_rotary(name: str, kind: Any) -> bool:
    named = name.rsplit(".", 1)[-1] in ("rope", "rotary_emb") or "rope" in kind.__name__.lower()
    return named and "offset" in inspect.signature(kind.__call__).parameters


@cache
def _by_row(kind: Any) -> type:
    """A rotary embedding that sees a pass as a batch of one-row texts, where rows have positions.

    The library takes a position for each member of a batch: [1, heads, n, width] with n positions
    is turned to [n, heads, 1, width].
    """

    def call(self: Any, x: mx.array, offset: Any = 0, *rest: Any, **named: Any) -> mx.array:
        if isinstance(offset, mx.array) and offset.ndim == 1 and x.ndim == 4 and x.shape[2] > 1:
            turned: mx.array = kind.__call__(self, x.swapaxes(0, 2), offset, *rest, **named)
            return turned.swapaxes(0, 2)
        plain: mx.array = kind.__call__(self, x, offset, *rest, **named)
        return plain

    return type(f"{kind.__name__}ByRow", (kind,), {"__call__": call, "_by_row": True})
