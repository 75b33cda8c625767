"""The user's own texts as data: what the target would have said at every place of them.

A drafter that has read what is talked about here knows its words. The target only scores these
texts; it does not answer them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from edgespec.decoding.draft import Row, Tokens
from edgespec.text.tokenizer import Tokenizer
from edgespec.train.batch import Batch
from edgespec.train.choosing import nearest
from edgespec.train.harvest import TEMPERATURE, held
from edgespec.train.records import Record

FILES = "files"  # their category
_SHORTEST = 16


def passages(text: str, tokenizer: Tokenizer, most: int) -> list[Tokens]:
    """A text in the target's ids, in pieces of at most `most`; the rest of a few is left out."""
    before = [] if tokenizer.bos is None else [tokenizer.bos]
    ids = tokenizer.encode(text, special=False)
    room = most - len(before)
    pieces = [ids[start : start + room] for start in range(0, len(ids), room)]
    return [np.array(before + piece, np.int32) for piece in pieces if len(piece) >= _SHORTEST]


def unread(pieces: list[Tokens], records: Collection[bytes]) -> list[Tokens]:
    """Those of which there is no record yet. records: the ids of those there are, as bytes."""
    return [piece for piece in pieces if piece.tobytes() not in records]


def readings(batch: Batch, pieces: list[Tokens]) -> Iterator[list[Record]]:
    """Every piece scored, as many at a time as the batch has slots.

    Yields after each pass what is then whole, mostly nothing.
    """
    longest_first = sorted(pieces, key=len, reverse=True)
    for start in range(0, len(pieces), batch.slots):
        yield from _together(batch, longest_first[start : start + batch.slots])


def _together(batch: Batch, pieces: list[Tokens]) -> Iterator[list[Record]]:
    near: list[list[Tokens]] = [[] for _ in pieces]
    scores: list[list[Row]] = [[] for _ in pieces]
    for at in range(len(pieces[0]) - 1):
        slots = [slot for slot, piece in enumerate(pieces) if at < len(piece) - 1]
        rows = batch.step(slots, [int(pieces[slot][at]) for slot in slots])
        found, values = nearest(rows)
        for n, slot in enumerate(slots):
            near[slot].append(found[n])
            scores[slot].append(values[n])
        yield []
    for slot in range(len(pieces)):
        batch.forget(slot)
    yield [_record(*scored) for scored in zip(pieces, near, scores, strict=True)]


def _record(piece: Tokens, near: list[Tokens], scores: list[Row]) -> Record:
    kept = np.stack(scores).astype(np.float16)
    return Record(piece, 1, np.stack(near), kept, TEMPERATURE, FILES, held(piece))
