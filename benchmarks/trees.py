"""Guesses accepted a round without any model: chains, trees, recycling, memory, and all joined.

Says answers again that `edgespec train` has kept; earlier ones of the same folder are the memory.

uv run python benchmarks/trees.py FOLDER --answers 30
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from edgespec.decoding.accept import Accepted
from edgespec.decoding.draft import ROOT, Draft, Row
from edgespec.decoding.proposer import Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.combine import Merged
from edgespec.proposers.memory import Memory
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.recycling import Recycling
from edgespec.train.records import Record, Shelf

SIZES = (4, 8, 16)  # guesses a round


class Kept:
    """The scores that were kept of a round's rows; those of other tokens are low."""

    def __init__(self, record: Record, place: int, draft: Draft, low: Row) -> None:
        self._record, self._place, self._low = record, place, low
        self._depths = [*draft.depths(), 0]

    def top(self, node: int) -> int:
        return int(self._record.near[self._place + self._depths[node], 0])

    def logits(self, node: int) -> Row:
        row, at = self._low.copy(), self._place + self._depths[node]
        if at < len(self._record.near):
            row[self._record.near[at]] = self._record.scores[at]
        return row


def said_again(proposer: Proposer, record: Record, most: int, low: Row) -> Iterator[int]:
    """Accepted guesses of every round."""
    ids, begun = record.ids, record.begun
    request = Request(ids[:begun], Sampling(0.0, seed=0), len(ids)).seeded()
    rule, place = request.rule_for(0), begun + 1
    proposer.begin(request)
    while place < len(ids):
        draft = proposer.propose(State(ids[:place], place - begun, rule), UpTo(most))
        path = _right(draft, ids[place:].tolist())
        own = int(ids[min(place + len(path), len(ids) - 1)])
        scores = Kept(record, place - begun, draft, low)
        proposer.observe(Outcome(draft, Accepted(tuple(path), own), scores, 0.0, 0.0))
        place += len(path) + 1
        yield len(path)
    proposer.end()


def _right(draft: Draft, told: Sequence[int]) -> list[int]:
    path, node = list[int](), ROOT
    for token in told:
        node = next((n for n in draft.children(node) if draft.tokens[n] == token), -2)
        if node < ROOT:
            break
        path.append(node)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=int, default=30)
    asked = parser.parse_args()
    records = list(Shelf(asked.folder))
    order = np.random.default_rng(0).permutation(len(records)).tolist()
    chosen = [records[n] for n in order[: asked.answers]]
    earlier = [records[n].answer.tolist() for n in order[asked.answers :]]
    vocab = 1 + max(int(record.near.max()) for record in records)
    low = np.random.default_rng(0).uniform(-60, -25, vocab).astype(np.float32)
    memory = Memory(earlier)
    makers: dict[str, Callable[[], Proposer]] = {
        "n-gram chain": NGram,
        "n-gram tree": NGramTree,
        "recycling": Recycling,
        "memory": lambda: memory,
        "n-gram + recycling": lambda: Merged(NGramTree(), Recycling()),
        "n-gram + memory": lambda: Merged(NGramTree(), memory),
        "all": lambda: Merged(NGramTree(), memory, Recycling()),
    }
    tokens = sum(len(record.answer) for record in chosen)
    print(f"{len(chosen)} answers of {tokens} tokens; seed 0; accepted a round, and µs a round")
    print(f"{'guesses a round':<20}" + "".join(f"{size:>18}" for size in SIZES))
    for name, make in makers.items():
        cells = []
        for size in SIZES:
            proposer, started = make(), perf_counter()
            rounds = [n for r in chosen for n in said_again(proposer, r, size, low)]
            each_us = (perf_counter() - started) / len(rounds) * 1e6
            cells.append(f"{sum(rounds) / len(rounds):>9.3f} {each_us:>6.0f}µs")
        print(f"{name:<20}" + "".join(f"{cell:>18}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
