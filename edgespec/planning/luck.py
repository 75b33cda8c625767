"""Everything that can guess for one loaded pair, and what is known of how well it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgespec.decoding.proposer import Proposer
from edgespec.planning.beside import Siblings
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.sources import NGramSource, Source
from edgespec.planning.tree_source import TreeSource
from edgespec.proposers.combine import FirstOf, Merged
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.memory import Memory
from edgespec.proposers.ngram import SHORTEST_FIXED, NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.recycling import Recycling

# plain passes that four rows may cost for trees to be no loss; with a memory they win more
CHEAP_ROWS, CHEAP_WITH_MEMORY = 1.3, 2.0


def cheap_rows(cost: Callable[[int], float], most: float = CHEAP_ROWS) -> bool:
    """Whether four rows cost at most so many plain passes. cost: seconds of a pass by rows."""
    return cost(4) <= most * cost(1)


@dataclass(frozen=True, slots=True)
class Drafter:
    """A draft model that is ready to guess. takes: its time.

    tree: the same model, guessing trees where its session takes them. branching: the same, noting
    siblings for whoever has them verified; None where nobody will.
    """

    proposer: SmallModel
    takes: DraftCost
    tree: SmallModel
    branching: SmallModel | None = None

    @property
    def guess_s(self) -> float:
        return self.takes.guess_s


@dataclass(frozen=True, slots=True)
class Luck:
    """Sources that remember from answer to answer how well they guessed.

    draft, branching: the draft model's chains, and with siblings where they pay. text: trees from
    the text and from memory. recycling, tree: what `--proposer` calls so.
    recycler: the one in both. memory: earlier answers, where the user lets them be looked up.
    """

    cost: CostCurve
    drafter: Drafter | None
    ngram: NGramSource
    draft: ModelSource | None
    branching: ModelSource | None
    text: TreeSource
    recycling: TreeSource
    tree: TreeSource
    recycler: Recycling
    memory: Memory | None

    @classmethod
    def of(
        cls,
        cost: CostCurve,
        drafter: Drafter | None,
        memory: Memory | None = None,
        *,
        keeps: bool = False,
    ) -> Luck:
        """keeps: whether what is recycled outlives a conversation."""
        ngram, recycler = NGramSource(cost), Recycling(keeps=keeps)
        draft = branching = None
        if drafter is not None:
            draft = ModelSource(drafter.proposer, cost, drafter.takes, ngram)
            if drafter.branching is not None:
                branching = ModelSource(drafter.branching, cost, drafter.takes, ngram, Siblings())
        remembered = [] if memory is None else [memory]
        return cls(
            cost=cost,
            drafter=drafter,
            ngram=ngram,
            draft=draft,
            branching=branching,
            text=TreeSource(Merged(NGramTree(), *remembered), cost),
            recycling=TreeSource(recycler, cost),
            tree=TreeSource(Merged(NGramTree(), *remembered, recycler), cost),
            recycler=recycler,
            memory=memory,
        )

    def sources(self, name: str, *, trees: bool) -> list[Source]:
        """What the planner may choose from under a name of `--proposer`.

        trees: whether auto may draft them unasked.
        """
        text = self.text if trees and self._trees_pay else self.ngram
        siblings = self.branching if trees and cheap_rows(self.cost.seconds) else None
        named: dict[str, list[Source | None]] = {
            "auto": [text, siblings or self.draft],
            "ngram": [self.ngram],
            "draft": [self.draft],
            "recycling": [self.recycling],
            "tree": [self.tree],
        }
        return [source for source in named[name] if source is not None]

    def fixed(self, name: str) -> Proposer:
        """What guesses under such a name whether it pays or not."""
        chain = [] if self.drafter is None else [self.drafter.proposer]
        tree = [] if self.drafter is None else [self.drafter.tree]
        memory = [] if self.memory is None else [self.memory]
        named: dict[str, list[Proposer]] = {
            "auto": [NGram(SHORTEST_FIXED), *chain, *memory],
            "ngram": [NGram(SHORTEST_FIXED)],
            "draft": [*chain],
            "recycling": [self.recycler],
            "tree": [NGramTree(SHORTEST_FIXED), *tree, *memory, self.recycler],
        }
        return Merged(*named[name]) if name == "tree" else FirstOf(*named[name])

    @property
    def _trees_pay(self) -> bool:
        """Whether further guesses for one place cost so little here that they are no loss."""
        most = CHEAP_ROWS if self.memory is None else CHEAP_WITH_MEMORY
        return cheap_rows(self.cost.seconds, most)
