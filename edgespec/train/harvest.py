"""A target asks itself questions and answers them: the data of a drafter of its own.

Source of the idea that a drafter learns best from the target's own answers: DistillSpec,
arXiv:2310.08461.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from edgespec.conversation import PromptEncoder
from edgespec.decoding.draft import Row, Tokens
from edgespec.errors import BadInput
from edgespec.text.template import Message
from edgespec.train.batch import Batch
from edgespec.train.choosing import drawn, nearest
from edgespec.train.openings import OPENINGS, SHARES
from edgespec.train.records import CONTEXT, Record

HELD_SHARE = 0.03  # of the questions
GREEDY_SHARE = 0.25  # of the answers; the others are drawn at TEMPERATURE
TEMPERATURE, ASKING_TEMPERATURE = 0.8, 0.9
LONGEST_QUESTION, LONGEST_ANSWER, SHORTEST_ANSWER = 120, 384, 8
SYSTEMS = ("", "", "", "You are a helpful assistant.")
_LONGEST_LOOP, _TURNS, _LEAST_LOOP = 40, 4, 24  # tokens; rounds; tokens
_LOOK_FOR_LOOPS = 12


@dataclass(frozen=True, slots=True)
class Frame:
    """What a model's template writes before and behind a question, as ids."""

    before: tuple[int, ...]
    behind: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.before) + len(self.behind)

    @classmethod
    def of(cls, encoder: PromptEncoder, system: str) -> Frame:
        """Raises: BadInput where the template does not set a question apart."""
        mark = "question"
        messages = [*([Message("system", system)] if system else []), Message("user", mark)]
        segments = encoder.template.segments(messages)
        places = [n for n, s in enumerate(segments) if not s.special and s.text.strip() == mark]
        if not places:
            raise BadInput("This model's chat template does not tell a question from its frame.")
        encode, at = encoder.tokenizer.encode, places[-1]
        before = [i for s in segments[:at] for i in encode(s.text, special=s.special)]
        behind = [i for s in segments[at + 1 :] for i in encode(s.text, special=s.special)]
        bos = encoder.tokenizer.bos
        if bos is not None and before[:1] != [bos]:
            before.insert(0, bos)
        return cls(tuple(before), tuple(behind))


def frames_of(encoder: PromptEncoder) -> list[Frame]:
    """One for each of SYSTEMS. Raises: BadInput."""
    return [Frame.of(encoder, system) for system in SYSTEMS]


def room_for(frames: Sequence[Frame]) -> int:
    """Tokens of the longest question in the longest frame, with the longest answer."""
    return max(frame.size for frame in frames) + LONGEST_QUESTION + LONGEST_ANSWER


def whose(context: int) -> str:
    """Who allows no more than such a context, in words."""
    return "a drafter's" if context == CONTEXT else "the target's"


@dataclass(slots=True)
class _Line:
    """One slot's text. waiting: tokens that are given, not chosen. begun: 0 while it asks."""

    frame: Frame
    asked_from: int
    category: str
    temperature: float
    waiting: list[int]
    ids: list[int] = field(default_factory=list)
    begun: int = 0
    near: list[Tokens] = field(default_factory=list)
    scores: list[Row] = field(default_factory=list)


class Harvest:
    """Answers without end, from all slots of a batch.

    Where a slot has no room for the longest ones, question and answer share what the frame leaves.
    """

    def __init__(self, batch: Batch, encoder: PromptEncoder, seed: int) -> None:
        """Raises: BadInput where no answer would fit."""
        self._batch, self._end = batch, encoder.tokenizer.end_tokens
        self._encode = encoder.tokenizer.encode
        self._rng = np.random.default_rng(seed)
        self._frames = self._fitting(frames_of(encoder))
        self._lines = [self._begun() for _ in range(batch.slots)]
        self.read = 0  # tokens so far, given and chosen

    def records(self) -> Iterator[Record]:
        for ended in self.passes():
            yield from ended

    def passes(self) -> Iterator[list[Record]]:
        """The answers that ended with each pass, mostly none."""
        slots = range(self._batch.slots)
        while True:
            tokens = [line.waiting.pop(0) for line in self._lines]
            for line, token in zip(self._lines, tokens, strict=True):
                line.ids.append(token)
            rows = self._batch.step(slots, tokens)
            self.read += len(tokens)
            choosing = [slot for slot in slots if not self._lines[slot].waiting]
            yield list(self._choose(choosing, rows))

    def _choose(self, slots: list[int], rows: Row) -> Iterator[Record]:
        if not slots:
            return
        near, scores = nearest(rows[slots])
        lines = [self._lines[slot] for slot in slots]
        warmth = [line.temperature if line.begun else ASKING_TEMPERATURE for line in lines]
        chosen = drawn(scores, np.array(warmth), self._rng)
        for n, (slot, line) in enumerate(zip(slots, lines, strict=True)):
            token = int(near[n, chosen[n]])
            if line.begun:
                line.near.append(near[n])
                line.scores.append(scores[n])
                over = self._answered(line, token)
            else:
                over = self._asked(line, token)
            if not over:
                continue
            if (record := self._record(line)) is not None:
                yield record
            self._batch.forget(slot)
            self._lines[slot] = self._begun()

    def _fitting(self, frames: list[Frame]) -> list[Frame]:
        """Those with room for any opening and an answer. Raises: BadInput where none has."""
        openings = (text for texts in OPENINGS.values() for text in texts)
        longest = max(len(self._encode(text, special=False)) for text in openings)
        least, context = longest + SHORTEST_ANSWER, self._batch.context
        fitting = [frame for frame in frames if frame.size + least <= context]
        if not fitting:
            raise BadInput(
                f"This model's chat template alone takes {min(frame.size for frame in frames)}"
                f" tokens, and of {whose(context)} context of {context} too few are left to answer"
                " in; name another target, or learn from texts of yours alone with --data FILE."
            )
        return fitting

    def _longest_question(self, frame: Frame) -> int:
        left = self._batch.context - frame.size
        return min(LONGEST_QUESTION, left * LONGEST_QUESTION // (LONGEST_QUESTION + LONGEST_ANSWER))

    def _begun(self) -> _Line:
        rng = self._rng
        names, weights = list(SHARES), np.array(list(SHARES.values()), float)
        category = str(rng.choice(names, p=weights / weights.sum()))
        opening = str(rng.choice(OPENINGS[category]))
        frame = self._frames[int(rng.integers(len(self._frames)))]
        greedy = rng.random() < GREEDY_SHARE
        waiting = [*frame.before, *self._encode(opening, special=False)]
        temperature = 0.0 if greedy else TEMPERATURE
        return _Line(frame, len(frame.before), category, temperature, waiting)

    def _asked(self, line: _Line, token: int) -> bool:
        """Go on with the question; whether it is of no use."""
        length = len(line.ids) - line.asked_from
        if token not in self._end and length < self._longest_question(line.frame):
            line.waiting.append(token)
            return False
        line.waiting += line.frame.behind
        line.begun = len(line.ids) + len(line.frame.behind)
        return length < 3

    def _answered(self, line: _Line, token: int) -> bool:
        """Go on with the answer; whether it is over."""
        length = len(line.ids) - line.begun + 1
        full = len(line.ids) + 1 >= self._batch.context
        if token in self._end or length >= LONGEST_ANSWER or full:
            line.ids.append(token)
            return True
        line.waiting.append(token)
        if length % _LOOK_FOR_LOOPS == 0 and loops(line.ids[line.begun :]):
            line.ids.append(line.waiting.pop())
            return True
        return False

    def _record(self, line: _Line) -> Record | None:
        if len(line.near) < SHORTEST_ANSWER:
            return None
        ids = np.array(line.ids, np.int32)
        question = ids[line.asked_from : line.begun - len(line.frame.behind)]
        return Record(
            ids,
            line.begun,
            np.stack(line.near),
            np.stack(line.scores).astype(np.float16),
            line.temperature,
            line.category,
            held(question),
        )


def held(question: Tokens) -> bool:
    """Whether a question is one to judge by; every asking of it falls on the same side."""
    digest = hashlib.blake2b(question.astype("<i4").tobytes(), digest_size=4).digest()
    return int.from_bytes(digest, "little") < HELD_SHARE * 2**32


def loops(ids: list[int]) -> bool:
    """Whether a text ends by saying the same few tokens again and again."""
    for period in range(1, _LONGEST_LOOP + 1):
        told = max(_TURNS * period, _LEAST_LOOP)
        if len(ids) >= told and ids[-told:-period] == ids[-told + period :]:
            return True
    return False
