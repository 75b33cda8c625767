"""Drafters that were trained on this machine: where they lie, and the pairs that they make.

Each has a folder of its own in the user's data folder, with the drafter as GGUF and as
safetensors. Its target stays where it is.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from filelock import FileLock, Timeout

from edgespec.errors import BadInput, EdgespecError
from edgespec.models.catalogue import catalogue
from edgespec.models.choices import forget as forget_choice
from edgespec.models.identity import files_of
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    data_dir,
    find_installed,
    now,
    record,
    trained_dir,
)
from edgespec.models.pairs import DEMO
from edgespec.models.shown import shown

GGUF_NAME: Final = "drafter.gguf"
FOLDER_NAME: Final = "drafter"
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
HERE: Final = "local"  # in place of a commit, for what no pull has brought
_NEW: Final = ".new-"
_PATIENCE_S: Final = 30.0


def check_name(name: str, target: Path) -> None:
    """Raises: BadInput where no pair that is trained for this target can be called so."""
    if not _NAME.fullmatch(name) or name.endswith((".gguf", ".")):
        raise BadInput(
            f"'{shown(name, 80)}' is no name for a pair; --out takes small letters, digits, dots,"
            " hyphens and underscores, up to 80."
        )
    if name == DEMO or catalogue().find(name) is not None:
        raise BadInput(f"'{name}' is the name of another pair; choose another with --out.")
    taken = find_installed(name)
    if taken is None:
        return
    if not taken.trained:
        raise BadInput(f"'{name}' was pulled to this machine; choose another name with --out.")
    recorded = taken.path(taken.target)
    if not _same(recorded, target.absolute()):
        raise BadInput(
            f"'{name}' guesses for {shown(recorded)}; choose another name with --out, or delete it"
            f" first with 'edgespec rm {name}'."
        )


def name_from(label: str) -> str:
    """A name for the pair of a target that is called so; a pair that was trained keeps its own."""
    known = find_installed(label)
    if known is not None and known.trained:
        return known.name
    plain = re.sub(r"[^a-z0-9._-]+", "-", label.casefold().rpartition("/")[2]).strip("-._")
    return f"{plain.removesuffix('.gguf')[:60] or 'model'}-trained"


def folder_of(name: str) -> Path:
    return trained_dir() / name


@contextlib.contextmanager
def room_to_make() -> Iterator[Path]:
    """An empty folder to make a drafter in, before it is put in its place.

    For one process at a time; what one that was killed left here is deleted.
    Raises: EdgespecError, OSError.
    """
    trained_dir().mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(FileLock(data_dir() / "trained.lock", timeout=_PATIENCE_S))
        except Timeout as error:
            raise EdgespecError(
                f"Another edgespec has been writing to {shown(trained_dir())} for"
                f" {_PATIENCE_S:.0f} seconds; run this again when it is done, nothing is lost."
            ) from error
        for left in trained_dir().glob(f"{_NEW}*"):
            shutil.rmtree(left, ignore_errors=True)
        made = held.enter_context(TemporaryDirectory(prefix=_NEW, dir=trained_dir()))
        fresh = Path(made) / "whole"
        fresh.mkdir()
        yield fresh


def put_in_place(name: str, made: Path) -> None:
    """Make a folder that of the pair's drafter. An earlier one is deleted last, and stays where it
    was if a step before that fails.

    Raises: OSError.
    """
    goal = folder_of(name)
    aside = _earlier(goal)
    if goal.exists():
        if aside.exists():
            shutil.rmtree(aside)
        goal.rename(aside)
    try:
        made.rename(goal)
    except OSError:
        if aside.exists():
            aside.rename(goal)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def install(name: str, target: Path) -> InstalledPair:
    """Make a pair of a target and the drafter that lies in its folder.

    What was chosen for the target before is forgotten: it was chosen without this drafter.
    Raises: EdgespecError where the disk refuses.
    """
    draft = folder_of(name) / GGUF_NAME
    both = InstalledModel("trained here", HERE, (draft,), draft.stat().st_size)
    pair = InstalledPair(name, "gguf", _in_place(target.absolute()), both, now())
    record(pair)
    forget_choice(target)
    return pair


def remove(pair: InstalledPair) -> None:
    """Delete the drafter of a trained pair, and an earlier one that was left.

    Raises: EdgespecError.
    """
    for folder in _folders(pair):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            reason = shown(error.strerror or error)
            raise EdgespecError(
                f"{shown(folder)} cannot be deleted ({reason}); check its permissions."
            ) from error


def bytes_of(pair: InstalledPair) -> int:
    """What remove() frees."""
    walks = (os.walk(folder) for folder in _folders(pair))
    files = (Path(top, name) for walk in walks for top, _, names in walk for name in names)
    return sum(file.lstat().st_size for file in files)


def _folders(pair: InstalledPair) -> tuple[Path, Path]:
    """Where a pair's drafter lies, and where the one before it does if replacing it was killed."""
    assert pair.trained
    assert pair.draft is not None
    folder = pair.draft.files[0].parent
    return folder, _earlier(folder)


def _earlier(folder: Path) -> Path:
    return folder.with_name(f".old-{folder.name}")


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file; one that is gone is the same as itself alone."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _in_place(target: Path) -> InstalledModel:
    files = files_of(target)
    size = sum(file.stat().st_size for file in files)
    return InstalledModel(target.name, HERE, files, size)
