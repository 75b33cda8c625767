"""Guesses by a small model that looks at several tokens for one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

from edgespec.decoding.accept import Guessed, Rule
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request
from edgespec.decoding.session import Session
from edgespec.proposers.draft_model import FAMILY_HOPE, DraftTiming, SmallModel
from edgespec.proposers.growing import GrowingTree, renumbered

OTHERS = 3  # tokens that are noted beside each guess of a line


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a small model looks for a tree. passes: of the model. wide: nodes that one pass
    looks behind, and tokens that are taken of each."""

    passes: int = 6
    wide: int = 4


class Branching(SmallModel):
    """Guesses a chain and notes what the model held likely beside each guess, without a further
    pass. Whoever verifies it may add those as siblings."""

    def _guesses(self, row: Row, rule: Rule, recent: Sequence[int], index: int) -> list[Guessed]:
        return rule.guesses(row, recent, index, 1 + OTHERS)


class ModelTree(SmallModel):
    """Grows a tree where the model is least sure, in the likeliest places first.

    One pass looks behind the likeliest guesses of all that were made so far; what the next one
    looks at is added below, and no guess is computed twice. The tree is the likeliest of them.
    Source: arXiv:2406.16858, §4; with the target's noise the likeliest are those of log q + G.
    A rule or session without trees gets a chain.
    """

    def __init__(
        self,
        session: Session,
        vocab: int,
        hope: float = FAMILY_HOPE,
        reach: Reach | None = None,
    ) -> None:
        super().__init__(session, vocab, hope)
        self._reach = reach or Reach()
        self._computed: list[int] = []  # nodes of _tree that the model's cache holds, in order
        self._tree = GrowingTree()
        self._nodes = 0

    @property
    def plan(self) -> str:
        return f"draft model: a tree of {self._nodes}" if self._nodes else super().plan

    def begin(self, request: Request) -> None:
        super().begin(request)
        self._nodes, self._tree, self._computed = 0, GrowingTree(), []

    def propose(self, state: State, budget: Budget) -> Draft:
        self._nodes, self._tree, self._computed = 0, GrowingTree(), []
        caps = self._session.caps
        room = min(self.room(state), caps.rows - 1)
        most = min(budget.nodes, room)
        if most < 2 or not (caps.tree and state.rule.trees):
            return super().propose(state, budget)
        started_s = perf_counter()
        steps = list(self._session.prefill(state.tokens))
        row = self._session.verify(EMPTY).logits(ROOT)
        self._look_behind(ROOT, row, state)
        first_s, passes = perf_counter() - started_s, 1
        while passes < self._reach.passes and (nodes := self._worth_a_look(most, room)):
            self._compute(nodes, state)
            passes += 1
        read = len(state.tokens) - steps[0]
        self.timing = DraftTiming(passes, read, first_s, perf_counter() - started_s)
        draft = self._tree.draft(most, self.name)
        self._nodes, self.confidences = len(draft), list(draft.confidence)
        return draft

    def observe(self, outcome: Outcome) -> None:
        super().observe(outcome)
        if self._tree:
            self._keep(outcome.accepted.tokens(outcome.draft))

    def _worth_a_look(self, most: int, room: int) -> list[int]:
        """The likeliest guesses that nothing was guessed behind and that may still gain by it.

        room: nodes that the model's cache may hold in all.
        """
        best = self._tree.best(most)
        bar = self._tree.chance[best[-1]] if len(best) == most else 0.0
        held = set(self._computed)
        new = [n for n in best if n not in held and self._tree.chance[n] > bar]
        return sorted(new[: min(self._reach.wide, room - len(held))])

    def _compute(self, nodes: list[int], state: State) -> None:
        """One pass of the model over guesses whose parents it has seen."""
        known = len(self._computed)
        self._computed += nodes
        n = len(self._computed)
        grown = Draft(
            [self._tree.tokens[node] for node in self._computed],
            renumbered(self._computed, self._tree.parents),
            (self.name,) * n,
            (None,) * n,
        )
        scores = self._session.extend(grown)
        for at, node in enumerate(nodes, known):
            self._look_behind(node, scores.logits(at), state)

    def _look_behind(self, node: int, row: Row, state: State) -> None:
        line = self._tree.line(node)
        recent = [*state.recent, *line] if state.recent else line
        index = state.index + len(line)
        for guess in state.rule.guesses(row[: self._vocab], recent, index, self._reach.wide):
            self._tree.add(node, guess.token, guess.confidence)

    def _keep(self, told: list[int]) -> None:
        """Keep in the model's cache what it has computed of the text that was told."""
        places = {
            (self._tree.parents[node], self._tree.tokens[node]): (n, node)
            for n, node in enumerate(self._computed)
        }
        path, above = list[int](), ROOT
        for token in told[:-1]:
            place, above = places.get((above, token), (-1, ROOT))
            if place < 0:
                break
            path.append(place)
        self._session.commit(path, told[len(path)])
        self._tree, self._computed = GrowingTree(), []
