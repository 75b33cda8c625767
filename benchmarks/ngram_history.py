"""What the n-gram index costs as the history grows: per token appended and per round asked.

uv run python benchmarks/ngram_history.py
"""

from __future__ import annotations

import argparse
from statistics import median
from time import perf_counter

import numpy as np

from edgespec.proposers.ngram import SuffixIndex

ROUNDS = 500


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    rng = np.random.default_rng(0)
    print(f"{'tokens':>8} {'index s':>8} {'append µs':>10} {'ask µs':>8} {'worst µs':>9}")
    for size in (1_000, 10_000, 100_000, 128_000):
        text = rng.zipf(1.3, size).clip(0, 30_000).astype(np.int32)
        text[size // 2 : size // 2 + 300] = text[:300]
        started = perf_counter()
        index = SuffixIndex(text)
        built_s = perf_counter() - started
        appended, asked = [], []
        for token in text[:ROUNDS].tolist():
            started = perf_counter()
            index.extend([token])
            appended.append(perf_counter() - started)
            started = perf_counter()
            index.best_match(-1)
            asked.append(perf_counter() - started)
        print(
            f"{size:>8} {built_s:>8.3f} {median(appended) * 1e6:>10.1f}"
            f" {median(asked) * 1e6:>8.1f} {max(asked) * 1e6:>9.1f}"
        )


if __name__ == "__main__":
    main()
