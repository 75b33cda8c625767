"""Proposers made of proposers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.decoding.request import Request


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
