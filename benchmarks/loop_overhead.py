"""What the loop itself costs: every step of a round except the forward passes.

    python benchmarks/loop_overhead.py [--vocab 151936] [--rounds 200] [--profile]

The backend is fake: a forward pass hands out views of one float32 array made beforehand. Its rows
are shaped like those of a real model: a Gaussian body (deviation 2.2, as logits of small chat
models have) and a head of 40 tokens raised by an exponential (mean 4), highest first, so that at
temperature 0.8 some ten tokens hold most of the mass. 32 different rows take turns, 19 MB in
all, more than most caches hold. The drafter copies the target's own text and is wrong at about
every fifth place, so rounds of 8 rows visit a realistic number of them.

Two figures for each sampler, medians over repeats: milliseconds per round, and milliseconds per
row visited (a row is visited where the target spoke: accepted tokens and the last one). Times are
processor time, so that other programs count less; run it with OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Draft, Row, Tokens
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Caps, Scores
from edgespec.proposers.nothing import Nothing

GUESSES, ROWS, REPEATS = 7, 32, 5
Table = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """One sampler. limit_ms: what it may cost, per round if greedy, else per row visited."""

    name: str
    sampling: Sampling
    limit_ms: float


OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
CASES = (
    Case("greedy", Sampling(0.0, seed=1), 0.24),
    Case("temperature, top-k, top-p", Sampling(0.8, 40, 0.95, 0.0, seed=1), 0.5),
    Case("the default sampler", Sampling(seed=1), 0.5),
    Case("temperature only", Sampling(0.8, **OFF, seed=1), 1.0),  # type: ignore[arg-type]
    Case("top-p only", Sampling(1.0, 0, 0.95, 0.0, seed=1), 1.0),
    Case("default and penalties", Sampling(repeat_penalty=1.1, seed=1), 0.5),
)


def rows_like_a_model(vocab: int) -> Table:
    rng = np.random.default_rng(0)
    table = 2.2 * rng.standard_normal((ROWS, vocab), dtype=np.float32)
    for row in table:
        head = rng.choice(vocab, 40, replace=False)
        row[head] = row.max() / 2 + np.sort(rng.exponential(4.0, 40))[::-1]
    return table


class Prepared:
    """Scores that lie ready; `top` is known beforehand, as a backend finds it on the device."""

    def __init__(self, table: Table, tops: Sequence[int], at: int) -> None:
        self._table, self._tops, self._at = table, tops, at

    def top(self, node: int) -> int:
        return self._tops[(self._at + node + 1) % ROWS]

    def logits(self, node: int) -> Row:
        row: Row = self._table[(self._at + node + 1) % ROWS]
        return row


class FakeSession:
    """The row after a token depends on its position alone."""

    def __init__(self, table: Table) -> None:
        self.caps = Caps(table.shape[1], 10**6, tree=True)
        self._table = table
        self._tops = [int(row.argmax()) for row in table]
        self._length = 0

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        self._length = len(tokens)
        yield 0

    def verify(self, draft: Draft) -> Scores:
        return Prepared(self._table, self._tops, self._length)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self._length += len(path) + 1


class Copycat(Nothing):
    """Guesses a text that was recorded, with an error at about every fifth place."""

    name, plan = "copycat", "seven guesses"

    def __init__(self, text: Sequence[int]) -> None:
        rng = np.random.default_rng(1)
        wrong = rng.random(len(text)) < 0.2
        self._text = [token + 1 if bad else token for token, bad in zip(text, wrong, strict=True)]

    def propose(self, state: State, budget: Budget) -> Draft:
        return Draft.chain(self._text[state.index : state.index + GUESSES], self.name)


@dataclass(frozen=True)
class Measured:
    round_ms: float
    row_ms: float
    rows: float
    acceptance: float


def _request(case: Case, tokens: int) -> Request:
    return Request(np.arange(100, dtype=np.int32), case.sampling, tokens)


def record(table: Table, case: Case, tokens: int) -> list[int]:
    """The plain answer."""
    text = list[int]()
    for event in speculate(FakeSession(table), _request(case, tokens), Nothing()):
        if isinstance(event, Round):
            text += [token.token for token in event.tokens]
    return text


def measure(table: Table, case: Case, text: Sequence[int], rounds: int) -> Measured:
    """One repeat: the first `rounds` rounds with a draft, the first answer's round left out."""
    told = list[Round]()
    events = speculate(FakeSession(table), _request(case, len(text)), Copycat(text))
    start = 0.0
    for event in events:
        if not isinstance(event, Round):
            continue
        if start:
            told.append(event)
        start = start or process_time()
        if len(told) == rounds:
            break
    seconds = process_time() - start
    assert all(len(round_.guesses) == GUESSES for round_ in told)
    visited = sum(len(round_.tokens) for round_ in told)
    accepted = sum(round_.accepted for round_ in told)
    tested = sum(guess.tested for round_ in told for guess in round_.guesses)
    assert 0 < accepted < tested
    return Measured(
        1000 * seconds / rounds, 1000 * seconds / visited, visited / rounds, accepted / tested
    )


def median(table: Table, case: Case, text: Sequence[int], rounds: int) -> Measured:
    measure(table, case, text, rounds)  # warm
    runs = [measure(table, case, text, rounds) for _ in range(REPEATS)]
    return sorted(runs, key=lambda run: run.round_ms)[len(runs) // 2]


def main() -> None:
    parser = argparse.ArgumentParser(description="What the loop costs, forward passes apart.")
    parser.add_argument("--vocab", type=int, default=151_936)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--profile", action="store_true", help="profile every sampler")
    chosen = parser.parse_args()
    table = rows_like_a_model(chosen.vocab)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {np.__version__}; vocabulary {chosen.vocab}, {GUESSES + 1} rows a round, "
        f"median of {REPEATS} times {chosen.rounds} rounds"
    )
    print(f"{'sampler':28}{'ms/round':>10}{'ms/row':>9}{'rows':>7}{'accepted':>10}  limit")
    for case in CASES:
        text = record(table, case, (GUESSES + 1) * (chosen.rounds + 2))
        m = median(table, case, text, chosen.rounds)
        value = m.round_ms if case.sampling.greedy else m.row_ms
        unit = "round" if case.sampling.greedy else "row"
        verdict = "ok" if value < case.limit_ms else "MISSED"
        print(
            f"{case.name:28}{m.round_ms:10.3f}{m.row_ms:9.3f}{m.rows:7.2f}{m.acceptance:10.2f}"
            f"  < {case.limit_ms} ms/{unit}: {verdict}"
        )
        if chosen.profile:
            profile(table, case, text, chosen.rounds)


def profile(table: Table, case: Case, text: Sequence[int], rounds: int) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(measure, table, case, text, rounds)
    pstats.Stats(profiler).strip_dirs().sort_stats("tottime").print_stats(12)


if __name__ == "__main__":
    main()
