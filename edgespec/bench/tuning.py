"""Which way of guessing takes the least time on given answers, from one plain run of the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgespec.api import Model
from edgespec.bench.explore import LENGTHS, explore, total_seconds
from edgespec.bench.recorded import Recorded
from edgespec.bench.recording import Drafter
from edgespec.bench.replay import (
    AnyCost,
    Arm,
    AutoArm,
    FixedArm,
    curve_of,
    plain_seconds,
    proposer_name,
)
from edgespec.errors import OutOfMemory
from edgespec.options import LoadOptions
from edgespec.planning.model_source import DraftCost

WORTH = 1.03  # times faster that a draft model, or a fixed length, must be than what is simpler


@dataclass(frozen=True, slots=True)
class Way:
    """A way of guessing and the seconds that all answers take with it.

    draft: a model file; None = no draft model. draft_tokens: None = what pays.
    """

    draft: Path | None
    proposer: str
    draft_tokens: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """The best way with one draft model, or without any. cost: None without one.

    bound_seconds: with perfect foresight; None for trees, of which it is not known.
    """

    best: Way
    bound_seconds: float | None
    cost: DraftCost | None = None

    @property
    def draft(self) -> Path | None:
        return self.best.draft


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was compared on how many answers and tokens, and what to use."""

    answers: int
    tokens: int
    plain: Way
    candidates: tuple[Candidate, ...]
    best: Way


@dataclass(frozen=True, slots=True)
class Workshop:
    """What tuning needs of the world.

    opened: loads the target with a draft model or without; answers: has it make the recorded
    answers. tell: gets one line for each step; note: what the user should know.
    """

    opened: Callable[[Path | None], Model]
    answers: Callable[[Model], list[Recorded]]
    options: LoadOptions
    tell: Callable[[str], None]
    note: Callable[[str], None]


def tuned(workshop: Workshop, drafts: Sequence[Path]) -> Tuned:
    """Compare plain decoding, an n-gram alone, trees where they may win, and each of these draft
    models, one at a time.

    One that does not fit into memory is left out with a note. Raises: what loading raises.
    """
    records: list[Recorded] = []
    cost: AnyCost | None = None
    candidates: list[Candidate] = []
    for draft in [*drafts, None]:
        if draft is None and cost is not None:
            break  # the target alone is needed only where no draft model could be loaded
        try:
            model = workshop.opened(draft)
        except OutOfMemory as error:
            if draft is None:
                raise
            workshop.note(f"left out: {error}")
            continue
        with model:
            trees = model.loaded.lets_trees
            if cost is None:
                cost, records = model.loaded.target.cost, workshop.answers(model)
                candidates.append(without_model(records, cost, trees=trees))
                if trees_may_win(model, records):
                    candidates.append(with_trees(records, cost))
            if draft is not None:
                workshop.tell(f"asking {draft.name} for its guesses on {len(records)} answers")
                drafter = Drafter(model, workshop.options)
                guessed = [drafter.guessed(record) for record in records]
                speed = drafter.cost(records)
                candidates.append(with_model(guessed, cost, speed, draft, trees=trees))
    assert cost is not None
    plain, tokens = plainly(records, cost), sum(len(record.reply) for record in records)
    return Tuned(len(records), tokens, plain, tuple(candidates), chosen(plain, candidates))


def without_model(records: Sequence[Recorded], cost: AnyCost, *, trees: bool = False) -> Candidate:
    """The best way with an n-gram alone. trees: whether auto may draft them unasked."""
    tried: list[Arm] = [AutoArm("ngram"), AutoArm("auto", trees)]
    tried += [FixedArm(("ngram",), n) for n in LENGTHS]
    explored = explore(records, cost, None, tried, trees=trees)
    total = total_seconds(explored)
    return Candidate(fastest(_ways(tried, total, None)), total["foresight ngram"])


def trees_may_win(model: Model, records: Sequence[Recorded]) -> bool:
    """Whether trees can be replayed, and may be chosen for somebody who did not ask for them."""
    known = all(record.near is not None for record in records)
    return model.loaded.lets_trees and known


def with_trees(records: Sequence[Recorded], cost: AnyCost) -> Candidate:
    """The best way without a draft model that recycles the target's scores. records: with them."""
    kinds = ("tree",), ("recycling",)
    tried: list[Arm] = [AutoArm(proposer_name(kind)) for kind in kinds]
    tried += [FixedArm(kind, n) for kind in kinds for n in LENGTHS]
    total = total_seconds(explore(records, cost, None, tried))
    return Candidate(fastest(_ways(tried, total, None)), None)


def with_model(
    records: Sequence[Recorded],
    cost: AnyCost,
    drafter: DraftCost,
    draft: Path,
    *,
    trees: bool = False,
) -> Candidate:
    """The best way with this draft model. records: with its guesses. trees: as without_model()."""
    kinds = ("ngram", "draft"), ("draft",)
    tried: list[Arm] = [AutoArm("auto", trees), AutoArm("draft")]
    tried += [FixedArm(kind, n) for kind in kinds for n in LENGTHS]
    explored = explore(records, cost, drafter, tried, trees=trees)
    total = total_seconds(explored)
    return Candidate(fastest(_ways(tried, total, draft)), total["foresight both"], drafter)


def plainly(records: Sequence[Recorded], cost: AnyCost) -> Way:
    """Without guesses."""
    own = curve_of(cost)
    return Way(None, "none", None, sum(plain_seconds(record, own) for record in records))


def chosen(plain: Way, candidates: Sequence[Candidate]) -> Way:
    """The fastest way; `candidates` go from the simplest on, and more has to be worth it."""
    best, *others = (candidate.best for candidate in candidates)
    for way in (plain, *others):
        if way.seconds * WORTH < best.seconds:
            best = way
    return best


def fastest(ways: Sequence[Way]) -> Way:
    """The fastest way. One that adapts comes first: a fixed length must be worth giving that up."""
    best, *others = ways
    for way in others:
        needed = WORTH if best.draft_tokens is None and way.draft_tokens is not None else 1.0
        if way.seconds * needed < best.seconds:
            best = way
    return best


def _ways(tried: Sequence[Arm], total: dict[str, float], draft: Path | None) -> list[Way]:
    ways: list[Way] = []
    for arm in tried:
        match arm:
            case AutoArm(proposer):
                ways.append(Way(draft, proposer, None, total[arm.name]))
            case FixedArm(sources, guesses):
                ways.append(Way(draft, proposer_name(sources), guesses, total[arm.name]))
    return ways
