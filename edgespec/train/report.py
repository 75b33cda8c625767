"""What a drafter is worth on answers that it never saw, beside guesses that need no training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.train.judging import (
    GUESSES,
    SURE,
    Chains,
    Tally,
    by_model,
    by_ngram,
    first_of,
    total,
    walked,
)
from edgespec.train.records import Record

MOST_TOKENS = 60_000  # of held-out answers that are judged
ALL = "all"
_OFTEN = 4.0  # passes
_BY_HEART = 0.35  # nats


@dataclass(frozen=True, slots=True)
class Judged:
    """How one way of guessing did on one kind of answers.

    source: `n-gram`, `drafter` or `n-gram, then drafter`. warm: answers that were drawn, not the
    likeliest tokens.
    """

    source: str
    warm: bool
    category: str
    tally: Tally

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "sampled": self.warm,
            "category": self.category,
            "rounds": self.tally.rounds,
            "accepted_per_round": round(self.tally.mean, 4),
            "by_position": [round(rate, 4) for rate in self.tally.rates()],
        }


def held_out(records: Iterable[Record], most: int = MOST_TOKENS) -> list[Record]:
    """The first held-out answers, until there are `most` tokens."""
    return _until(most, (record for record in records if record.held))


def learned_from(records: Iterable[Record], most: int) -> list[Record]:
    """The first of the others, until there are `most` tokens."""
    return _until(most, (record for record in records if not record.held))


def _until(most: int, records: Iterable[Record]) -> list[Record]:
    kept: list[Record] = []
    tokens = 0
    for record in records:
        kept.append(record)
        tokens += len(record.answer)
        if tokens >= most:
            break
    return kept


def judged(records: Sequence[Record], guesses: Sequence[Tokens]) -> list[Judged]:
    """guesses: for each record, the drafter's guess at each place, in the target's ids."""
    rows: dict[tuple[str, bool, str], list[Tally]] = {}
    for record, guessed in zip(records, guesses, strict=True):
        for source, chains in _ways(record, guessed):
            tally = walked(chains)
            for category in (ALL, record.category):
                rows.setdefault((source, record.temperature > 0, category), []).append(tally)
    return [Judged(*key, total(tallies)) for key, tallies in rows.items()]


def _ways(record: Record, guesses: Tokens) -> Iterator[tuple[str, Chains]]:
    ngram, model = by_ngram(record), by_model(guesses, record)
    yield "n-gram", ngram
    yield "drafter", model
    yield "n-gram, then drafter", first_of(by_ngram(record, SURE), model)


def table(rows: Sequence[Judged]) -> list[tuple[str, ...]]:
    """For people: a line for each way of guessing and kind of answer, a heading first."""
    categories = [c for c in dict.fromkeys(row.category for row in rows) if c != ALL]
    positions = [f"guess {n + 1}" for n in range(GUESSES)]
    lines = [("", *positions, "A ROUND", *(c.upper() for c in categories))]
    for warm in (False, True):
        for source in dict.fromkeys(row.source for row in rows):
            found = {r.category: r.tally for r in rows if (r.source, r.warm) == (source, warm)}
            if not found:
                continue
            name = f"{source}, {'temperature 0.8' if warm else 'temperature 0'}"
            rates = [f"{rate:.2f}" for rate in found[ALL].rates()]
            means = [f"{found[c].mean:.2f}" if c in found else "" for c in (ALL, *categories)]
            lines.append((name, *rates, *means))
    return lines


def advice(passes: float, curve: Sequence[Sequence[float]]) -> str:
    """Whether more answers or more time would have helped.

    passes: over all answers. curve: as in Place. How the loss ran tells nothing of time: the rate
    of learning sinks to nothing at the end of every course.
    """
    if not curve:
        return "No answer was held out, so what it is worth is not known; give it more --tokens."
    _, learned, held, _ = curve[-1]
    if passes < _OFTEN:
        return (
            f"It went through the answers {passes:.1f} times, and gains until about"
            f" {_OFTEN + 1:.0f}: more --time would help."
        )
    if held - learned > _BY_HEART:
        return (
            f"It knows the answers that it learned from better (loss {learned:.2f}) than others"
            f" ({held:.2f}): more answers, --tokens, would help more than more time."
        )
    return (
        f"It knows other answers nearly as well (loss {held:.2f}) as those that it learned from"
        f" ({learned:.2f}): more of both, --tokens and --time, would still help a little."
    )


def in_target_ids(guesses: Tokens, ids: Tokens) -> Tokens:
    """A drafter's guesses as the target's tokens; -1 for none. ids: of its id table."""
    known = guesses < len(ids)
    return np.where(known, ids[np.minimum(guesses, len(ids) - 1)], -1).astype(np.int32)
