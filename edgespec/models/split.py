"""Models that come in several GGUF files: the first part stands for all of them."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from edgespec.errors import NotFound
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader
from edgespec.models.shown import shown

_PART = re.compile(r"(?P<stem>.+)-(?P<part>\d{5})-of-(?P<total>\d{5})\.gguf")


def parts_of(path: Path) -> tuple[Path, ...]:
    """All files of the model that `path` belongs to, in order; only `path` if it is not split."""
    match = _PART.fullmatch(path.name)
    if match is None or not 1 <= int(match["part"]) <= int(match["total"]):
        return (path,)
    stem, total = match["stem"], match["total"]
    names = (f"{stem}-{part:05d}-of-{total}.gguf" for part in range(1, int(total) + 1))
    return tuple(path.with_name(name) for name in names)


def read_model(path: Path) -> GgufHeader:
    """The header of a whole model: the first part's, with the tensors and sizes of every part.

    Raises: NotFound naming the parts that are missing; ModelFileError.
    """
    parts = parts_of(path)
    missing = [part.name for part in parts if not os.path.exists(part)]
    if missing and len(parts) > 1:
        names = ", ".join(shown(name) for name in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise NotFound(
            f"{shown(path)} is one of {len(parts)} parts, and {names}{more}"
            " is not beside it; download the missing parts."
        )
    return joined([read_header(part) for part in parts])


def joined(headers: Sequence[GgufHeader]) -> GgufHeader:
    """One header for a model in several files, from the headers of all of them in order."""
    return replace(
        headers[0],
        tensors=tuple(tensor for header in headers for tensor in header.tensors),
        file_size=sum(header.file_size for header in headers),
    )
