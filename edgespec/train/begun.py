"""What a training that was begun has to remember until it is done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.models.vocabulary import read_json
from edgespec.models.wire import MAX_ELEMENTS
from edgespec.train.vocabulary import Vocabulary

_MOST_BYTES: Final = 1 << 26
_FILE: Final = "begun.json"


@dataclass(slots=True)
class Begun:
    """One training. vocab: number of the target's ids. always: ids that the drafter must know.

    most_ids, seed: as they were asked for. gathered_s: seconds spent on answers so far. ids: the
    drafter's vocabulary, and answers and texts: the shards it learns from, once they are settled.
    """

    vocab: int
    always: list[int]
    most_ids: int
    seed: int
    gathered_s: float = 0.0
    ids: list[int] | None = None
    answers: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def vocabulary(self) -> Vocabulary | None:
        return None if self.ids is None else Vocabulary(np.array(self.ids, np.int32), self.vocab)

    def save(self, folder: Path) -> None:
        """Raises: EdgespecError where the disk refuses."""
        write_atomically(folder / _FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def load(cls, folder: Path) -> Begun | None:
        """The training that was begun there; None where none was. Raises: BadInput."""
        path = folder / _FILE
        if not path.exists():
            return None
        try:
            begun = cls(**read_json(path, _MOST_BYTES))
            begun._check()
        except (OSError, TypeError, ValueError) as error:
            raise _damaged(path, error) from error
        return begun

    def _check(self) -> None:
        """Raises: TypeError, ValueError."""
        if not _whole(self.vocab, 1, MAX_ELEMENTS) or not _whole(self.most_ids, 1, MAX_ELEMENTS):
            raise ValueError("its vocabulary has no size")
        for ids in (self.always, self.ids or []):
            if not all(_whole(token, 0, self.vocab - 1) for token in ids):
                raise ValueError("it names ids that there are not")
        if self.ids is not None and (not self.ids or sorted(set(self.ids)) != self.ids):
            raise ValueError("its vocabulary does not ascend")
        if not 0 <= self.gathered_s < 1e12 or not _whole(self.seed, 0, 1 << 63):
            raise ValueError("its numbers make no sense")
        if any(Path(name).name != name for name in [*self.answers, *self.texts]):
            raise ValueError("it names files elsewhere")


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _damaged(path: Path, error: Exception) -> BadInput:
    return BadInput(
        f"{shown(path)} tells of no training ({shown(error, 120)}); --fresh begins anew."
    )
