"""Ctrl+C at every line of a backend, one line after the other."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.session import Session
from edgespec.testing import read

Place = tuple[str, int, int]  # file, line and how often it was there before
OFTEN = 2  # visits of one line that are tried, so that more than a prompt's first chunk is


class Visits:
    """A trace function that sees each line of the files in `room` before it runs."""

    def __init__(self, room: str, then: Callable[[Place], None]) -> None:
        self._room, self._then = f"/{room}", then
        self._count = Counter[tuple[str, int]]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if self._room not in frame.f_code.co_filename.replace("\\", "/"):
            return None
        if event == "line":
            line = frame.f_code.co_filename, frame.f_lineno
            self._count[line] += 1
            self._then((*line, self._count[line] - 1))
        return self


def _traced(visits: Visits, work: Callable[[], object]) -> None:
    before = sys.gettrace()
    sys.settrace(visits)
    try:
        work()
    finally:
        sys.settrace(before)


def places(room: str, work: Callable[[], object]) -> list[Place]:
    """Where `work` can be interrupted, in the order in which it comes there."""
    found = list[Place]()
    _traced(Visits(room, found.append), work)
    assert found, f"nothing of {room} was run"
    return [place for place in found if place[2] < OFTEN]


def interrupted_everywhere(
    room: str, work: Callable[[], object], before: Callable[[], object]
) -> Iterator[Place]:
    """Run `before` and `work` again and again, each time interrupted one place further on."""
    before()
    for place in places(room, work):

        def press(here: Place, place: Place = place) -> None:
            if here == place:
                raise KeyboardInterrupt

        before()
        try:
            _traced(Visits(room, press), work)
        except KeyboardInterrupt:
            yield place
        else:
            raise AssertionError(f"{place} was not reached again")


@dataclass(frozen=True)
class Course:
    """A prompt of two chunks, guesses that grow and of which some are kept, then plain tokens."""

    prompt: Sequence[int]
    first: Draft
    grown: Draft
    path: Sequence[int]
    plain: int = 7

    @classmethod
    def for_session(cls, target: Session) -> Course:
        prompt = [int(t) for t in np.random.default_rng(3).integers(0, target.caps.vocab, 135)]
        if target.caps.rollback == 0:
            return cls(prompt, EMPTY, EMPTY, ())
        if not target.caps.tree:
            chain = Draft.chain([5, 6, 7, 8], "t")
            return cls(prompt, Draft.chain([5, 6], "t"), chain, (0, 1, 2))
        parents = (ROOT, ROOT, 1, 1, 3, 0)
        tokens = (5, 6, 7, 8, 9, 10)
        first, grown = (
            Draft(tokens[:n], parents[:n], ("t",) * n, (None,) * n) for n in (4, len(tokens))
        )
        return cls(prompt, first, grown, (1, 3))

    def run(self, target: Session) -> list[list[int]]:
        """Go through it; the texts it comes to."""
        read(target, self.prompt)
        text = list(self.prompt)
        texts = [text]
        target.verify(self.first)
        if self.grown:
            target.extend(self.grown)
        target.commit(self.path, 11)
        text = [*text, *(self.grown.tokens[node] for node in self.path), 11]
        texts.append(text)
        for _ in range(self.plain):
            best = target.verify(EMPTY).top(ROOT)
            target.commit((), best)
            texts.append(text := [*text, best])
        return texts


def assert_whole_after_interrupts(room: str, target: Session, fresh: Session) -> None:
    """Wherever a course is broken off, the session then answers any prompt like a new one, and
    without a prompt it either refuses or stands where the course was."""
    course = Course.for_session(target)
    texts = course.run(fresh)
    rows = [_after(fresh, text) for text in texts]
    tried = 0
    for place in interrupted_everywhere(room, lambda: course.run(target), target.reset):
        tried += 1
        said = _without_prompt(target)
        assert said is None or any(_same(said, row) for row in rows), place
        for text, row in ((texts[0], rows[0]), (texts[-1], rows[-1])):
            assert _same(_after(target, text), row), place
    assert tried > 50


def _without_prompt(target: Session) -> Row | None:
    try:
        return target.verify(EMPTY).logits(ROOT).copy()
    except AssertionError as refused:
        if "before a prompt was read" not in str(refused):
            raise
        return None


def _after(target: Session, tokens: Sequence[int]) -> Row:
    read(target, tokens)
    return target.verify(EMPTY).logits(ROOT).copy()


def _same(a: Row, b: Row) -> bool:
    return float(np.abs(a - b).max()) < 1e-4
