"""Copies of models in another format, which a backend has made once and keeps in the cache."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import EdgespecError
from edgespec.models.catalogue import Format
from edgespec.models.identity import fingerprint
from edgespec.models.shown import shown
from edgespec.models.store import cache_dir

COPY_FORMAT: Format = "mlx"
_UNFINISHED = "unfinished-"


@dataclass(frozen=True, slots=True)
class Copy:
    """One model's copy. place: the folder that is its alone. size: bytes, unfinished ones too."""

    name: str
    place: Path
    size: int

    def delete(self) -> None:
        """It is made again when somebody asks for it. Raises: EdgespecError."""
        try:
            shutil.rmtree(self.place)
        except FileNotFoundError:
            pass  # somebody else did
        except OSError as error:
            reason = shown(error.strerror or error)
            raise EdgespecError(
                f"{shown(self.place)} cannot be deleted ({reason}); check it."
            ) from error


def place_of_copy(path: Path, version: int) -> Path:
    """Where the copy of a model file lies, or will. Raises: as fingerprint()."""
    return _copies_folder() / f"{fingerprint(path)}-{version}"


def all_copies() -> tuple[Copy, ...]:
    """Every copy in the cache, by name."""
    return tuple(sorted(_copies("*"), key=lambda copy: (copy.name, copy.place)))


def copies_of(files: Iterable[Path]) -> tuple[Copy, ...]:
    """The copies that were made of these files as they are now."""
    found: dict[Path, Copy] = {}
    for file in files:
        with contextlib.suppress(EdgespecError, OSError):  # of no model file there is a copy
            found |= {copy.place: copy for copy in _copies(f"{fingerprint(file)}-*")}
    return tuple(found.values())


def copies_named(name: str) -> tuple[Copy, ...]:
    return tuple(copy for copy in all_copies() if copy.name.casefold() == name.casefold())


def _copies_folder() -> Path:
    return cache_dir() / COPY_FORMAT


def _copies(pattern: str) -> Iterable[Copy]:
    for place in _copies_folder().glob(pattern):
        folders = [folder for folder in place.glob("*") if folder.is_dir()]
        whole = [folder.name for folder in folders if not folder.name.startswith(_UNFINISHED)]
        if folders:
            yield Copy(whole[0] if whole else place.name, place, _bytes_in(place))


def _bytes_in(place: Path) -> int:
    sizes = 0
    for folder, _, names in os.walk(place):
        for name in names:
            with contextlib.suppress(OSError):  # it may go while we look
                sizes += os.lstat(os.path.join(folder, name)).st_size
    return sizes
