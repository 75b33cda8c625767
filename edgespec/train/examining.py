"""What a drafter would have guessed in answers that it did not learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from edgespec.decoding.draft import Tokens
from edgespec.train.judging import by_model, total, walked
from edgespec.train.lessons import TEMPERATURE, Lesson, lesson
from edgespec.train.records import Record
from edgespec.train.report import in_target_ids
from edgespec.train.student import Student
from edgespec.train.vocabulary import Vocabulary

_CHUNK, _TOGETHER = 512, 8  # places whose scores exist at once; answers that are read at once
QUICK_TOKENS = 4_000


def guesses(
    student: Student,
    records: Sequence[Record],
    vocabulary: Vocabulary,
    device: str,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[list[Tokens], float]:
    """For each record, the guess at each place in the target's ids, and the loss over all.

    stopped: whether the user wants it to end. Raises: KeyboardInterrupt where they do.
    """
    found: list[Tokens] = []
    loss, places = 0.0, 0
    table = vocabulary.table()
    for start in range(0, len(records), _TOGETHER):
        if stopped():
            raise KeyboardInterrupt
        group = records[start : start + _TOGETHER]
        made = lesson(group, vocabulary, table)
        best, lost = _examined(student, made, device)
        loss, places = loss + lost, places + len(best)
        lengths = [len(record.answer) for record in group]
        for part in best.split(lengths):
            found.append(in_target_ids(part.numpy(), vocabulary.ids))
    return found, loss / max(1, places)


def quickly(
    student: Student, records: Sequence[Record], vocabulary: Vocabulary, device: str
) -> tuple[float, float]:
    """The loss, and the guesses accepted a round, on the first of these records."""
    some = list(_first(records))
    found, loss = guesses(student, some, vocabulary, device)
    pairs = zip(found, some, strict=True)
    return loss, total([walked(by_model(own, record)) for own, record in pairs]).mean


def _first(records: Sequence[Record]) -> Iterator[Record]:
    tokens = 0
    for record in records:
        if tokens < QUICK_TOKENS:
            yield record
            tokens += len(record.answer)


def _examined(student: Student, made: Lesson, device: str) -> tuple[Tensor, float]:
    """The likeliest token at each place, int64 [places], and the sum of the losses."""
    best: list[Tensor] = []
    loss = 0.0
    with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
        states = student(made.ids.to(device))[made.at.to(device)]
        for start in range(0, len(states), _CHUNK):
            here = slice(start, start + _CHUNK)
            scores = student.scores(states[here]).float()
            best.append(scores.argmax(-1).cpu())
            log_p = F.log_softmax(scores / TEMPERATURE, dim=-1)
            near = log_p.gather(1, made.wanted[here].to(device))
            loss -= float((made.share[here].to(device) * near).sum())
    return torch.cat(best), loss
