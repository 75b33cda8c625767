"""A proposer that may be exchanged for another while an answer is made."""

from __future__ import annotations

from collections.abc import Callable

from edgespec.decoding.draft import Draft
from edgespec.decoding.proposer import Budget, Guarded, Outcome, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.session import Caps


class Switching:
    """Guesses with the proposer that is wanted now; another one takes over between two rounds.

    latest: the proposer that is wanted, the same object until another is; asked before every
    draft. One that failed is silent until it is exchanged, so that its successor is heard.
    """

    def __init__(self, latest: Callable[[], Proposer], caps: Caps) -> None:
        self._latest, self._caps = latest, caps
        self._request: Request | None = None
        self._held = self._guarded(latest())
        self.name = self._held.name

    @property
    def note(self) -> str:
        return self._held.note

    @property
    def plan(self) -> str:
        return self._held.plan

    def begin(self, request: Request) -> None:
        self._request = request
        self._take(self._latest())

    def propose(self, state: State, budget: Budget) -> Draft:
        latest = self._latest()
        if latest is not self._held.inner:
            self._held.end()
            self._take(latest)
        return self._held.propose(state, budget)

    def observe(self, outcome: Outcome) -> None:
        self._held.observe(outcome)

    def end(self) -> None:
        self._held.end()

    def _take(self, proposer: Proposer) -> None:
        assert self._request is not None, "propose() before begin()"
        self._held = self._guarded(proposer)
        self.name = self._held.name
        self._held.begin(self._request)

    def _guarded(self, proposer: Proposer) -> Guarded:
        return Guarded(proposer, self._caps.vocab, trees=self._caps.tree)
