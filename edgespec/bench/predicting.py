"""A benchmark that first replays recorded answers, to measure only what wins there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.api import Model
from edgespec.bench.explore import BOUNDS, Explored, by_category, explore, total_seconds
from edgespec.bench.recorded import Recorded
from edgespec.bench.recording import Drafter
from edgespec.bench.tables import Extra, Table, number
from edgespec.options import LoadOptions

MOST_ARMS = 5  # that are measured, `none` and `auto` among them


@dataclass(frozen=True, slots=True)
class Predicted:
    """Speed-ups by replaying, of every arm and of perfect foresight."""

    explored: tuple[Explored, ...]

    @property
    def arms(self) -> tuple[str, ...]:
        """What is worth measuring: none, auto, then what wins over all or in some category."""
        total, table = total_seconds(self.explored), by_category(self.explored)
        known = [name for name in total if name not in BOUNDS]
        categories = dict.fromkeys(one.category for one in self.explored)
        best = [min(known, key=lambda name: total[name])]
        best += [max(table, key=lambda n: (n not in BOUNDS, table[n][c])) for c in categories]
        names = dict.fromkeys(["none", "auto", *("none" if b == "plain" else b for b in best)])
        return tuple(names)[:MOST_ARMS]

    @property
    def extra(self) -> Extra:
        """Columns to stand beside what is measured."""
        table = by_category(self.explored)
        chosen = [name for name in self.arms if name in table]
        columns = {f"{name}, replayed": table[name] for name in chosen}
        return columns | {name: table[name] for name in BOUNDS if name in table}

    def table(self) -> Table:
        """Arms down, categories across; the bounds last."""
        table = by_category(self.explored)
        categories = tuple(dict.fromkeys(one.category for one in self.explored))
        rows = tuple((name, *(number(table[name][c]) for c in categories)) for name in table)
        arms = [name for name in table if name not in BOUNDS]
        best = {
            (row, column)
            for column, category in enumerate(categories, 1)
            for row in [max(range(len(arms)), key=lambda n: table[arms[n]][category])]
        }
        title = "Replayed: speed, times plain, and what perfect foresight would reach"
        return Table(title, ("arm", *categories), rows, frozenset(best))


def predict(model: Model, records: Sequence[Recorded], options: LoadOptions) -> Predicted:
    """Replay recorded answers, with the model's own drafter if it has one.

    Trees and recycled tokens are replayed only as far as auto uses them here.

    options: as the model was loaded.
    """
    cost, drafter = model.loaded.target.cost, None
    if model.loaded.drafter is not None:
        guessing = Drafter(model, options)
        records = [guessing.guessed(one) for one in records]
        drafter = guessing.cost(records)
    model.forget()
    return Predicted(tuple(explore(records, cost, drafter, trees=model.loaded.lets_trees)))
