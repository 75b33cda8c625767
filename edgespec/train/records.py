"""Answers that a drafter learns from, on disk: a folder of shards, each whole or not there."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Tokens
from edgespec.errors import BadInput
from edgespec.models.store import write_atomically

NEAR = 40  # tokens of each place that are kept with their scores


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


class Shelf:
    """A folder of records. A write that was cut short leaves no shard."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def shards(self) -> list[Path]:
        return sorted(self.folder.glob("answers-*.npz"))

    def add(self, records: Iterable[Record]) -> Path:
        """Write one more shard. Raises: EdgespecError where the disk refuses."""
        taken = [int(path.stem.rpartition("-")[2]) for path in self.shards()]
        path = self.folder / f"answers-{max(taken, default=-1) + 1:05}.npz"
        write_atomically(path, _packed(list(records)))
        return path

    def __iter__(self) -> Iterator[Record]:
        """All records, in the order in which they were written. Raises: BadInput."""
        for path in self.shards():
            yield from _unpacked(path)


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


def _unpacked(path: Path) -> Iterator[Record]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            shard = {name: file[name] for name in file.files}
        starts = np.cumsum([0, *shard["lengths"]])
        rows = np.cumsum([0, *(shard["lengths"] - shard["begun"])])
        for n in range(len(shard["lengths"])):
            yield Record(
                ids=shard["ids"][starts[n] : starts[n + 1]].astype(np.int32),
                begun=int(shard["begun"][n]),
                near=shard["near"][rows[n] : rows[n + 1]].astype(np.int32),
                scores=shard["scores"][rows[n] : rows[n + 1]],
                temperature=float(shard["temperature"][n]),
                category=str(shard["category"][n]),
                held=bool(shard["held"][n]),
            )
    except (OSError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise BadInput(f"{path.name} holds no answers ({error}); delete it.") from error
