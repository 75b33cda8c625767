"""From records to batches of what a drafter reads and what it should have said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgespec.train.records import Record
from edgespec.train.vocabulary import Vocabulary

TEMPERATURE = 0.8  # at which the target's distribution is learned
_GROUP = 512  # records whose lengths are sorted together, so that little is padding


@dataclass(frozen=True, slots=True)
class Lesson:
    """Some texts in the drafter's ids.

    ids: int64 [texts, n], padded behind. at: bool [texts, n], places before a token of an answer.
    wanted: int64 [places, NEAR] and share: float32 [places, NEAR], the target's distribution there
    over tokens that the drafter knows.
    """

    ids: Tensor
    at: Tensor
    wanted: Tensor
    share: Tensor


def lessons(
    records: Sequence[Record], vocabulary: Vocabulary, tokens: int, rng: np.random.Generator
) -> Iterator[Lesson]:
    """All records once, in random order, some `tokens` at a time."""
    table = vocabulary.table()
    order = rng.permutation(len(records))
    for start in range(0, len(order), _GROUP):
        group = sorted((records[n] for n in order[start : start + _GROUP]), key=_length)
        parts = list(_cut(group, tokens))
        for n in rng.permutation(len(parts)):
            yield lesson(parts[n], vocabulary, table)


def lesson(records: Sequence[Record], vocabulary: Vocabulary, table: np.ndarray) -> Lesson:
    longest = max(map(_length, records))
    ids = np.full((len(records), longest), vocabulary.unknown, np.int64)
    at = np.zeros((len(records), longest), bool)
    for n, record in enumerate(records):
        ids[n, : len(record.ids)] = table[record.ids]
        at[n, record.begun - 1 : len(record.ids) - 1] = True
    wanted = table[np.concatenate([record.near for record in records])].astype(np.int64)
    scores = np.concatenate([record.scores for record in records]).astype(np.float32)
    share = np.exp(scores / TEMPERATURE) * (wanted != vocabulary.unknown)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
    return Lesson(*(torch.from_numpy(a) for a in (ids, at, wanted, share)))


def _length(record: Record) -> int:
    return len(record.ids)


def _cut(records: Sequence[Record], tokens: int) -> Iterator[list[Record]]:
    part: list[Record] = []
    for record in records:
        if part and (len(part) + 1) * len(record.ids) > tokens:
            yield part
            part = []
        part.append(record)
    if part:
        yield part
