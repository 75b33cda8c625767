"""Answers kept with what a draft model would have guessed at every place of them.

The text of an answer does not depend on who guesses, and after a prefix of true tokens neither
does a draft model's next guess. So one pass of the draft model over an answer is enough to replay
that answer with any number of guesses, on any cost curve, without the target.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.accept import Rule
from edgespec.decoding.draft import ROOT, Draft, Row, Tokens
from edgespec.decoding.session import Session
from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.proposers.model_tree import OTHERS

FORMAT = "edgespec recorded answers, version 1"
NO_GUESS = -1  # where the draft model's context was full
_MOST_BYTES = 256 * 2**20
_MOST_ID = 2**31 - 1
_FAR = 1e30  # nats that no score reaches

Confidences = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer: token ids, int32.

    guesses: what the draft model says at each place of the reply, int32 [len(reply)], NO_GUESS
    where it says nothing; confidences: the probability it gave that guess, float32 [len(reply)].
    Both None where no draft model was asked.
    noted: its best tokens there, as Branching notes them beside a guess and the guess first, int32
    [len(reply), k], NO_GUESS where there are fewer; shares: how likely each is to be chosen,
    float32 of that shape. Both None where only the guess was kept.
    near: the target's best tokens at each place of the reply, best first, int32 [len(reply), k];
    scores: theirs, in nats, float32 of that shape. Both None where the target made no pass.
    """

    id: str
    category: str
    prompt: Tokens
    reply: Tokens
    guesses: Tokens | None = None
    confidences: Confidences | None = None
    noted: Tokens | None = None
    shares: Confidences | None = None
    near: Tokens | None = None
    scores: Confidences | None = None


def score(recorded: Recorded, session: Session, vocab: int, rule: Rule) -> Recorded:
    """The answer with what a draft model guesses at each place of it, and holds likely instead.

    session: the draft model's. vocab: ids below it are shared with the target. rule: by which the
    answer was said, so that guesses are drawn with its noise; it may not look at earlier text.
    """
    most = 1 + OTHERS
    guesses = np.full(len(recorded.reply), NO_GUESS, np.int32)
    noted = np.full((len(guesses), most), NO_GUESS, np.int32)
    confidences, shares = np.zeros(guesses.shape, np.float32), np.zeros(noted.shape, np.float32)
    for place, row in enumerate(_rows(session, recorded)):
        guess = rule.guess(row[:vocab], (), place)
        guesses[place], confidences[place] = guess.token, guess.confidence
        for rank, other in enumerate(rule.guesses(row[:vocab], (), place, most)):
            noted[place, rank], shares[place, rank] = other.token, other.confidence
    return replace(recorded, guesses=guesses, confidences=confidences, noted=noted, shares=shares)


def _rows(session: Session, recorded: Recorded) -> Iterator[Row]:
    """A draft model's scores for each place of the reply, as far as its context reaches.

    The true tokens ride as chains, so that each pass answers for as many places as it has rows.
    """
    caps, at = session.caps, len(recorded.prompt)
    tokens = np.concatenate([recorded.prompt, recorded.reply])
    rows = caps.rows if caps.rollback is None else min(caps.rows, caps.rollback + 1)
    end = min(len(tokens), caps.context)
    if at >= end:
        return
    for _ in session.prefill(np.ascontiguousarray(recorded.prompt, dtype=np.int32)):
        pass
    while at < end:
        known = tokens[at : min(at + rows, end) - 1].tolist()
        scores = session.verify(Draft.chain(known, "recorded"))
        yield from (scores.logits(node) for node in range(ROOT, len(known)))
        at += len(known)
        session.commit(tuple(range(len(known))), int(tokens[at]))
        at += 1


def save(path: Path, records: Sequence[Recorded]) -> None:
    """Write answers as JSON: `format`, and `records`, a list with the fields of Recorded.

    Raises: EdgespecError where the disk refuses.
    """
    content = {"format": FORMAT, "records": [_as_json(record) for record in records]}
    write_atomically(path, json.dumps(content).encode())


def load(path: Path) -> list[Recorded]:
    """The answers in a file that save() wrote.

    Raises: NotFound; BadInput where it holds something else.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"{shown(path)} is not there; check the path.") from None
    except OSError as error:
        raise EdgespecError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    if len(data) > _MOST_BYTES:
        raise _not_ours(path, f"it is larger than {_MOST_BYTES // 2**20} MiB")
    try:
        content = json.loads(data)
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {shown(content['format'], 60)}")
        return [_from_json(record) for record in content["records"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_ours(path, shown(error, 120)) from error


def _not_ours(path: Path, reason: str) -> BadInput:
    return BadInput(f"{shown(path)} holds no recorded answers: {reason}. Record them again.")


@dataclass(frozen=True, slots=True)
class _Kept:
    """Fields that are kept where they are known: ids at each place, and a number for each id."""

    ids: str
    numbers: str
    dimensions: int
    least_id: int
    lowest: float
    highest: float

    def written(self, record: Recorded) -> dict[str, Any]:
        ids, numbers = getattr(record, self.ids), getattr(record, self.numbers)
        if ids is None:
            return {self.ids: None, self.numbers: None}
        short = numbers.astype(np.float64).round(6)
        return {self.ids: ids.tolist(), self.numbers: short.tolist()}

    def read(self, data: Mapping[str, Any], places: int) -> dict[str, NDArray[Any]]:
        """Raises what _from_json() raises."""
        if data.get(self.ids) is None:
            return {}
        ids = _ids(data[self.ids], self.least_id)
        for value in _flat(data[self.numbers]):
            if type(value) not in (int, float) or not self.lowest <= value <= self.highest:  # type: ignore[operator]
                raise ValueError(f"{shown(value, 40)} is none of {self.numbers}")
        numbers = np.array(data[self.numbers], dtype=np.float32)
        if not (ids.ndim == self.dimensions and len(ids) == places and ids.shape == numbers.shape):
            raise ValueError(f"{data['id']} has not its {self.ids} and {self.numbers} everywhere")
        return {self.ids: ids, self.numbers: numbers}


_KEPT = (
    _Kept("guesses", "confidences", 1, NO_GUESS, 0.0, 1.0),
    _Kept("noted", "shares", 2, NO_GUESS, 0.0, 1.0),
    _Kept("near", "scores", 2, 0, -_FAR, _FAR),
)


def _as_json(record: Recorded) -> dict[str, Any]:
    told: dict[str, Any] = {"id": record.id, "category": record.category}
    told |= {"prompt": record.prompt.tolist(), "reply": record.reply.tolist()}
    for kept in _KEPT:
        told |= kept.written(record)
    return told


def _from_json(data: Mapping[str, Any]) -> Recorded:
    """Raises KeyError, TypeError or ValueError for what is no answer."""
    if not (isinstance(data["id"], str) and isinstance(data["category"], str)):
        raise TypeError("an id or a category is no text")
    prompt, reply = _ids(data["prompt"], 0), _ids(data["reply"], 0)
    if not (prompt.ndim == reply.ndim == 1 and len(prompt) and len(reply)):
        raise ValueError(f"{data['id']} has no prompt or no reply")
    known: dict[str, NDArray[Any]] = {}
    for kept in _KEPT:
        known |= kept.read(data, len(reply))
    return Recorded(data["id"], data["category"], prompt, reply, **known)


def _ids(values: Iterable[object], least: int) -> Tokens:
    """Raises ValueError where one is no token id, or rows are not of one length."""
    for value in _flat(values):
        if type(value) is not int or not least <= value <= _MOST_ID:
            raise ValueError(f"{shown(value, 40)} is no token id")
    return np.array(values, dtype=np.int32)


def _flat(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        yield from value if isinstance(value, list) else (value,)
