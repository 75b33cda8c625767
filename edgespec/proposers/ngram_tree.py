"""Guesses by all that followed when the text went like this, where it went on in several ways."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from edgespec.decoding.draft import ROOT, Draft
from edgespec.decoding.proposer import Budget, State
from edgespec.proposers.growing import GrowingTree
from edgespec.proposers.ngram import LONGEST, NGram

PLACES = 24  # that a tree is made of
DEEPEST = 24  # tokens of one place that are looked at
RAREST = 0.01  # chance below which nothing is guessed
LIKED = 2.0  # what the place counts that a chain would have followed, in places of its length


class NGramTree(NGram):
    """The chain that an n-gram would guess, and what other places say instead.

    Places speak in the order of their lengths: the longest have their say with the chance that
    matches of their length are right, shorter ones share what is left, and each place's word
    counts less the further it goes.
    Source of giving the rest to shorter matches: prediction by partial matching (Cleary, Witten).
    """

    trust = 1.0  # of matches, beside those in the text itself

    def propose(self, state: State, budget: Budget) -> Draft:
        draft = super().propose(state, budget)
        if not state.rule.trees or self.match.length < self._shortest:
            return draft
        return self._tree().draft(budget.nodes, self.name)

    def _tree(self) -> GrowingTree:
        """Everything that is worth a guess."""
        tokens, parents, masses = list[int](), list[int](), list[float]()
        node_of: dict[tuple[int, int], int] = {}
        for place, length, chance in self._voices():
            above, mass = ROOT, chance
            for depth, token in enumerate(self._index.what_follows(place, DEEPEST), 1):
                if mass <= RAREST:
                    break
                node = node_of.setdefault((above, token), len(tokens))
                if node == len(tokens):
                    tokens.append(token)
                    parents.append(above)
                    masses.append(0.0)
                masses[node] += mass
                above = node
                mass *= CHANCES[min(LONGEST, length + depth)]
        return _joined(tokens, parents, masses)

    def _voices(self) -> Iterator[tuple[int, int, float]]:
        """Places, the lengths of their matches, and the chance that the text follows them."""
        matches = [m for m in self._index.matches() if m[1] >= self._shortest][:PLACES]
        weight = {place: LIKED if place == self.match.place else 1.0 for place, _ in matches}
        total: dict[int, float] = {}
        for place, length in matches:
            total[length] = total.get(length, 0.0) + weight[place]
        left, shares = 1.0, dict[int, float]()
        for length in total:  # the longest first
            shares[length] = left * self.trust * CHANCES[length]
            left -= shares[length]
        for place, length in matches:
            yield place, length, shares[length] * weight[place] / total[length]


def _chance(length: int) -> float:
    """How often what followed a match of this length follows again, on the whole."""
    odds = 0.85 * math.log2(length) - 0.95  # as in docs/decisions/007
    return 1.0 / (1.0 + math.exp(-odds))


CHANCES = (0.0, *(_chance(length) for length in range(1, LONGEST + 1)))


def _joined(tokens: Sequence[int], parents: Sequence[int], masses: Sequence[float]) -> GrowingTree:
    """A tree whose nodes have these chances, and none a higher one than its parent."""
    tree = GrowingTree()
    for token, parent, mass in zip(tokens, parents, masses, strict=True):
        above = 1.0 if parent == ROOT else tree.chance[parent]
        tree.add(parent, token, min(1.0, mass / above))
    return tree
