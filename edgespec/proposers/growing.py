"""A tree of guesses in the making, whose likeliest nodes become the draft."""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.decoding.draft import EMPTY, ROOT, Draft

USUALLY = 0.7  # how likely a guess is taken to be whose proposer does not say


class GrowingTree:
    """Nodes in the order they were added, a parent before its children.

    chance[i]: that the text takes the whole path to node i. sure[i]: that it takes node i once
    it has come to its parent.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.chance: list[float] = []
        self.sure: list[float] = []

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, sure: float) -> int:
        """A guess behind `parent`; returns its node."""
        self.tokens.append(token)
        self.parents.append(parent)
        self.sure.append(sure)
        self.chance.append(sure if parent == ROOT else sure * self.chance[parent])
        return len(self.tokens) - 1

    def line(self, node: int) -> list[int]:
        """The tokens from the root to `node`."""
        line: list[int] = []
        while node != ROOT:
            line.append(self.tokens[node])
            node = self.parents[node]
        return line[::-1]

    def best(self, most: int) -> list[int]:
        """The likeliest nodes, likeliest first; with a node there always comes its parent."""
        return sorted(range(len(self)), key=lambda node: -self.chance[node])[:most]

    def draft(self, most: int, source: str) -> Draft:
        """The likeliest nodes as a draft."""
        nodes = sorted(self.best(most))
        if not nodes:
            return EMPTY
        return Draft(
            [self.tokens[node] for node in nodes],
            renumbered(nodes, self.parents),
            (source,) * len(nodes),
            (None,) * len(nodes),
            [self.sure[node] for node in nodes],
        )


def stated(draft: Draft) -> list[float]:
    """How likely each guess of a draft is, by its proposer's word as far as it says."""
    return [*draft.confidence, *[USUALLY] * (len(draft) - len(draft.confidence))]


def part(draft: Draft, nodes: Sequence[int]) -> Draft:
    """Some nodes of a draft, ascending, each with its parent."""
    said = len(draft.confidence)
    return Draft(
        [draft.tokens[node] for node in nodes],
        renumbered(nodes, draft.parents),
        [draft.source[node] for node in nodes],
        [draft.q[node] for node in nodes],
        [draft.confidence[node] for node in nodes if node < said],
    )


def renumbered(nodes: Sequence[int], parents: Sequence[int]) -> list[int]:
    """The parents of `nodes` as places in `nodes`, which holds every node's parent before it."""
    place = {ROOT: ROOT} | {node: n for n, node in enumerate(nodes)}
    return [place[parents[node]] for node in nodes]
