"""Answers kept with what a draft model would have guessed at every place of them.

The text of an answer does not depend on who guesses, and after a prefix of true tokens neither
does a draft model's next guess. So one pass of the draft model over an answer is enough to replay
that answer with any number of guesses, on any cost curve, without the target.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.accept import Coupled
from edgespec.decoding.draft import ROOT, Draft, Tokens
from edgespec.decoding.noise import Noise
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Session
from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically

FORMAT = "edgespec recorded answers, version 1"
NO_GUESS = -1  # where the draft model's context was full
_MOST_BYTES = 256 * 2**20
_MOST_ID = 2**31 - 1

Confidences = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer: token ids, int32.

    guesses: what the draft model says at each place of the reply, int32 [len(reply)], NO_GUESS
    where it says nothing; confidences: the probability it gave that guess, float32 [len(reply)].
    Both None where no draft model was asked.
    near: the target's best tokens at each place of the reply, best first, int32 [len(reply), k];
    scores: theirs, in nats, float32 of that shape. Both None where the target made no pass; save()
    leaves them out.
    """

    id: str
    category: str
    prompt: Tokens
    reply: Tokens
    guesses: Tokens | None = None
    confidences: Confidences | None = None
    near: Tokens | None = None
    scores: Confidences | None = None


def score(session: Session, vocab: int, tokens: Tokens, start: int) -> tuple[Tokens, Confidences]:
    """A draft model's likeliest token, with its probability, at each place from `start` on.

    session: the draft model's. vocab: ids below it are shared with the target. The true tokens
    ride as chains, so that each pass answers for as many places as it has rows.
    """
    caps = session.caps
    rows = caps.rows if caps.rollback is None else min(caps.rows, caps.rollback + 1)
    guesses = np.full(len(tokens) - start, NO_GUESS, dtype=np.int32)
    confidences = np.zeros(len(guesses), dtype=np.float32)
    greedy = Coupled(Sampling(temperature=0.0), Noise(0, 0))
    end = min(len(tokens), caps.context)
    if start >= end:
        return guesses, confidences
    for _ in session.prefill(np.ascontiguousarray(tokens[:start], dtype=np.int32)):
        pass
    at = start
    while at < end:
        known = [int(token) for token in tokens[at : min(at + rows, end) - 1]]
        scores = session.verify(Draft.chain(known, "recorded"))
        for node in range(ROOT, len(known)):
            guess = greedy.guess(scores.logits(node)[:vocab], (), 0)
            place = at - start + node - ROOT
            guesses[place], confidences[place] = guess.token, guess.confidence
        at += len(known)
        session.commit(tuple(range(len(known))), int(tokens[at]))
        at += 1
    return guesses, confidences


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


def _as_json(record: Recorded) -> dict[str, Any]:
    guesses, confidences = record.guesses, record.confidences
    return {
        "id": record.id,
        "category": record.category,
        "prompt": record.prompt.tolist(),
        "reply": record.reply.tolist(),
        "guesses": None if guesses is None else guesses.tolist(),
        "confidences": None if confidences is None else [round(float(c), 6) for c in confidences],
    }


def _from_json(data: Mapping[str, Any]) -> Recorded:
    """Raises KeyError, TypeError or ValueError for what is no answer."""
    if not (isinstance(data["id"], str) and isinstance(data["category"], str)):
        raise TypeError("an id or a category is no text")
    prompt, reply = _ids(data["prompt"], 0), _ids(data["reply"], 0)
    if not (len(prompt) and len(reply)):
        raise ValueError(f"{data['id']} has no prompt or no reply")
    if data["guesses"] is None:
        return Recorded(data["id"], data["category"], prompt, reply)
    guesses = _ids(data["guesses"], NO_GUESS)
    confidences = np.array([_share(c) for c in data["confidences"]], dtype=np.float32)
    if not len(reply) == len(guesses) == len(confidences):
        raise ValueError(f"{data['id']} has not one guess and one confidence for each place")
    return Recorded(data["id"], data["category"], prompt, reply, guesses, confidences)


def _ids(values: Sequence[object], least: int) -> Tokens:
    for value in values:
        if type(value) is not int or not least <= value <= _MOST_ID:
            raise ValueError(f"{shown(value, 40)} is no token id")
    return np.array(values, dtype=np.int32)


def _share(value: object) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:  # type: ignore[operator]
        raise ValueError(f"{shown(value, 40)} is no probability")
    return float(value)  # type: ignore[arg-type]
