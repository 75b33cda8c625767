"""What guesses the next tokens, as the loop sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgespec.decoding.accept import Accepted, Rule
from edgespec.decoding.draft import EMPTY, Draft, Tokens
from edgespec.decoding.request import Request
from edgespec.decoding.session import Scores


@dataclass(frozen=True, slots=True)
class State:
    """Where decoding stands: all committed tokens, the last one pending.

    index: place of the next token in the reply. rule: how the target will judge this round, and
    so how a model that drafts should choose. recent: the tokens that penalties look at.
    """

    tokens: Tokens
    index: int
    rule: Rule
    recent: Sequence[int] = ()


class Budget(Protocol):
    """How much may be guessed this round."""

    @property
    def nodes(self) -> int:
        """Most tokens in the draft."""
        ...

    def another(self, confidences: Sequence[float]) -> bool:
        """Whether one more guess pays after guesses with these confidences.

        Asked before the guess is made: what it turns out to be has no say in whether it is
        verified, or rejection sampling would lose its exactness.
        """
        ...


@dataclass(frozen=True, slots=True)
class UpTo:
    """A fixed number of guesses."""

    nodes: int

    def another(self, confidences: Sequence[float]) -> bool:
        return len(confidences) < self.nodes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a round."""

    draft: Draft
    accepted: Accepted
    scores: Scores
    draft_s: float
    verify_s: float

    @property
    def rows(self) -> int:
        """Positions the target computed, the pending token included."""
        return len(self.draft) + 1


class Proposer(Protocol):
    """Guesses what the target will say next. A wrong guess costs time, never correctness."""

    name: str

    @property
    def note(self) -> str:
        """A fault that a part of it had and the rest survived; empty as a rule."""
        ...

    @property
    def plan(self) -> str:
        """What was chosen for the latest draft and why, in words; may be empty."""
        ...

    def begin(self, request: Request) -> None:
        """A new answer starts; forget what belongs to the last one."""
        ...

    def propose(self, state: State, budget: Budget) -> Draft:
        """Guess what follows the pending token. An empty draft means a plain round."""
        ...

    def observe(self, outcome: Outcome) -> None:
        """Learn from a round; called for plain ones too."""
        ...

    def end(self) -> None:
        """The answer is over, or was given up."""
        ...


class Guarded:
    """A proposer whose faults cost a draft, never the answer.

    After an exception or a draft that is no draft it stays silent until the next answer.
    `take_note()` tells the reason once.
    """

    def __init__(self, inner: Proposer, vocab: int, *, trees: bool) -> None:
        self.inner, self.name = inner, inner.name
        self._vocab, self._trees = vocab, trees
        self._note = self._told = ""
        self.broken = False

    @property
    def note(self) -> str:
        return self._note or self.inner.note

    @property
    def plan(self) -> str:
        if not self.broken:
            try:
                return self.inner.plan
            except Exception as error:  # see propose()
                self._give_up(f"{type(error).__name__}: {error}")
        return f"{self.name} stopped after a fault"

    def begin(self, request: Request) -> None:
        self.broken, self._note, self._told = False, "", ""
        self._try(lambda: self.inner.begin(request))

    def propose(self, state: State, budget: Budget) -> Draft:
        if self.broken:
            return EMPTY
        try:
            draft = self.inner.propose(state, budget)
            fault = self._fault(draft, state, budget)
        except Exception as error:  # whatever a drafter does, the answer goes on
            fault = f"{type(error).__name__}: {error}"
        if fault:
            self._give_up(fault)
            return EMPTY
        return draft

    def observe(self, outcome: Outcome) -> None:
        if not self.broken:
            self._try(lambda: self.inner.observe(outcome))

    def end(self) -> None:
        self._try(self.inner.end)

    def take_note(self) -> str:
        note = self.note
        if note == self._told:
            return ""
        self._told = note
        return note

    def _fault(self, draft: Draft, state: State, budget: Budget) -> str | None:
        if len(draft) > budget.nodes:
            return f"it guessed {len(draft)} tokens where {budget.nodes} fit"
        if not (self._trees and state.rule.trees) and not draft.is_chain:
            return "it guessed a tree where only a chain can be verified"
        return draft.fault(self._vocab)

    def _try(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # see propose()
            self._give_up(f"{type(error).__name__}: {error}")

    def _give_up(self, fault: str) -> None:
        self.broken = True
        self._note = f"drafter '{self.name}' is off for this answer: {fault}"
