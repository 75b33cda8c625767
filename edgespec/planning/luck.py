"""Everything that can guess for one loaded pair, and what is known of how well it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from edgespec.decoding.proposer import Proposer
from edgespec.planning.beside import Siblings
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import ModelSource
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
    """A draft model that is ready to guess. guess_s: seconds for one token of it.

    tree: the same model, guessing trees where its session takes them. branching: the same, noting
    siblings for whoever has them verified; None where nobody will.
    """

    proposer: SmallModel
    guess_s: float
    tree: SmallModel
    branching: SmallModel | None = None


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
        ngram, recycling = NGramSource(cost), Recycling(keeps=keeps)
        draft = branching = None
        if drafter is not None:
            draft = ModelSource(drafter.proposer, cost, drafter.guess_s, ngram)
            if drafter.branching is not None:
                branching = ModelSource(drafter.branching, cost, drafter.guess_s, ngram, Siblings())
        remembered = [] if memory is None else [memory]
        return cls(
            cost,
            drafter,
            ngram,
            draft,
            branching,
            TreeSource(Merged(NGramTree(), *remembered), cost),
            TreeSource(recycling, cost),
            TreeSource(Merged(NGramTree(), *remembered, recycling), cost),
            recycling,
            memory,
        )

    def sources(self, name: str, *, trees: bool) -> list[Source]:
        """What the planner may choose from. trees: whether auto may draft them unasked."""
        if name == "tree":
            return [self.tree]
        if name == "recycling":
            return [self.recycling]
        sources: list[Source] = []
        if name == "auto" and trees and self._trees_pay:
            sources.append(self.text)
        elif name in ("auto", "ngram"):
            sources.append(self.ngram)
        siblings = name == "auto" and trees and cheap_rows(self.cost.seconds)
        model = (self.branching or self.draft) if siblings else self.draft
        if name in ("auto", "draft") and model is not None:
            sources.append(model)
        return sources

    def fixed(self, name: str) -> Proposer:
        """What guesses whether it pays or not."""
        if name == "recycling":
            return self.recycler
        remembered = [] if self.memory is None else [self.memory]
        parts: list[Proposer] = []
        if name == "tree":
            parts.append(NGramTree(SHORTEST_FIXED))
            if self.drafter is not None:
                parts.append(self.drafter.tree)
            return Merged(*parts, *remembered, self.recycler)
        if name in ("auto", "ngram"):
            parts.append(NGram(SHORTEST_FIXED))
        if name in ("auto", "draft") and self.drafter is not None:
            parts.append(self.drafter.proposer)
        return FirstOf(*parts, *(remembered if name == "auto" else []))

    @property
    def _trees_pay(self) -> bool:
        """Whether further guesses for one place cost so little here that they are no loss."""
        most = CHEAP_ROWS if self.memory is None else CHEAP_WITH_MEMORY
        return cheap_rows(self.cost.seconds, most)
