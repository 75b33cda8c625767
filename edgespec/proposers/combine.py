"""Proposers made of proposers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Support
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.decoding.request import Request

USUALLY = 0.7  # how likely a guess is taken to be whose proposer does not say


@dataclass(frozen=True, slots=True)
class Capped:
    """A budget of at most `most` guesses within another budget."""

    inner: Budget
    most: int

    @property
    def nodes(self) -> int:
        return min(self.inner.nodes, self.most)

    def another(self, confidences: Sequence[float]) -> bool:
        return len(confidences) < self.most and self.inner.another(confidences)


class Fixed:
    """The same number of guesses every round, whether they pay or not."""

    def __init__(self, inner: Proposer, guesses: int) -> None:
        self.inner, self.guesses, self.name = inner, guesses, inner.name

    @property
    def note(self) -> str:
        return self.inner.note

    @property
    def plan(self) -> str:
        return f"fixed: {self.inner.plan}, up to {self.guesses}"

    def begin(self, request: Request) -> None:
        self.inner.begin(request)

    def propose(self, state: State, budget: Budget) -> Draft:
        if not self.guesses:
            return EMPTY
        return self.inner.propose(state, Capped(budget, self.guesses))

    def observe(self, outcome: Outcome) -> None:
        self.inner.observe(outcome)

    def end(self) -> None:
        self.inner.end()


class FirstOf:
    """Asks each proposer in turn and takes the first draft."""

    def __init__(self, *proposers: Proposer) -> None:
        self.proposers = proposers
        self.name = "+".join(proposer.name for proposer in proposers)
        self._latest: Proposer = proposers[0]

    @property
    def note(self) -> str:
        return next((p.note for p in self.proposers if p.note), "")

    @property
    def plan(self) -> str:
        return self._latest.plan

    def begin(self, request: Request) -> None:
        for proposer in self.proposers:
            proposer.begin(request)

    def propose(self, state: State, budget: Budget) -> Draft:
        for proposer in self.proposers:
            self._latest = proposer
            if draft := proposer.propose(state, budget):
                return draft
        return EMPTY

    def observe(self, outcome: Outcome) -> None:
        for proposer in self.proposers:
            proposer.observe(outcome)

    def end(self) -> None:
        for proposer in self.proposers:
            proposer.end()


class Merged(FirstOf):
    """Joins what all proposers guess into one tree; where there are no trees, the first draft.

    A guess that several make is there once, as that of the first of them.
    """

    def propose(self, state: State, budget: Budget) -> Draft:
        if not state.rule.trees:
            return super().propose(state, budget)
        return merged([p.propose(state, budget) for p in self.proposers], budget.nodes)

    @property
    def plan(self) -> str:
        return "; ".join(p.plan for p in self.proposers)


def merged(drafts: Sequence[Draft], most: int) -> Draft:
    """One tree of the `most` likeliest nodes of several drafts, shared prefixes once."""
    node_of: dict[tuple[int, int], int] = {}
    nodes: list[_Node] = []
    for draft in drafts:
        own: list[int] = []  # where the draft's nodes are in the tree
        for n, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
            above = ROOT if parent == ROOT else own[parent]
            sure = draft.confidence[n] if n < len(draft.confidence) else USUALLY
            before = 1.0 if parent == ROOT else nodes[above].chance
            node = node_of.setdefault((above, token), len(nodes))
            if node == len(nodes):
                nodes.append(_Node(token, above, draft.source[n], draft.q[n], sure, 0.0))
            nodes[node].chance = max(nodes[node].chance, before * min(1.0, sure))
            own.append(node)
    return _cut(nodes, most)


@dataclass(slots=True)
class _Node:
    """A guess. sure: behind its parent. chance: of the whole path to it, by whoever is surest."""

    token: int
    parent: int
    source: str
    q: Support | None
    sure: float
    chance: float


def _cut(nodes: Sequence[_Node], most: int) -> Draft:
    """The likeliest nodes; no child is likelier than its parent, so they are a tree."""
    kept = sorted(sorted(range(len(nodes)), key=lambda n: -nodes[n].chance)[:most])
    place = {ROOT: ROOT} | {n: at for at, n in enumerate(kept)}
    chosen = [nodes[n] for n in kept]
    return Draft(
        [node.token for node in chosen],
        [place[node.parent] for node in chosen],
        [node.source for node in chosen],
        [node.q for node in chosen],
        [node.sure for node in chosen],
    )
