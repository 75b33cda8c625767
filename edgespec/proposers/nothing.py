"""Plain decoding."""

from __future__ import annotations

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request


class Nothing:
    """Guesses nothing, and remembers nothing: the base of proposers without state."""

    name, note = "none", ""
    plan = "off: speculation is switched off"

    def begin(self, request: Request) -> None:
        pass

    def propose(self, state: State, budget: Budget) -> Draft:
        return EMPTY

    def observe(self, outcome: Outcome) -> None:
        pass

    def end(self) -> None:
        pass
