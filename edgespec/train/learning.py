"""The second half of a training: from answers on the disk to a drafter that is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from edgespec.errors import EdgespecError, OutOfMemory
from edgespec.models.compat import check_vocabularies
from edgespec.models.id_table import vocabulary_digest
from edgespec.models.model_header import header_of
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.models.trained import (
    FOLDER_NAME,
    GGUF_NAME,
    check_name,
    folder_of,
    install,
    put_in_place,
    room_to_make,
)
from edgespec.train.begun import Begun
from edgespec.train.course import RATE, Course, Place, Watching, follow, least_bytes, place_of
from edgespec.train.examining import QUICK_TOKENS, guesses, quickly
from edgespec.train.exporting import write_gguf, write_safetensors
from edgespec.train.fitting import Training
from edgespec.train.records import Census, Record, counted_shard
from edgespec.train.report import Judged, advice, held_out, judged, learned_from
from edgespec.train.starting import begin_with, target_tables
from edgespec.train.student import Shape, Student
from edgespec.train.vocabulary import Vocabulary
from edgespec.train.workshop import JUDGING_SHARE, Workshop

PASSES = 6  # over the same answers; from then on a drafter learns them by heart


@dataclass(frozen=True, slots=True)
class Learned:
    """A drafter that is installed, and what it is worth.

    judged_tokens: of held-out answers, which may be fewer than there are. advice: how it could
    become better.
    """

    name: str
    folder: Path
    data: Census
    known: int
    parameters: int
    place: Place
    judged: tuple[Judged, ...]
    judged_tokens: int
    advice: str

    def as_json(self) -> dict[str, Any]:
        return {
            "pair": self.name,
            "folder": str(self.folder),
            "answers": self.data.answers,
            "answer_tokens": self.data.tokens,
            "held_out_tokens": self.data.held,
            "vocabulary": self.known,
            "parameters": self.parameters,
            "training_s": round(self.place.seconds, 1),
            "passes": round(self.place.passes + self.place.share, 2),
            "curve": [[round(value, 4) for value in row] for row in self.place.curve],
            "judged_tokens": self.judged_tokens,
            "held_out": [row.as_json() for row in self.judged],
            "advice": self.advice,
        }


def device_here(named: str = "auto") -> str:
    """Where to train: a GPU where there is one."""
    if named != "auto":
        return named
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def learn(shop: Workshop, begun: Begun, device: str, stopped: Callable[[], bool]) -> Learned:
    """Train, judge and install; what was begun before goes on.

    Raises: KeyboardInterrupt where the user stopped it; OutOfMemory, BadInput, EdgespecError.
    """
    wish, vocabulary = shop.wish, begun.vocabulary
    assert vocabulary is not None
    if wish.options.threads is not None:
        torch.set_num_threads(wish.options.threads)
    shape = Shape(vocabulary.size)
    _must_fit(shape, wish.memory_bytes)
    shards = shop.shards(begun)
    training, place = _training(shop, shape, vocabulary, device)
    held = held_out(shop.records(begun))
    seconds = max(0.0, wish.seconds * (1 - JUDGING_SHARE) - begun.gathered_s)
    course = Course(shards, vocabulary, PASSES, seconds, wish.memory_bytes, begun.terms.seed)
    some = learned_from(shop.records(begun), QUICK_TOKENS)
    check = partial(_checked, sides=(some, held), vocabulary=vocabulary, device=device)
    watching = Watching(shop.tell, check if held else None, stopped)
    follow(course, training, place, shop.checkpoint, watching)
    shop.tell("judging the drafter on answers that were held out")
    found, _ = guesses(training.student, held, vocabulary, device, stopped)
    learned = Learned(
        wish.name,
        folder_of(wish.name),
        sum(map(counted_shard, shards), Census()),
        len(vocabulary.ids),
        sum(p.numel() for p in training.student.parameters()),
        place,
        tuple(judged(held, found)),
        sum(len(record.answer) for record in held),
        advice(place.passes + place.share, place.curve),
    )
    if stopped():
        raise KeyboardInterrupt
    _install(shop, training.student, vocabulary, learned)
    return learned


def _training(
    shop: Workshop, shape: Shape, vocabulary: Vocabulary, device: str
) -> tuple[Training, Place]:
    """A fresh one, or what was begun."""
    if shop.checkpoint.is_file():
        training, about = Training.load(shop.checkpoint, RATE, device, shape)
        shop.tell("going on with the training that was begun")
        return training, place_of(about)
    torch.manual_seed(shop.wish.seed)
    student = Student(shape)
    tables = target_tables(shop.wish.target, vocabulary.ids)
    if tables is None:
        shop.tell("the target's tables cannot be read; the drafter begins without them")
    else:
        begin_with(student, *tables, seed=shop.wish.seed)
    return Training(student, RATE, device), Place()


def _checked(
    training: Training,
    sides: tuple[list[Record], list[Record]],
    vocabulary: Vocabulary,
    device: str,
) -> tuple[float, float, float]:
    """See Watching.check. sides: answers that are learned from, and held-out ones."""
    learned, _ = quickly(training.student, sides[0], vocabulary, device)
    return learned, *quickly(training.student, sides[1], vocabulary, device)


def _must_fit(shape: Shape, memory_bytes: int) -> None:
    least = least_bytes(shape)
    if least >= memory_bytes:
        raise OutOfMemory(
            f"Training such a drafter takes {least / 2**30:.1f} GiB and some for answers, and"
            f" --memory allows {memory_bytes / 2**30:.1f}; give more, or a smaller --vocabulary."
        )


def _install(shop: Workshop, student: Student, vocabulary: Vocabulary, learned: Learned) -> None:
    """Put the files in place, whole, and make them a pair. Raises: EdgespecError."""
    check_name(learned.name, shop.wish.target)  # hours may have passed since it was free
    target, goal = header_of(shop.wish.target), learned.folder
    digest = vocabulary_digest(target.tokens)
    try:
        with room_to_make() as fresh:
            write_gguf(fresh / GGUF_NAME, student, vocabulary, name=learned.name, target=digest)
            write_safetensors(fresh / FOLDER_NAME, student, vocabulary, digest)
            check_vocabularies(target, header_of(fresh / GGUF_NAME))
            about = json.dumps({"target": shop.wish.target.name, **learned.as_json()}, indent=1)
            write_atomically(fresh / "training.json", about.encode())
            put_in_place(learned.name, fresh)
    except OSError as error:
        reason = shown(error.strerror or error)
        raise EdgespecError(
            f"The drafter cannot be written to {shown(goal)} ({reason}); make room and run this"
            " again, nothing is lost."
        ) from error
    install(learned.name, shop.wish.target)
