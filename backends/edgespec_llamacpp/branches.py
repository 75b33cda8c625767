"""Which sequences of a cache run through each node of a tree: one for every leaf."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.decoding.draft import ROOT, Draft


@dataclass(frozen=True, slots=True)
class Fork:
    """A new sequence that begins with what `source` holds down to `node`."""

    sequence: int
    source: int
    node: int


class Branches:
    """The sequences of a tree that grows; they are counted from 0, the one of the text itself.

    through[i]: those that run through node i. All of them run through the text.
    """

    def __init__(self) -> None:
        self.through: list[list[int]] = []
        self.count = 1

    def grow(self, draft: Draft) -> list[Fork]:
        """Take in the nodes that `draft` has beyond those known; tells the sequences to begin.

        Below a leaf its own sequence goes on; every further branch takes a new one.
        """
        known, parents = len(self.through), draft.parents
        ends = set(range(known)).difference(parents[:known]) if known else {ROOT}
        inner, forks = set(parents[known:]), list[Fork]()
        self.through += [[] for _ in range(known, len(draft))]
        for leaf in range(known, len(draft)):
            if leaf in inner:
                continue
            above = leaf
            while above >= known:
                above = parents[above]
            if above in ends:
                ends.remove(above)
                sequence = self.one_through(above)
                self._run(sequence, leaf, above, draft)
            else:
                sequence, self.count = self.count, self.count + 1
                forks.append(Fork(sequence, self.one_through(above), above))
                self._run(sequence, leaf, ROOT, draft)
        return forks

    def one_through(self, node: int) -> int:
        """A sequence that holds the text and the path to `node`."""
        return 0 if node == ROOT else self.through[node][0]

    def _run(self, sequence: int, leaf: int, end: int, draft: Draft) -> None:
        """Let a sequence run from `leaf` up to `end`, which is not counted."""
        while leaf != end:
            self.through[leaf].append(sequence)
            leaf = draft.parents[leaf]
