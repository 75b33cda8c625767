"""A training from its first lesson to its last, however often it is broken off in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from edgespec.errors import BadInput, OutOfMemory
from edgespec.train.fitting import Training
from edgespec.train.footprint import takes_more_than
from edgespec.train.lessons import Lesson, lessons
from edgespec.train.records import Record, counted_shard, read_shard
from edgespec.train.student import Shape
from edgespec.train.vocabulary import Vocabulary
from edgespec.train.windows import bytes_in_memory, windows

LESSON_TOKENS = 4096  # that one step reads, padding included
RATE = 3e-3
_SAVE_S, _TELL_S = 60.0, 10.0
_CHECKS = 10  # looks at the answers that were held out, over the whole course
_LIBRARY_BYTES = 600 << 20  # torch itself, and what it keeps to work with
_COPIES = 4 + 3  # weights, gradients and what optimisers keep; a checkpoint while it is written
_SMOOTHED = 0.8
_LATEST = 1e12


@dataclass(frozen=True, slots=True)
class Course:
    """What is learned.

    shards: of answers. passes: over all of them, at most. seconds: of training, at most.
    memory_bytes: for everything.
    """

    shards: tuple[Path, ...]
    vocabulary: Vocabulary
    passes: int
    seconds: float
    memory_bytes: int
    seed: int


@dataclass(slots=True)
class Place:
    """How far a course has come: finished passes, windows of the pass, lessons of the window.

    share: of the pass that is behind. loss: of late, in nats. curve: at each look, seconds and
    what Watching.check told.
    """

    passes: int = 0
    window: int = 0
    lesson: int = 0
    share: float = 0.0
    seconds: float = 0.0
    loss: float = 0.0
    curve: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Watching:
    """Who follows a course.

    tell: gets a line now and then. check: the loss on answers that are learned from, that on
    held-out ones, and the guesses accepted a round of these; None where no answer was held out.
    stopped: whether the user wants it to end.
    """

    tell: Callable[[str], None]
    check: Callable[[Training], tuple[float, float, float]] | None
    stopped: Callable[[], bool] = lambda: False


def least_bytes(shape: Shape) -> int:
    """Memory that training such a drafter takes, without any answers."""
    inner = shape.heads * shape.head
    attention = 2 * shape.width * inner + 2 * shape.width * shape.kv_heads * shape.head
    layer = attention + 3 * shape.width * shape.feed_forward
    parameters = 2 * shape.vocab * shape.width + shape.layers * layer
    states = LESSON_TOKENS * shape.layers * (12 * shape.width + 4 * shape.feed_forward) * 4
    scores = 4 * 512 * shape.vocab * 4
    return _COPIES * 4 * parameters + states + scores + _LIBRARY_BYTES


def place_of(about: Mapping[str, Any]) -> Place:
    """The place that a checkpoint tells. Raises: BadInput where it makes no sense."""
    try:
        place = Place(**about)
        numbers = [place.passes, place.window, place.lesson, place.seconds, place.loss]
        sound = all(isinstance(n, int | float) and 0 <= n < _LATEST for n in numbers)
        sound = sound and all(len(row) == 4 for row in place.curve)
    except TypeError:
        sound = False
    if not sound:
        raise BadInput("The checkpoint does not tell how far it came; --fresh begins anew.")
    return place


def follow(
    course: Course, training: Training, place: Place, checkpoint: Path, watching: Watching
) -> None:
    """Train from `place` on until time or passes are over, and keep the result.

    Raises: KeyboardInterrupt once a step is done, where the user stopped it; OutOfMemory; BadInput.
    """
    saved = told = last = monotonic()
    for at, lesson in _lessons(course, training.student.shape, place):
        step = training.step(lesson, _done(course, place))
        _advance(place, at, step.loss)
        if len(place.curve) < int(_done(course, place) * _CHECKS) < _CHECKS:
            _look(place, training, watching)
        now = monotonic()
        place.seconds, last = place.seconds + now - last, now
        if now - told >= _TELL_S:
            watching.tell(_words(course, place))
            told = now
        stopped = watching.stopped()
        full = takes_more_than(course.memory_bytes)
        if stopped or full or now - saved >= _SAVE_S:
            training.save(checkpoint, asdict(place))
            saved = now
        if stopped:
            raise KeyboardInterrupt
        if full:
            raise _over(course)
        if place.seconds >= course.seconds:
            break
    _look(place, training, watching)
    training.save(checkpoint, asdict(place))


@dataclass(frozen=True, slots=True)
class _At:
    """Where a lesson is in its course. share: of the pass that is behind it."""

    passes: int
    window: int
    lesson: int
    share: float


def _lessons(course: Course, shape: Shape, place: Place) -> Iterator[tuple[_At, Lesson]]:
    """All lessons from a place on; the same ones every time."""
    begun = replace(place)
    shards = [(path, bytes_in_memory(counted_shard(path))) for path in course.shards]
    room = course.memory_bytes - least_bytes(shape)
    for number in range(begun.passes, course.passes):
        groups = windows(shards, room, np.random.default_rng([course.seed, number]))
        first = begun.window if number == begun.passes else 0
        for n, group in enumerate(groups[first:], start=first):
            done = begun.lesson if (number, n) == (begun.passes, begun.window) else 0
            rng = np.random.default_rng([course.seed, number, n])
            records = _learned(course, group)
            count, seen = len(records), 0
            made = lessons(records, course.vocabulary, LESSON_TOKENS, rng)
            del records  # else two windows would be in memory while the next is read
            for k, lesson in enumerate(made, start=1):
                seen += len(lesson.ids)
                if k > done:
                    yield _At(number, n, k, (n + seen / count) / len(groups)), lesson


def _learned(course: Course, shards: Sequence[Path]) -> list[Record]:
    vocab = course.vocabulary.vocab
    return [r for path in shards for r in read_shard(path, vocab) if not r.held]


def _advance(place: Place, at: _At, loss: float) -> None:
    place.passes, place.window, place.lesson = at.passes, at.window, at.lesson
    place.share = at.share
    place.loss = loss + _SMOOTHED * (place.loss - loss) if place.loss else loss


def _done(course: Course, place: Place) -> float:
    """Share of the course that is behind, by time or by passes, whichever is further."""
    by_time = place.seconds / course.seconds if course.seconds else 1.0
    return min(1.0, max(by_time, (place.passes + place.share) / course.passes))


def _look(place: Place, training: Training, watching: Watching) -> None:
    if watching.check is None:
        return
    learned, held, accepted = watching.check(training)
    place.curve.append([place.seconds, learned, held, accepted])
    watching.tell(
        f"held-out answers: loss {held:.2f}, and {learned:.2f} on others;"
        f" {accepted:.2f} guesses accepted a round"
    )


def _words(course: Course, place: Place) -> str:
    return (
        f"training: {_done(course, place):.0%}, pass {place.passes + 1} of at most"
        f" {course.passes}, loss {place.loss:.2f}"
    )


def _over(course: Course) -> OutOfMemory:
    return OutOfMemory(
        f"Training takes more than the {course.memory_bytes / 2**30:.1f} GiB of --memory; what was"
        " learned is kept, and the same command with more goes on from there."
    )
