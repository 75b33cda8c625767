"""Which of a target's token ids a drafter with a vocabulary of its own knows.

A drafter that was trained for one target leaves out the tokens that it never says. Its ids count
from 0, and a table in its header says which of the target's each one is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgespec.models.wire import MAX_ELEMENTS, damaged

IDS_KEY: Final = "edgespec.target_ids"
VOCABULARY_KEY: Final = "edgespec.target_vocabulary"
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")
_PADDING: Final = re.compile(rb"\[PAD\d*\]")


@dataclass(frozen=True, slots=True)
class IdTable:
    """The target's id of each of the drafter's, int32 [k], ascending.

    The drafter's id k stands for every other token. vocabulary: digest of the target's.
    """

    ids: NDArray[np.int32]
    vocabulary: str

    @property
    def unknown(self) -> int:
        return len(self.ids)


def id_table(path: Path, ids: Any, vocabulary: Any, rows: int) -> IdTable | None:
    """The table that a header holds; None where it holds none.

    rows: of the drafter's own vocabulary. Raises: ModelFileError for a table that makes no sense.
    """
    if ids is None and vocabulary is None:
        return None
    if not isinstance(vocabulary, str) or not _DIGEST.fullmatch(vocabulary):
        raise damaged(path, "its id table names no vocabulary")
    if isinstance(ids, list) and all(type(token) is int for token in ids[:MAX_ELEMENTS]):
        if any(not 0 <= token < MAX_ELEMENTS for token in ids):
            raise damaged(path, "its id table holds an id that no model has")
        ids = np.array(ids, np.int64)
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise damaged(path, "its id table is no list of ids")
    if not 0 < len(ids) < rows:
        raise damaged(path, f"its id table has {len(ids)} entries, and the drafter {rows} ids")
    if ids[0] < 0 or ids[-1] >= MAX_ELEMENTS or (np.diff(ids.astype(np.int64)) <= 0).any():
        raise damaged(path, "its id table does not ascend")
    return IdTable(ids.astype(np.int32), vocabulary)


def vocabulary_digest(tokens: Sequence[bytes]) -> str:
    """32 hexadecimal digits for the text of every id; what pads a vocabulary at its end is left
    out, since copies of one model in other formats have more or less of it."""
    digest, waiting = hashlib.blake2b(digest_size=16), []
    for token in tokens:
        waiting.append(token)
        if _PADDING.fullmatch(token):
            continue
        for text in waiting:
            digest.update(len(text).to_bytes(8, "little") + text)
        waiting.clear()
    return digest.hexdigest()
