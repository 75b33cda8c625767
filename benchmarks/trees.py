"""Guesses accepted a round without any model: chains, trees, recycling, memory, and all joined.

Says answers again that `edgespec train` has kept; earlier ones of the same folder are the memory.

uv run python benchmarks/trees.py FOLDER --answers 30
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from kept_answers import low_scores, said_again

from edgespec.decoding.proposer import Proposer
from edgespec.proposers.combine import Merged
from edgespec.proposers.memory import Memory
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.recycling import Recycling
from edgespec.train.records import Shelf

SIZES = (4, 8, 16)  # guesses a round


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
    low = low_scores(vocab)
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
