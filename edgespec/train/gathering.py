"""Puts answers on a shelf, a shard at a time, until there are enough or the time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from edgespec.models.memory import ModelUse
from edgespec.models.needs import ModelNeeds
from edgespec.train.records import Record, Shelf

SLOTS = (64, 48, 32, 24, 16, 12, 8, 4, 2, 1)
_OWN_BYTES = 288 << 20  # Python, its libraries, and answers that wait for their shard
_SHARD_TOKENS, _SHARD_S, _TELL_S = 50_000, 120.0, 10.0


@dataclass(frozen=True, slots=True)
class Enough:
    """When to stop. tokens: of answers, those that are there already included."""

    tokens: int
    seconds: float


@dataclass(slots=True)
class Gathering:
    """What is on the way to a shelf.

    tell: gets a line now and then. spent: gets the seconds that went by since it was called last,
    after each shard and at the end. what: is gathered, in a word.
    """

    shelf: Shelf
    tell: Callable[[str], None]
    spent: Callable[[float], None]
    what: str = "answers"

    def gather(self, passes: Iterator[Sequence[Record]], enough: Enough) -> None:
        """Take the records of one pass after the other until it is enough, or there are no more.

        What was taken is kept also where this is broken off, by Ctrl+C or a failure; and once.
        """
        there = self.shelf.census().tokens
        began = told = last = monotonic()
        taken: list[Record] = []
        place = self.shelf.free()  # of `taken`, until that is known to lie there
        fresh = new = 0  # tokens: since the last shard; since the beginning
        try:
            while there + new < enough.tokens and monotonic() - began < enough.seconds:
                records = next(passes, None)
                if records is None:
                    break
                taken.extend(records)
                tokens = sum(len(record.answer) for record in records)
                fresh, new = fresh + tokens, new + tokens
                now = monotonic()
                if taken and (fresh >= _SHARD_TOKENS or now - last >= _SHARD_S):
                    self.shelf.add(taken, place)
                    taken.clear()
                    place, fresh = self.shelf.free(), 0
                    seconds, last = now - last, now
                    self.spent(seconds)
                if now - told >= _TELL_S:
                    self._tell(there + new, new / (now - began), enough)
                    told = now
            if taken:
                self.shelf.add(taken, place)
                taken.clear()
        finally:
            if taken:  # the same again, where it is not known to have succeeded
                self.shelf.add(taken, place)
            self.spent(monotonic() - last)

    def _tell(self, there: int, speed: float, enough: Enough) -> None:
        share = min(1.0, there / enough.tokens)
        of = f"{there:,} of {enough.tokens:,} tokens ({share:.0%})"
        self.tell(f"{self.what}: {of}, {speed:.0f} a second")


def slots_within(needs: ModelNeeds, memory_bytes: int, room: int) -> int:
    """How many texts of `room` tokens at a time this much memory allows; 0 where not even one."""
    for slots in SLOTS:
        here, there = ModelUse(needs, "auto", slots).shares(slots * room, gpu=False)
        if here.total + there.total + _OWN_BYTES <= memory_bytes:
            return slots
    return 0
