"""What a proposer hands over: guessed tokens, laid out as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import NDArray

ROOT = -1

Tokens = NDArray[np.int32]
Row = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Support:
    """The tokens that survive the filters, with their probabilities.

    ids: int32 [k], ascending. p: float64 [k], sums to 1.
    """

    ids: Tokens
    p: NDArray[np.float64]

    def of(self, token: int) -> float:
        """Probability of `token`; 0 when it was filtered out."""
        at = int(np.searchsorted(self.ids, token))
        return float(self.p[at]) if at < len(self.ids) and self.ids[at] == token else 0.0


@dataclass(frozen=True, slots=True)
class Draft:
    """Guessed tokens after the pending one. A chain is a tree with one child per node.

    tokens[i]   token id of node i.
    parents[i]  the node that i follows; ROOT (-1) is the pending token. parents[i] < i.
    source[i]   name of the proposer that guessed node i.
    q[i]        what node i was drawn from; None where it was not drawn at random.
    confidence[i]  how sure the proposer was of node i, 0 to 1; may end before the last node.
    """

    tokens: Sequence[int] = ()
    parents: Sequence[int] = ()
    source: Sequence[str] = ()
    q: Sequence[Support | None] = ()
    confidence: Sequence[float] = ()

    @classmethod
    def chain(
        cls,
        tokens: Sequence[int],
        source: str,
        q: Sequence[Support | None] | None = None,
        confidence: Sequence[float] = (),
    ) -> Self:
        """One guess after the other."""
        n = len(tokens)
        q = (None,) * n if q is None else q
        return cls(tokens, range(-1, n - 1), (source,) * n, q, confidence)

    def __len__(self) -> int:
        return len(self.tokens)

    def children(self, node: int) -> list[int]:
        """Nodes that directly follow `node`, in draft order."""
        return [i for i, parent in enumerate(self.parents) if parent == node]

    def saying(self, tokens: Sequence[int]) -> list[int]:
        """The nodes, from the first guess on, that say these tokens, for as long as they do."""
        path, node = list[int](), ROOT
        for token in tokens:
            following = [n for n in self.children(node) if self.tokens[n] == token]
            if not following:
                break
            node = following[0]
            path.append(node)
        return path

    @property
    def is_chain(self) -> bool:
        return all(parent == i - 1 for i, parent in enumerate(self.parents))

    def depths(self) -> list[int]:
        """Distance of every node from the pending token, 1 for its children."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(1 if parent == ROOT else depths[parent] + 1)
        return depths

    def cut(self, n: int) -> Draft:
        """The first `n` nodes; still a tree, since parents come before children."""
        if n >= len(self):
            return self
        return Draft(
            self.tokens[:n], self.parents[:n], self.source[:n], self.q[:n], self.confidence[:n]
        )

    def fault(self, vocab: int) -> str | None:
        """Why this is not a tree of tokens, or None when it is one."""
        if not len(self.tokens) == len(self.parents) == len(self.source) == len(self.q):
            return "its lists differ in length"
        for i, (token, parent) in enumerate(zip(self.tokens, self.parents, strict=True)):
            if not (isinstance(token, Integral) and isinstance(parent, Integral)):
                return f"node {i} is token {token!r} after node {parent!r}; both must be integers"
            if not 0 <= token < vocab:
                return f"token {token} is outside the vocabulary of {vocab}"
            if not ROOT <= parent < i:
                return f"node {i} follows node {parent}, which does not come before it"
            if not (self.q[i] is None or isinstance(self.q[i], Support)):
                return f"what node {i} was drawn from is a {type(self.q[i]).__name__}, no Support"
        return None


EMPTY = Draft()
