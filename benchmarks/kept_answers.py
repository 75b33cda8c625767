"""Answers that `edgespec train` has kept, said again to a proposer without a pass of the target."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgespec.decoding.accept import Accepted
from edgespec.decoding.draft import Draft, Row
from edgespec.decoding.proposer import Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.train.records import Record


class Kept:
    """The scores that were kept of a round's rows; those of other tokens are low."""

    def __init__(self, record: Record, place: int, draft: Draft, low: Row) -> None:
        self._record, self._place, self._low = record, place, low
        self._depths = [*draft.depths(), 0]

    def top(self, node: int) -> int:
        return int(self._record.near[self._place + self._depths[node], 0])

    def logits(self, node: int) -> Row:
        row, at = self._low.copy(), self._place + self._depths[node]
        if at < len(self._record.near):
            row[self._record.near[at]] = self._record.scores[at]
        return row


def low_scores(vocab: int) -> Row:
    """What tokens have whose scores were not kept, float32 [vocab]."""
    return np.random.default_rng(0).uniform(-60, -25, vocab).astype(np.float32)


def said_again(proposer: Proposer, record: Record, most: int, low: Row) -> Iterator[int]:
    """Accepted guesses of every round.

    Also for an answer that was drawn: the noise that drew it is not kept, so the proposer guesses
    what it takes to be the likeliest, as in the report of `edgespec train`.
    """
    ids, begun = record.ids, record.begun
    request = Request(ids[:begun], Sampling(0.0, seed=0), len(ids)).seeded()
    rule, place = request.rule_for(0), begun + 1
    proposer.begin(request)
    while place < len(ids):
        draft = proposer.propose(State(ids[:place], place - begun, rule), UpTo(most))
        path = draft.saying(ids[place:].tolist())
        own = int(ids[min(place + len(path), len(ids) - 1)])
        scores = Kept(record, place - begun, draft, low)
        proposer.observe(Outcome(draft, Accepted(tuple(path), own), scores, 0.0, 0.0))
        place += len(path) + 1
        yield len(path)
    proposer.end()
