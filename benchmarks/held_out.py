"""Guesses accepted a round on answers that no drafter learned from: drafter files beside the rest.

Reads answers that `edgespec train` has kept and held out. Each drafter guesses in a session of
llama.cpp, as it does for whoever has the file. `then` and `joined` are what `--proposer auto` and
`--proposer tree` guess with at a fixed length. Answers that were drawn at a temperature are guessed
at without its noise, which is not kept. Intervals: 95 %, bootstrap over answers.

uv run python benchmarks/held_out.py FOLDER --drafter drafter.gguf
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from kept_answers import low_scores, said_again
from numpy.typing import NDArray

from edgespec import backends
from edgespec.backends import Placement, SessionOptions
from edgespec.decoding.draft import Row
from edgespec.decoding.proposer import Proposer
from edgespec.errors import BadInput, EdgespecError
from edgespec.models.id_table import IdTable
from edgespec.models.memory import DRAFT_ROWS
from edgespec.models.model_header import header_of
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.model_source import DraftCost
from edgespec.proposers.combine import FirstOf
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.model_tree import ModelTree
from edgespec.proposers.ngram import NGram
from edgespec.proposers.recycling import Recycling
from edgespec.proposers.trimmed import TrimmedSession
from edgespec.train.judging import SURE
from edgespec.train.records import Record, Shelf

DRAWS = 4000  # of the bootstrap
FEWEST = 8  # answers below which an interval says nothing
NGRAM, RECYCLING, ALL = "n-gram", "recycling", "all"

Counts = NDArray[np.float64]
"""For each answer, accepted guesses and rounds, float64 [answers, 2]."""


@dataclass(frozen=True, slots=True)
class Ways:
    """What one drafter file is compared as, by name."""

    alone: str
    then: str
    sure: str
    joined: str

    @classmethod
    def of(cls, name: str) -> Ways:
        sure = f"n-gram from {SURE} tokens, then {name}"
        return cls(name, f"n-gram, then {name}", sure, f"n-gram, {name} and recycling, joined")

    def differences(self) -> list[tuple[str, str]]:
        """What is compared with what."""
        both = [(way, one) for way in (self.then, self.sure) for one in (NGRAM, self.alone)]
        return [(self.alone, NGRAM), *both, (self.joined, self.then)]


@dataclass(frozen=True, slots=True)
class Gap:
    """Guesses a round by which two ways differ, and the interval."""

    value: float
    low: float
    high: float

    answers: int

    def __str__(self) -> str:
        if self.answers < FEWEST:
            return f"{self.value:+.2f}"
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


def opened(path: Path, table: IdTable, vocab: int, asked: argparse.Namespace) -> Drafter:
    """The drafter as `edgespec` opens it."""
    header = header_of(path)
    backend = backends.find("auto", (header.format,))
    model = backend.load(path, Placement(guesses_only=True))
    context = header.context_length or 1024
    session = model.session(SessionOptions(context, asked.threads, rows=DRAFT_ROWS, lazy=True))
    known = TrimmedSession(session, table.ids, table.unknown, vocab)
    return Drafter(SmallModel(known, vocab), DraftCost(0.0), ModelTree(known, vocab))


def table_of(path: Path) -> IdTable:
    """Raises: BadInput for a model that was not trained for another."""
    table = header_of(path).id_table
    if table is None:
        raise BadInput(f"{path} has no id table; name a drafter that `edgespec train` made.")
    return table


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """By file name, or folder and file name where several are called so."""
    stems = [path.stem for path in paths]
    return {
        stem if stems.count(stem) == 1 else f"{path.absolute().parent.name}/{stem}": path
        for stem, path in zip(stems, paths, strict=True)
    }


def ways_of(drafters: dict[str, Drafter]) -> dict[str, Proposer]:
    proposers: dict[str, Proposer] = {NGRAM: NGram(), RECYCLING: Recycling()}
    for name, drafter in drafters.items():
        ways, luck = Ways.of(name), Luck.of(CostCurve({1: 1.0}), drafter)
        proposers[ways.alone] = luck.fixed("draft")
        proposers[ways.then] = luck.fixed("auto")
        proposers[ways.sure] = FirstOf(NGram(SURE), drafter.proposer)
        proposers[ways.joined] = luck.fixed("tree")
    return proposers


def counted(proposer: Proposer, records: Sequence[Record], guesses: int, low: Row) -> Counts:
    rows: list[tuple[int, int]] = []
    for record in records:
        rounds = list(said_again(proposer, record, guesses, low))
        rows.append((sum(rounds), len(rounds)))
    return np.array(rows, np.float64).reshape(-1, 2)


def mean(counts: Counts) -> float:
    return float(counts[:, 0].sum() / counts[:, 1].sum())


def difference(one: Counts, other: Counts) -> Gap:
    drawn = np.random.default_rng(0).integers(len(one), size=(DRAWS, len(one)))
    a, b = one[drawn].sum(1), other[drawn].sum(1)
    low, high = np.quantile(a[:, 0] / a[:, 1] - b[:, 0] / b[:, 1], (0.025, 0.975))
    return Gap(mean(one) - mean(other), float(low), float(high), len(one))


@dataclass(frozen=True, slots=True)
class Table:
    """Answers of one temperature. places: of the answers of each category."""

    temperature: float
    tokens: int
    places: dict[str, list[int]]
    ways: dict[str, Counts]
    compared: list[tuple[str, str]]

    def markdown(self, guesses: int) -> str:
        answers = len(self.places[ALL])
        head = [f"{c} ({len(at)})" for c, at in self.places.items()]
        means = [
            [way, *(f"{mean(counts[at]):.2f}" for at in self.places.values())]
            for way, counts in self.ways.items()
        ]
        gaps = [
            [f"{a} − {b}", *(str(self._gap(a, b, at)) for at in self.places.values())]  # noqa: RUF001
            for a, b in self.compared
        ]
        return (
            f"temperature {self.temperature:g}: {answers} held-out answers of {self.tokens} tokens,"
            f" {guesses} guesses a round; accepted a round\n\n"
            + _markdown(["", *head], means)
            + (f"\n{_markdown(['difference', *head], gaps)}" if gaps else "")
        )

    def as_json(self) -> dict[str, object]:
        gaps = {
            f"{a} minus {b}": {
                c: [gap.value, gap.low, gap.high]
                for c, at in self.places.items()
                if (gap := self._gap(a, b, at))
            }
            for a, b in self.compared
        }
        return {
            "temperature": self.temperature,
            "tokens": self.tokens,
            "answers": {c: len(at) for c, at in self.places.items()},
            "accepted_per_round": {
                way: {c: mean(counts[at]) for c, at in self.places.items()}
                for way, counts in self.ways.items()
            },
            "differences": gaps,
        }

    def _gap(self, one: str, other: str, at: list[int]) -> Gap:
        return difference(self.ways[one][at], self.ways[other][at])


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def tabled(records: list[Record], asked: argparse.Namespace, tell: Callable[[str], None]) -> Table:
    tables = {name: (path, table_of(path)) for name, path in named(asked.drafter).items()}
    ids = [r.ids for r in records] + [r.near for r in records] + [t.ids for _, t in tables.values()]
    vocab = 1 + max(int(some.max()) for some in ids)
    drafters = {name: opened(*both, vocab, asked) for name, both in tables.items()}
    low, ways = low_scores(vocab), dict[str, Counts]()
    for name, proposer in ways_of(drafters).items():
        tell(f"{name}, temperature {records[0].temperature:g}")
        ways[name] = counted(proposer, records, asked.guesses, low)
    places = {ALL: list(range(len(records)))}
    for n, record in enumerate(records):
        places.setdefault(record.category, []).append(n)
    tokens = sum(len(record.answer) for record in records)
    compared = [pair for name in drafters for pair in Ways.of(name).differences()]
    return Table(records[0].temperature, tokens, places, ways, compared)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--drafter", type=Path, nargs="*", default=[])
    parser.add_argument("--answers", type=int, default=60, help="of each temperature")
    parser.add_argument("--guesses", type=int, default=4, help="a round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", dest="as_json")
    asked = parser.parse_args()
    records = (record for folder in asked.folders for record in Shelf(folder))
    held = [record for record in records if record.held and len(record.answer) > 1]
    if not held:
        sys.exit("No answer there was held out; name folders in which `edgespec train` keeps them.")
    tables: list[Table] = []
    try:
        for temperature in sorted({record.temperature for record in held}):
            some = [r for r in held if r.temperature == temperature]
            order = np.random.default_rng(0).permutation(len(some))[: asked.answers]
            chosen = [some[n] for n in order.tolist()]
            tables.append(tabled(chosen, asked, lambda line: print(line, file=sys.stderr)))
    except EdgespecError as error:
        sys.exit(str(error))
    if asked.as_json:
        found = [table.as_json() for table in tables]
        print(json.dumps({"guesses": asked.guesses, "tables": found}, indent=2))
    else:
        print("\n".join(table.markdown(asked.guesses) for table in tables))


if __name__ == "__main__":
    main()
