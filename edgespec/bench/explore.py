"""Ways of guessing on recorded answers, without a pass of the target, and what is possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from edgespec.bench.foresight import Foresight, foresight
from edgespec.bench.recorded import Recorded
from edgespec.bench.replay import (
    AnyCost,
    Arm,
    AutoArm,
    FixedArm,
    Replayed,
    Replayer,
    curve_of,
    plain_seconds,
)
from edgespec.planning.model_source import DraftCost

LENGTHS = (2, 4, 6, 8, 12)
BOUNDS = ("foresight ngram", "foresight draft", "foresight both")


@dataclass(frozen=True, slots=True)
class Explored:
    """One answer by every arm, by the arm's name, and the bound that no planner can beat."""

    id: str
    category: str
    plain_seconds: float
    arms: dict[str, Replayed]
    bound: Foresight

    @property
    def seconds(self) -> dict[str, float]:
        """What the answer takes from its first token on: by each arm, and with foresight."""
        bounds = zip(BOUNDS, (self.bound.ngram, self.bound.draft, self.bound.both), strict=True)
        found = {name: replayed.seconds for name, replayed in self.arms.items()}
        return found | {name: self.plain_seconds / b for name, b in bounds if b is not None}


def arms(*, model: bool, trees: bool = False, lengths: Sequence[int] = LENGTHS) -> list[Arm]:
    """What is worth a try, with a draft model or without: the planner and fixed lengths.

    trees: whether auto may draft them unasked.
    """
    kinds = [("ngram",), ("draft",), ("ngram", "draft")] if model else [("ngram",)]
    autos = [AutoArm("auto", trees), *([AutoArm("draft")] if model else []), AutoArm("ngram")]
    return [*autos, *(FixedArm(kind, n) for kind in kinds for n in lengths)]


def explore(
    records: Sequence[Recorded],
    cost: AnyCost,
    drafter: DraftCost | None = None,
    tried: Sequence[Arm] | None = None,
    *,
    trees: bool = False,
) -> list[Explored]:
    """Say each answer by each arm; one that learns keeps what it learned from answer to answer.

    drafter: None where the answers hold no guesses of a draft model. tried: as arms() by default.
    trees: whether auto may draft them unasked.
    """
    if tried is None:
        tried = arms(model=drafter is not None, trees=trees)
    replayers = {arm.name: Replayer(arm, cost, drafter) for arm in tried}
    own = curve_of(cost)
    explored: list[Explored] = []
    for recorded in records:
        by_arm = {name: replayer.replay(recorded) for name, replayer in replayers.items()}
        plain_s = plain_seconds(recorded, own)
        bound = foresight(recorded, cost, drafter, trees=trees)
        explored.append(Explored(recorded.id, recorded.category, plain_s, by_arm, bound))
    return explored


def total_seconds(explored: Iterable[Explored]) -> dict[str, float]:
    """What all these answers take together, by arm, `plain` and the bounds included."""
    total: dict[str, float] = {}
    for one in explored:
        for name, seconds in {"plain": one.plain_seconds, **one.seconds}.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def by_category(explored: Sequence[Explored]) -> dict[str, dict[str, float]]:
    """Speed-up of each arm and bound in each category, over the time of all its answers."""
    categories = dict.fromkeys(one.category for one in explored)
    table: dict[str, dict[str, float]] = {}
    for category in categories:
        total = total_seconds(one for one in explored if one.category == category)
        plain_s = total.pop("plain")
        for name, seconds in total.items():
            table.setdefault(name, {})[category] = plain_s / seconds if seconds else 1.0
    return table
