"""Drafters that were trained on this machine: where they lie, and the pairs that they make.

Each has a folder of its own in the user's data folder, with the drafter as GGUF and as
safetensors. Its target stays where it is.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from edgespec.errors import BadInput, EdgespecError
from edgespec.models.catalogue import catalogue
from edgespec.models.choices import forget as forget_choice
from edgespec.models.identity import files_of
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
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
_HERE: Final = "local"  # in place of a commit


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


def put_in_place(name: str, made: Path) -> None:
    """Make a folder that of the pair's drafter. An earlier one is deleted last, and stays where it
    was if a step before that fails.

    Raises: OSError.
    """
    goal, aside = folder_of(name), trained_dir() / f".old-{name}"
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
    both = InstalledModel("trained here", _HERE, (draft,), draft.stat().st_size)
    pair = InstalledPair(name, "gguf", _in_place(target.absolute()), both, now())
    record(pair)
    forget_choice(target)
    return pair


def remove(pair: InstalledPair) -> None:
    """Delete the drafter of a trained pair. Raises: EdgespecError."""
    folder = _folder(pair)
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
    files = (Path(top, name) for top, _, names in os.walk(_folder(pair)) for name in names)
    return sum(file.lstat().st_size for file in files)


def _folder(pair: InstalledPair) -> Path:
    assert pair.trained
    assert pair.draft is not None
    return pair.draft.files[0].parent


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file; one that is gone is the same as itself alone."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def _in_place(target: Path) -> InstalledModel:
    files = files_of(target)
    size = sum(file.stat().st_size for file in files)
    return InstalledModel(target.name, _HERE, files, size)
