"""A growing list of token ids that hands out arrays without copying."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgespec.decoding.draft import Tokens


class TokenHistory:
    """Committed tokens as int32, appended in amortised constant time."""

    def __init__(self, tokens: Tokens | Sequence[int] = ()) -> None:
        start = np.asarray(tokens, dtype=np.int32)
        self._buffer = np.empty(max(256, 2 * len(start)), dtype=np.int32)
        self._buffer[: len(start)] = start
        self._length = len(start)

    def __len__(self) -> int:
        return self._length

    def extend(self, tokens: Sequence[int]) -> None:
        need = self._length + len(tokens)
        if need > len(self._buffer):
            grown = np.empty(2 * need, dtype=np.int32)
            grown[: self._length] = self.array
            self._buffer = grown
        self._buffer[self._length : need] = tokens
        self._length = need

    def truncate(self, length: int) -> None:
        self._length = min(self._length, length)

    @property
    def array(self) -> Tokens:
        """int32 [n], a view that later appends do not change and nobody can write to."""
        view = self._buffer[: self._length]
        view.flags.writeable = False
        return view


def common_prefix(a: Tokens, b: Tokens) -> int:
    """How many leading tokens two sequences share."""
    n = min(len(a), len(b))
    differs = a[:n] != b[:n]
    return int(differs.argmax()) if differs.any() else n
