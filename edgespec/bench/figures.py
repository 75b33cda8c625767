"""From answers to figures: medians with their spread, ratios to the yardstick, sums of rounds.

Where nothing was measured there is None, never a guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from edgespec.bench.agreement import Side, side
from edgespec.bench.runner import REFERENCE, Comparison, Outcome, Record
from edgespec.decoding.stats import Stats

_UNSTEADY = 0.15  # spread of the plain arm between runs that says the machine was busy


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some measurements, the smallest, the largest, and how many they are."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        known = [value for value in values if value is not None]
        return cls(median(known), min(known), max(known), len(known)) if known else None

    def as_json(self) -> dict[str, Any]:
        return {"median": self.median, "low": self.low, "high": self.high, "count": self.count}


@dataclass(frozen=True, slots=True)
class Rounds:
    """What edgespec's loop did, summed over answers; milliseconds are per round."""

    rounds: int
    tokens_per_round: float
    drafted: int
    tested: int
    accepted: int
    tested_at: tuple[int, ...]
    accepted_at: tuple[int, ...]
    draft_ms: float
    verify_ms: float
    overhead_ms: float

    @classmethod
    def of(cls, stats: Sequence[Stats]) -> Rounds | None:
        rounds = sum(s.rounds for s in stats)
        if not rounds:
            return None
        return cls(
            rounds=rounds,
            tokens_per_round=sum(s.completion_tokens for s in stats) / rounds,
            drafted=sum(s.drafted for s in stats),
            tested=sum(s.tested for s in stats),
            accepted=sum(s.accepted for s in stats),
            tested_at=_added([s.tested_at for s in stats]),
            accepted_at=_added([s.accepted_at for s in stats]),
            draft_ms=1e3 * sum(s.draft_s for s in stats) / rounds,
            verify_ms=1e3 * sum(s.verify_s for s in stats) / rounds,
            overhead_ms=1e3 * sum(s.overhead_s for s in stats) / rounds,
        )

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.tested if self.tested else None

    @property
    def shares(self) -> tuple[float, float, float]:
        """Of the rounds' time: drafting, verifying, all else."""
        parts = self.draft_ms, self.verify_ms, self.overhead_ms
        whole = sum(parts) or 1.0
        return parts[0] / whole, parts[1] / whole, parts[2] / whole

    def as_json(self) -> dict[str, Any]:
        draft, verify, overhead = self.shares
        return {
            "rounds": self.rounds,
            "tokens_per_round": self.tokens_per_round,
            "drafted": self.drafted,
            "tested": self.tested,
            "accepted": self.accepted,
            "acceptance_rate": self.acceptance_rate,
            "tested_per_position": list(self.tested_at),
            "accepted_per_position": list(self.accepted_at),
            "draft_ms_per_round": self.draft_ms,
            "verify_ms_per_round": self.verify_ms,
            "overhead_ms_per_round": self.overhead_ms,
            "draft_share": draft,
            "verify_share": verify,
            "overhead_share": overhead,
        }


@dataclass(frozen=True, slots=True)
class Sameness:
    """How many answers were compared with those of `none`, and how many were the same.

    margins: of the target's two best scores where answers first parted.
    """

    compared: int
    same: int
    margins: Spread | None

    def as_json(self) -> dict[str, Any]:
        return {"compared": self.compared, "same": self.same, "margins": _json(self.margins)}


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one arm, in one category or in all. speed: tokens a second.

    ratio: to the yardstick's speed at the same turn of the same prompt in the same run.
    first_token_s, first_sentence_s: of first turns, which everybody reads from nothing; later ones
    some read anew and others not. gaps: median and 95th percentile of the seconds between
    arrivals.
    """

    answers: int
    speed: Spread | None
    ratio: Spread | None
    first_token_s: Spread | None
    first_sentence_s: Spread | None
    gap_p50_s: float | None
    gap_p95_s: float | None
    rounds: Rounds | None
    sameness: Sameness | None

    def as_json(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "tokens_per_second": _json(self.speed),
            "speedup": _json(self.ratio),
            "time_to_first_token_s": _json(self.first_token_s),
            "time_to_first_sentence_s": _json(self.first_sentence_s),
            "gap_p50_s": self.gap_p50_s,
            "gap_p95_s": self.gap_p95_s,
            "rounds": _json(self.rounds),
            "same_as_none": _json(self.sameness),
        }


class Results:
    """The figures of all arms and categories, in the order in which they were measured."""

    def __init__(self, outcome: Outcome) -> None:
        self.yardstick = outcome.plan.yardstick
        self.arms = tuple(outcome.arms)
        self.categories = tuple(dict.fromkeys(record.category for record in outcome.records))
        self._outcome = outcome
        self._plain = {
            record.place: record.answer.tokens_per_second
            for record in outcome.records
            if record.arm == self.yardstick
        }
        self._known: dict[tuple[str, str | None], Figures] = {}

    def figures(self, arm: str, category: str | None = None) -> Figures:
        """Of one arm, in one category, or in all of them."""
        key = arm, category
        if key not in self._known:
            self._known[key] = self._measured(_belongs(arm, category))
        return self._known[key]

    def ratio(self, arm: str, category: str) -> float | None:
        """The median speed-up."""
        ratio = self.figures(arm, category).ratio
        return None if ratio is None else ratio.median

    def side(self, arm: str) -> Side:
        """Whether its pairs with the yardstick agree on who is faster."""
        records = [record for record in self._outcome.records if record.arm == arm]
        return side([r for record in records if (r := self._to_yardstick(record))])

    @property
    def everywhere(self) -> bool:
        """Whether every arm was measured in every category that was planned."""
        planned = {prompt.category for prompt in self._outcome.plan.prompts}
        return all(
            self.figures(arm, category).speed is not None
            for arm in self.arms
            for category in planned
        )

    def mean_ratio(self, arm: str) -> float | None:
        """Geometric mean of the categories' speed-ups; None where one of them is missing."""
        ratios = [self.ratio(arm, category) for category in self.categories]
        known = [ratio for ratio in ratios if ratio is not None]
        return geometric_mean(known) if known and len(known) == len(ratios) else None

    def best(self, category: str | None) -> str | None:
        """The arm with the largest speed-up in a category, or by the mean."""
        of = self.mean_ratio if category is None else (lambda arm: self.ratio(arm, category))
        known = [(ratio, arm) for arm in self.arms if (ratio := of(arm)) is not None]
        return max(known, key=lambda pair: pair[0])[1] if known else None

    def widths(self, arm: str) -> dict[int, int]:
        """Verify passes of an arm by their number of rows."""
        counts = Counter[int]()
        for record in self._outcome.records:
            if record.arm == arm:
                counts.update(dict(record.answer.widths))
        return dict(sorted(counts.items()))

    @property
    def unsteadiness(self) -> float | None:
        """How far the plain arm's speed on one prompt differs between runs: (highest - lowest) /
        median, the median over prompts. None with a single run.
        """
        speeds: dict[tuple[str, int], list[float]] = {}
        for record in self._outcome.records:
            speed = record.answer.tokens_per_second
            if record.arm == REFERENCE and speed is not None:
                speeds.setdefault((record.prompt, record.turn), []).append(speed)
        spreads = [(max(s) - min(s)) / median(s) for s in speeds.values() if len(s) > 1]
        return median(spreads) if spreads else None

    @property
    def unsteady(self) -> bool:
        return (self.unsteadiness or 0.0) > _UNSTEADY

    def _measured(self, belongs: Callable[[Record], bool]) -> Figures:
        records = [record for record in self._outcome.records if belongs(record)]
        answers = [record.answer for record in records]
        first = [record.answer for record in records if record.turn == 0]
        gaps = np.array([gap for answer in answers for gap in answer.gaps_s])
        p50, p95 = np.percentile(gaps, (50, 95)).tolist() if len(gaps) else (None, None)
        return Figures(
            answers=len(answers),
            speed=Spread.of(answer.tokens_per_second for answer in answers),
            ratio=Spread.of(self._to_yardstick(record) for record in records),
            first_token_s=Spread.of(answer.first_token_s for answer in first),
            first_sentence_s=Spread.of(answer.first_sentence_s for answer in first),
            gap_p50_s=p50,
            gap_p95_s=p95,
            rounds=Rounds.of([answer.stats for answer in answers if answer.stats is not None]),
            sameness=_sameness([c for c in self._outcome.comparisons if belongs(c.record)]),
        )

    def _to_yardstick(self, record: Record) -> float | None:
        plain, speed = self._plain.get(record.place), record.answer.tokens_per_second
        return speed / plain if speed is not None and plain else None


def _belongs(arm: str, category: str | None) -> Callable[[Record], bool]:
    return lambda record: record.arm == arm and category in (None, record.category)


def _sameness(comparisons: Sequence[Comparison]) -> Sameness | None:
    if not comparisons:
        return None
    same = sum(comparison.parted_at is None for comparison in comparisons)
    margins = Spread.of(comparison.margin for comparison in comparisons)
    return Sameness(len(comparisons), same, margins)


def _added(rows: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Sums by position of rows of different lengths."""
    longest = max((len(row) for row in rows), default=0)
    return tuple(sum(row[n] for row in rows if n < len(row)) for n in range(longest))


def _json(part: Spread | Rounds | Sameness | None) -> dict[str, Any] | None:
    return None if part is None else part.as_json()
