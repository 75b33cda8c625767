"""What a training that was begun has to remember until it is done."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from edgespec.errors import BadInput, ModelFileError
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.models.vocabulary import read_json
from edgespec.models.wire import MAX_ELEMENTS
from edgespec.train.vocabulary import Vocabulary

_MOST_BYTES: Final = 1 << 26
_FILE: Final = "begun.json"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a training that was begun has to be asked for again.

    most_ids: --vocabulary. data: `self` and the names of texts. contents: a digest of these texts.
    """

    most_ids: int
    seed: int
    data: tuple[str, ...]
    contents: str

    def check(self, now: Terms, name: str) -> None:
        """Raises: BadInput where the training of this name is asked for otherwise now."""
        flags = (
            (f"--vocabulary {self.most_ids}", self.most_ids == now.most_ids),
            (f"--seed {self.seed}", self.seed == now.seed),
            (" ".join(f"--data {shown(one, 80)}" for one in self.data), self.data == now.data),
        )
        for flag, same in flags:
            if not same:
                raise BadInput(
                    f"'{name}' was begun with {flag}; go on with that, or begin anew with --fresh."
                )
        if self.contents != now.contents:
            raise BadInput(
                f"A text of --data is not what it was when '{name}' was begun; put it back, or"
                " begin anew with --fresh."
            )


@dataclass(slots=True)
class Begun:
    """One training. vocab: number of the target's ids. always: ids that the drafter must know.

    gathered_s: seconds spent on answers so far. Once it is settled what is learned: ids, the
    drafter's vocabulary; tokens, how many answers were asked for; answers and texts, the shards.
    """

    vocab: int
    always: list[int]
    terms: Terms
    gathered_s: float = 0.0
    tokens: int = 0
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
            told = read_json(path, _MOST_BYTES)
            begun = cls(**told | {"terms": _terms(told.get("terms"))})
            begun._check()
        except ModelFileError as error:  # its advice is for models
            raise _damaged(path, "it is not what was written there") from error
        except (OSError, TypeError, ValueError) as error:
            raise _damaged(path, shown(error, 120)) from error
        return begun

    def _check(self) -> None:
        """Raises: TypeError, ValueError."""
        if not _whole(self.vocab, 1, MAX_ELEMENTS):
            raise ValueError("its vocabulary has no size")
        for ids in (self.always, self.ids or []):
            if not all(_whole(token, 0, self.vocab - 1) for token in ids):
                raise ValueError("it names ids that there are not")
        if self.ids is not None and (not self.ids or sorted(set(self.ids)) != self.ids):
            raise ValueError("its vocabulary does not ascend")
        if not 0 <= self.gathered_s < 1e12 or not _whole(self.tokens, 0, MAX_ELEMENTS):
            raise ValueError("its numbers make no sense")
        if any(Path(name).name != name for name in [*self.answers, *self.texts]):
            raise ValueError("it names files elsewhere")


def _terms(told: Any) -> Terms:
    """Raises: TypeError, ValueError."""
    if not isinstance(told, dict):
        raise TypeError("it does not say what was asked for")
    terms = Terms(**told | {"data": tuple(told.get("data", ()))})
    if not _whole(terms.most_ids, 1, MAX_ELEMENTS) or not _whole(terms.seed, 0, 1 << 63):
        raise ValueError("its numbers make no sense")
    if not all(isinstance(text, str) for text in (*terms.data, terms.contents)):
        raise TypeError("its data has no names")
    return terms


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _damaged(path: Path, reason: str) -> BadInput:
    return BadInput(f"{shown(path)} tells of no training ({reason}); --fresh begins anew.")
