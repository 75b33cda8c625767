"""What a model keeps of the text it has read: one cache for each layer that keeps something.

An mlx_lm model asks its caches for positions (`offset`) and masks, hands them keys and values, and
works with what they give back. So the caches alone decide what is seen, and what can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache, make_prompt_cache

from edgespec_mlx.rows import GROUP, STEP, MakeRows, RowsReadPacked
from edgespec_mlx.trees import TreeLayout, causal_mask

SPARE = 4096  # tokens kept behind a window, so that an answer can be taken back and said anew


class LayerCache(Protocol):
    """What the session asks of one cache."""

    def lay_out(self, layout: TreeLayout | None) -> None:
        """The next rows are a tree; None = a chain."""
        ...

    def mark(self) -> Any:
        """The present state, to come back to."""
        ...

    def back_to(self, mark: Any) -> bool:
        """Undo what came after `mark`; False where that cannot be."""
        ...

    def cut(self, length: int) -> bool:
        """Keep the first `length` tokens; False where that cannot be."""
        ...

    def gather(self, base: int, nodes: Sequence[int]) -> bool:
        """Behind the first `base` tokens keep these rows of the latest pass, in this order."""
        ...

    def length(self) -> int | None:
        """Tokens it holds; None where it cannot tell or has never been used."""
        ...

    def arrays(self) -> list[mx.array]: ...

    def bytes_for(self, tokens: int) -> int:
        """What a text of so many tokens takes, once a first token has been read."""
        ...


class KvCache:
    """Keys and values of the whole text."""

    window: int | None = None

    def __init__(self, make: MakeRows) -> None:
        self._keys, self._values = make(), make()
        self._length = self._low = 0
        self._dropped = 0  # tokens whose rows are gone for good
        self._layout: TreeLayout | None = None
        if isinstance(self._keys, RowsReadPacked):  # how mlx_lm's attention knows
            self.bits, self.group_size = self._keys.bits, GROUP

    @property
    def offset(self) -> int | mx.array:
        """Position of the next token, or int32 [n], those of a tree's nodes."""
        return self._length if self._layout is None else self._layout.new_positions

    def make_mask(
        self, N: int, return_array: bool = False, window_size: int | None = None
    ) -> mx.array | str | None:
        """Which of the rows that update_and_fetch() will give each of N new ones may see."""
        low = self._first_seen()
        own = min((w for w in (self.window, window_size) if w is not None), default=None)
        if self._layout is not None:
            return self._layout.mask(low, own)
        if own is not None and self._length + N - low <= own:
            own = None
        if own is not None or (return_array and N > 1):
            return causal_mask(low, self._length, N, own)
        return None if N == 1 else "causal"

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Any, Any]:
        self._low = self._first_seen()
        at = self._length - self._dropped
        self._keys.write(keys, at)
        self._values.write(values, at)
        self._length += keys.shape[2]
        return self.keys_and_values()

    def keys_and_values(self) -> tuple[Any, Any]:
        """What the latest update_and_fetch() gave, for layers that share it."""
        low, high = self._low - self._dropped, self._length - self._dropped
        return self._keys.read(low, high), self._values.read(low, high)

    def size(self) -> int:
        return self._length

    def empty(self) -> bool:
        return self._length == 0

    def lay_out(self, layout: TreeLayout | None) -> None:
        self._layout = layout

    def mark(self) -> int:
        return self._length

    def back_to(self, mark: int) -> bool:
        return self.cut(mark)

    def cut(self, length: int) -> bool:
        self._length = min(self._length, length)
        return True

    def gather(self, base: int, nodes: Sequence[int]) -> bool:
        if self._length:  # a layer may keep a cache that it never uses
            if list(nodes) != list(range(len(nodes))):
                at = base - self._dropped
                picked = mx.array(list(nodes), dtype=mx.int32) + at
                self._keys.move(at, picked)
                self._values.move(at, picked)
            self._length = base + len(nodes)
        return True

    def length(self) -> int | None:
        return self._length or None

    def arrays(self) -> list[mx.array]:
        return [*self._keys.arrays(), *self._values.arrays()]

    def bytes_for(self, tokens: int) -> int:
        rows = -(-tokens // STEP) * STEP
        return sum(array.nbytes // array.shape[2] * rows for array in self.arrays())

    def _first_seen(self) -> int:
        return 0


class WindowCache(KvCache):
    """Keys and values of a layer that sees the latest `window` tokens.

    More of them are kept, since guesses are taken back: a ring that has turned cannot turn back.
    Rows far behind the window are dropped now and then.
    """

    def __init__(self, make: MakeRows, window: int, spare: int = SPARE) -> None:
        super().__init__(make)
        self.window, self._spare = window, spare

    def cut(self, length: int) -> bool:
        if length and max(0, length + 1 - self._behind()) < self._dropped:
            return False
        if not length:
            self._dropped = self._low = 0
        return super().cut(length)

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[Any, Any]:
        surplus = self._length - self._dropped - self._behind() - self._spare
        if surplus > self._spare and self._layout is None:
            self._keys.drop(surplus)
            self._values.drop(surplus)
            self._dropped += surplus
        return super().update_and_fetch(keys, values)

    def bytes_for(self, tokens: int) -> int:
        return super().bytes_for(min(tokens, self._behind() + 2 * self._spare))

    def _first_seen(self) -> int:
        # rows of a tree that are in the cache stand no further than its depth
        text = self._length if self._layout is None else self._layout.base
        return max(0, text + 1 - self._behind())

    def _behind(self) -> int:
        assert self.window is not None
        return self.window


class StateCache:
    """A recurrent layer's state: no token can be cut out of it, but a copy can be put back."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def lay_out(self, layout: TreeLayout | None) -> None:
        assert layout is None, "a recurrent layer reads one token after the other"

    def mark(self) -> list[mx.array | None]:
        # new handles to the same memory: a model may write into the ones it holds
        return [None if array is None else mx.array(array) for array in self._kept.cache]

    def back_to(self, mark: list[mx.array | None]) -> bool:
        self._kept.cache = [None if array is None else mx.array(array) for array in mark]
        return True

    def cut(self, length: int) -> bool:
        return False

    def gather(self, base: int, nodes: Sequence[int]) -> bool:
        return False

    def length(self) -> None:
        return None

    def arrays(self) -> list[mx.array]:
        return [array for array in self._kept.cache if array is not None]

    def bytes_for(self, tokens: int) -> int:
        return sum(array.nbytes for array in self.arrays())


class ForeignCache:
    """A cache of the library that nothing is known about; it is only ever added to."""

    def __init__(self, kept: Any) -> None:
        self._kept = kept

    def lay_out(self, layout: TreeLayout | None) -> None:
        assert layout is None, "a cache of the library takes chains only"

    def mark(self) -> None:
        return None

    def back_to(self, mark: None) -> bool:
        return False

    def cut(self, length: int) -> bool:
        return False

    def gather(self, base: int, nodes: Sequence[int]) -> bool:
        return False

    def length(self) -> None:
        return None

    def arrays(self) -> list[mx.array]:
        flat: Any = tree_flatten(self._kept.state)
        return [value for _, value in flat if isinstance(value, mx.array)]

    def bytes_for(self, tokens: int) -> int:
        return 0  # unknown


class Caches:
    """All caches of one session.

    given: the list that the model is called with. cut_anywhere: whether any number of tokens can
    be taken back. go_back: whether a marked state can be put back.
    """

    def __init__(self, given: list[Any], leaves: list[LayerCache]) -> None:
        self.given, self._leaves = given, leaves
        self.cut_anywhere = all(isinstance(leaf, KvCache) for leaf in leaves)
        self.go_back = not any(isinstance(leaf, ForeignCache) for leaf in leaves)

    @classmethod
    def own(cls, module: Any, make: MakeRows) -> Caches:
        """Caches that go back, in the places where the model wants caches."""
        leaves: list[LayerCache] = []
        given = [_replaced(kept, make, leaves) for kept in make_prompt_cache(module)]
        return cls(given, leaves)

    @classmethod
    def none(cls) -> Caches:
        """For no model."""
        return cls([], [])

    @classmethod
    def foreign(cls, module: Any) -> Caches:
        """The library's caches, for models that look into them."""
        given = make_prompt_cache(module)
        return cls(given, [ForeignCache(kept) for kept in given])

    def lay_out(self, layout: TreeLayout | None) -> None:
        for leaf in self._leaves:
            leaf.lay_out(layout)

    def mark(self) -> list[Any]:
        return [leaf.mark() for leaf in self._leaves]

    def back_to(self, marks: list[Any]) -> bool:
        return all([leaf.back_to(m) for leaf, m in zip(self._leaves, marks, strict=True)])

    def cut(self, length: int) -> bool:
        """Where this is False, some caches may have been cut and others not."""
        return all([leaf.cut(length) for leaf in self._leaves])

    def gather(self, base: int, nodes: Sequence[int]) -> bool:
        return all([leaf.gather(base, nodes) for leaf in self._leaves])

    def lengths(self) -> set[int]:
        """Different numbers of tokens that caches hold, as far as they can tell."""
        return {n for leaf in self._leaves if (n := leaf.length()) is not None}

    def arrays(self) -> list[mx.array]:
        return [array for leaf in self._leaves for array in leaf.arrays()]

    def bytes_for(self, tokens: int) -> int:
        """What a text of so many tokens takes, as far as that is known."""
        return sum(leaf.bytes_for(tokens) for leaf in self._leaves)


def _replaced(kept: Any, make: MakeRows, leaves: list[LayerCache]) -> Any:
    """A cache of our own in place of one of the library, and its leaves among `leaves`."""
    if type(kept) is CacheList:
        ours = [_replaced(one, make, leaves) for one in kept.caches]
        return CacheList(*ours)  # type: ignore[no-untyped-call]
    own: KvCache | None = None
    if type(kept) is KVCache:
        own = KvCache(make)
    elif type(kept) is RotatingKVCache and not kept.keep:
        own = WindowCache(make, kept.max_size)
    if own is not None:
        leaves.append(own)
        return own
    leaves.append(StateCache(kept) if type(kept) is ArraysCache else ForeignCache(kept))
    return kept
