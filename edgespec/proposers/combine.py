"""Proposers made of proposers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Support
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.decoding.request import Request
from edgespec.proposers.growing import GrowingTree, stated

LATER = 0.7  # what a guess weighs that another proposer was not convinced of


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
    """One tree of the `most` likeliest nodes of several drafts, shared prefixes once.

    For each place the first draft has its say; what its guesses leave of certainty goes to the
    next one.
    """
    tree, sources, q = GrowingTree(), list[str](), list[Support | None]()
    children, sures = [_children(draft) for draft in drafts], [stated(draft) for draft in drafts]
    where = {ROOT: {k: [ROOT] for k in range(len(drafts))}}  # each draft's own nodes
    for node in _as_they_come(tree):
        left, said = 1.0, dict[int, float]()
        own = dict[int, dict[int, list[int]]]()
        for k, places in where.pop(node).items():
            total = 0.0
            for child in (child for place in places for child in children[k].get(place, ())):
                sure, token = sures[k][child], drafts[k].tokens[child]
                said[token] = said.get(token, 0.0) + left * sure
                own.setdefault(token, {}).setdefault(k, []).append(child)
                total += sure
            left *= max(0.0, 1.0 - total) * (LATER if total else 1.0)
        for token, sure in said.items():
            first, (child, *_) = next(iter(own[token].items()))
            sources.append(drafts[first].source[child])
            q.append(drafts[first].q[child])
            where[tree.add(node, token, min(1.0, sure))] = own[token]
    nodes = sorted(tree.best(most))
    return replace(
        tree.draft(most, ""), source=[sources[n] for n in nodes], q=[q[n] for n in nodes]
    )


def _children(draft: Draft) -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(draft.parents):
        children.setdefault(parent, []).append(node)
    return children


def _as_they_come(tree: GrowingTree) -> Iterator[int]:
    """The root and every node of a tree that grows meanwhile."""
    yield ROOT
    node = 0
    while node < len(tree):
        yield node
        node += 1
