"""Answers that a drafter learns from, on disk: a folder of shards, each whole or not there."""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Tokens
from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.models.wire import MAX_ELEMENTS

NEAR = 40  # tokens of each place that are kept with their scores
CONTEXT = 1024  # tokens that a drafter reads, and so those of a record that can be learned from
_MOST_BYTES: Final = 1 << 30
_NAME: Final = re.compile(r"answers-\d{5,9}\.npz")
# the kinds of numbers and the dimensions of each part of a shard
_KINDS: Final = {
    "ids": ("iu", 1),
    "lengths": ("iu", 1),
    "begun": ("iu", 1),
    "near": ("iu", 2),
    "scores": ("f", 2),
    "temperature": ("f", 1),
    "category": ("U", 1),
    "held": ("b", 1),
}


@dataclass(frozen=True, slots=True)
class Record:
    """One answer of the target, with what it nearly said at each place.

    ids         prompt and answer, int32 [n].
    begun       index of the answer's first token.
    near        the best tokens of each place of the answer, best first, int32 [n - begun, NEAR].
    scores      theirs, relative to the best one's, float16 [n - begun, NEAR].
    held        kept out of training, to judge by.
    """

    ids: Tokens
    begun: int
    near: Tokens
    scores: NDArray[np.float16]
    temperature: float
    category: str
    held: bool

    @property
    def answer(self) -> Tokens:
        return self.ids[self.begun :]


@dataclass(frozen=True, slots=True)
class Census:
    """What a shelf holds. tokens: of answers. held: tokens of those that are kept out."""

    answers: int = 0
    tokens: int = 0
    held: int = 0

    def __add__(self, other: Census) -> Census:
        return Census(
            self.answers + other.answers, self.tokens + other.tokens, self.held + other.held
        )


class Shelf:
    """A folder of records. A write that was cut short leaves no shard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shards(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("answers-*.npz") if _NAME.match(path.name))

    def free(self) -> Path:
        """Where the next shard goes."""
        taken = [int(path.stem.rpartition("-")[2]) for path in self.shards()]
        return self.folder / f"answers-{max(taken, default=-1) + 1:05}.npz"

    def add(self, records: Iterable[Record], place: Path | None = None) -> Path:
        """Write one more shard.

        place: what free() told before, for who cannot know whether a write that was broken off
        succeeded: the second try replaces the first. Raises: EdgespecError where the disk refuses.
        """
        path = self.free() if place is None else place
        write_atomically(path, _packed(list(records)))
        return path

    def __iter__(self) -> Iterator[Record]:
        """All records, in the order in which they were written. Raises: BadInput."""
        for path in self.shards():
            yield from read_shard(path)

    def census(self) -> Census:
        """Raises: BadInput."""
        return sum(map(counted_shard, self.shards()), Census())


def counted_shard(path: Path) -> Census:
    """What one shard holds. Raises: BadInput naming the shard."""
    with _opened(path) as shard:
        lengths = (shard["lengths"].astype(np.int64) - shard["begun"]).clip(0)
        return Census(len(lengths), int(lengths.sum()), int(lengths[shard["held"]].sum()))


def read_shard(path: Path, vocab: int = MAX_ELEMENTS) -> Iterator[Record]:
    """The records of one shard as far as a drafter reads, once all of it has been checked.

    vocab: number of the ids that there are. Raises: BadInput naming the shard.
    """
    with _opened(path) as file:
        shard = {name: file[name] for name in _KINDS}
        _check(shard, vocab)
    starts = np.cumsum([0, *shard["lengths"]])
    rows = np.cumsum([0, *(shard["lengths"] - shard["begun"])])
    for n in range(len(shard["lengths"])):
        begun, end = int(shard["begun"][n]), min(int(shard["lengths"][n]), CONTEXT)
        if begun >= end:
            continue
        here, said = starts[n], slice(rows[n], rows[n] + end - begun)
        yield Record(
            ids=shard["ids"][here : here + end].astype(np.int32),
            begun=begun,
            near=shard["near"][said].astype(np.int32),
            scores=shard["scores"][said],
            temperature=float(shard["temperature"][n]),
            category=str(shard["category"][n]),
            held=bool(shard["held"][n]),
        )


@contextmanager
def _opened(path: Path) -> Iterator[np.lib.npyio.NpzFile]:
    """Raises: BadInput for what is no shard, also from within."""
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > _MOST_BYTES:
                raise ValueError(f"it would unpack to more than {_MOST_BYTES >> 20} MiB")
        with np.load(path, allow_pickle=False) as shard:
            yield shard
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile, zlib.error) as error:
        raise BadInput(
            f"{shown(path)} holds no answers ({shown(error, 120)}); delete it."
        ) from error


def _check(shard: Mapping[str, NDArray[Any]], vocab: int) -> None:
    """Raises: ValueError unless all parts of a shard fit together."""
    for name, (kinds, dims) in _KINDS.items():
        if shard[name].dtype.kind not in kinds or shard[name].ndim != dims:
            raise ValueError(f"its {name} make no sense")
    lengths, begun = shard["lengths"].astype(np.int64), shard["begun"].astype(np.int64)
    if not len(lengths) == len(begun) == len(shard["temperature"]) == len(shard["category"]):
        raise ValueError("its parts are of different lengths")
    if len(shard["held"]) != len(lengths) or ((begun < 1) | (begun >= lengths)).any():
        raise ValueError("an answer in it has no beginning or no end")
    rows = int((lengths - begun).sum())
    if len(shard["ids"]) != lengths.sum() or shard["near"].shape != (rows, NEAR):
        raise ValueError("it holds more or fewer tokens than it says")
    if shard["scores"].shape != (rows, NEAR) or not np.isfinite(shard["scores"]).all():
        raise ValueError("its scores make no sense")
    for ids in (shard["ids"], shard["near"]):
        if ids.size and not 0 <= ids.min() <= ids.max() < vocab:
            raise ValueError("it holds a token id that the model does not have")


def _packed(records: list[Record]) -> bytes:
    buffer = io.BytesIO()
    wide = max((int(record.ids.max()) for record in records), default=0) > 0xFFFF
    kind = np.int32 if wide else np.uint16
    np.savez(
        buffer,
        ids=np.concatenate([record.ids for record in records]).astype(kind),
        lengths=np.array([len(record.ids) for record in records], np.int32),
        begun=np.array([record.begun for record in records], np.int32),
        near=np.concatenate([record.near for record in records]).astype(kind),
        scores=np.concatenate([record.scores for record in records]),
        temperature=np.array([record.temperature for record in records], np.float32),
        category=np.array([record.category for record in records]),
        held=np.array([record.held for record in records]),
    )
    return buffer.getvalue()
