"""Guesses by a small model of the target's family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from edgespec.decoding.accept import Guessed, Rule
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Support, Tokens
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request
from edgespec.decoding.session import Session
from edgespec.proposers.watchdog import Watchdog

# How often a guess may well be right, before any was seen: one of a model of the target's family,
# and one of a few million parameters that were trained for it (the demo's: 0.54 to 0.62).
FAMILY_HOPE, TRAINED_HOPE = 0.85, 0.6
RIDES_ALONG = 2  # unread tokens that cost the next pass next to nothing


@dataclass(frozen=True, slots=True)
class DraftTiming:
    """What the latest draft cost. first_s: the first guess, with all text that had to be read."""

    guesses: int = 0
    read_tokens: int = 0
    first_s: float = 0.0
    total_s: float = 0.0


class SmallModel:
    """Draws a chain from a smaller model's own session, with the target's noise.

    Its cache follows the text lazily: only when a draft is wanted, from the longest prefix that
    still holds. vocab: tokens that the target knows; ids beyond it are never guessed. guesses,
    confidences: of the latest draft, or of the one that is being made. others: for each guess of
    the latest draft, what the model held likely instead, as far as it was noted. hope: how often it
    may well be right.
    """

    name = "draft"

    def __init__(self, session: Session, vocab: int, hope: float = FAMILY_HOPE) -> None:
        self._session, self._vocab, self.hope = session, vocab, hope
        self.timing = DraftTiming()
        self.guesses: Sequence[int] = ()
        self.confidences: list[float] = []
        self.others: Sequence[Sequence[Guessed]] = ()
        self._full, self._watchdog = False, Watchdog()

    @property
    def note(self) -> str:
        return self._watchdog.why(self.name)

    @property
    def plan(self) -> str:
        if self._watchdog.parked:
            return "draft model: it rests, since it is wrong nearly always"
        if self._full:
            return f"draft model: its context of {self._session.caps.context} tokens is full"
        return f"draft model ×{self.timing.guesses}"  # noqa: RUF001

    def begin(self, request: Request) -> None:
        self._full = False
        self._watchdog.begin()

    def forget(self) -> None:
        """Empty the drafter's cache."""
        self._session.reset()

    def unread(self, tokens: Tokens) -> int:
        """How many of `tokens` a draft behind them would have to read first."""
        return len(tokens) - self._session.held(tokens)

    def room(self, state: State) -> int:
        """How many guesses the drafter's own context has room for behind this text; none where
        it rests."""
        if self._watchdog.parked:
            return 0
        room = max(0, self._session.caps.context - len(state.tokens))
        self._full = room == 0
        return room

    def propose(self, state: State, budget: Budget) -> Draft:
        most = min(budget.nodes, self.room(state))
        if most < 1:
            return EMPTY
        started_s = perf_counter()
        steps = list(self._session.prefill(state.tokens))
        guesses = self.guesses = list[int]()
        q: list[Support | None] = []
        others: list[list[Guessed]] = []
        self.confidences = []
        first_s = 0.0
        recent = list(state.recent)
        while len(guesses) < most and budget.another(self.confidences):
            row = self._session.verify(EMPTY).logits(ROOT)[: self._vocab]
            index = state.index + len(guesses)
            guess, *instead = self._guesses(row, state.rule, recent, index)
            self._session.commit((), guess.token)
            guesses.append(guess.token)
            others.append(instead)
            recent.append(guess.token)
            q.append(guess.q)
            self.confidences.append(guess.confidence)
            first_s = first_s or perf_counter() - started_s
        self.others = others
        read = len(state.tokens) - steps[0]
        self.timing = DraftTiming(len(guesses), read, first_s, perf_counter() - started_s)
        return Draft.chain(guesses, self.name, q, self.confidences) if guesses else EMPTY

    def _guesses(self, row: Row, rule: Rule, recent: Sequence[int], index: int) -> list[Guessed]:
        """The guess for one place, and what is noted beside it."""
        return [rule.guess(row, recent, index)]

    def observe(self, outcome: Outcome) -> None:
        draft = outcome.draft
        first = [node for node in draft.children(ROOT) if draft.source[node] == self.name]
        if first:
            self._watchdog.observe(right=outcome.accepted.path[:1] in {(node,) for node in first})

    def end(self) -> None:
        pass
