"""Which pairs were pulled to this machine, and when each was used last.

One small JSON file a pair, in the user's data folder; the models themselves lie in the hub's
cache, where other programs find them too.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import platformdirs
from filelock import FileLock, Timeout

from edgespec.errors import EdgespecError
from edgespec.models.catalogue import FORMATS, Format
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically

_PATIENCE_S: Final = 30.0
_LONGEST_FILE_NAME: Final = 180
_LARGEST_RECORD: Final = 1 << 20
_LARGEST_MODEL: Final = 1 << 60
_LATEST: Final = 253_402_300_800  # the year 10000, which no date can tell


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """One side of a pair: the files of a repository at a commit, the first part first.

    files: absolute paths in the snapshot folder of the hub's cache. size: bytes of all of them.
    """

    repo: str
    commit: str
    files: tuple[Path, ...]
    size: int

    @property
    def missing(self) -> tuple[Path, ...]:
        """Files that somebody deleted."""
        return tuple(file for file in self.files if not os.path.exists(file))


@dataclass(frozen=True, slots=True)
class InstalledPair:
    """A pair as it was pulled. pulled: seconds since 1970. draft: None = n-gram drafts."""

    name: str
    format: Format
    target: InstalledModel
    draft: InstalledModel | None
    pulled: float

    @property
    def models(self) -> tuple[InstalledModel, ...]:
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def size(self) -> int:
        return sum(model.size for model in self.models)

    @property
    def trained(self) -> bool:
        """Whether its draft model was trained on this machine."""
        if self.draft is None:
            return False
        folder = self.draft.files[0].parent
        # the data folder may have been named by a link then and by its goal now
        where, home = os.path.realpath(folder.parent), os.path.realpath(trained_dir())
        return where == home and folder.name != ".."

    @property
    def complete(self) -> bool:
        return not any(model.missing for model in self.models)

    @property
    def fault(self) -> str:
        """What of it is gone, and what makes it whole, in words; "" where nothing is."""
        if self.complete:
            return ""
        gone = "its target" if self.target.missing else "its draft model"
        return f"incomplete, {gone} is gone: {self.remedy}"

    @property
    def remedy(self) -> str:
        """How it becomes whole where files of it are gone, in words."""
        name = shown(self.name, 80)
        if not self.trained:
            return f"'edgespec pull {name}' fetches it again"
        if self.target.missing:
            return f"put it back, or delete the pair with 'edgespec rm {name}'"
        return f"'edgespec train TARGET --out {name}' makes it anew"

    def path(self, model: InstalledModel) -> Path:
        """What a backend loads: the first GGUF file, or the folder of an MLX model."""
        return model.files[0] if self.format == "gguf" else model.files[0].parent


@dataclass(frozen=True, slots=True)
class Records:
    """What the records say. notes: damaged ones that were set aside, one line each."""

    pairs: tuple[InstalledPair, ...]
    notes: tuple[str, ...] = ()


def data_dir() -> Path:
    """For what cannot be fetched again; EDGESPEC_DATA_DIR moves it."""
    moved = os.environ.get("EDGESPEC_DATA_DIR")
    if moved:
        return Path(os.path.expanduser(moved))  # an unknown ~user stays as it is
    return platformdirs.user_data_path("edgespec", appauthor=False)


def trained_dir() -> Path:
    """Where drafters lie that were trained here, a folder for each pair."""
    return data_dir().absolute() / "trained"


def installed_pairs() -> Records:
    """All pairs that were pulled, by name. A damaged record is set aside, never deleted."""
    pairs: list[InstalledPair] = []
    notes: list[str] = []
    try:
        files = _record_files()
    except OSError as error:
        return Records((), (_unreadable(_records(), error),))
    for file in files:
        try:
            pairs.append(_read(file))
        except FileNotFoundError:  # removed since the folder was listed
            continue
        except OSError as error:
            notes.append(_unreadable(file, error))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            notes.append(_set_aside(file))
    return Records(tuple(sorted(pairs, key=lambda pair: pair.name)), tuple(notes))


def find_installed(name: str) -> InstalledPair | None:
    """The pulled pair of this name; upper and lower case are the same."""
    wanted = name.casefold()
    pairs = installed_pairs().pairs
    return next((pair for pair in pairs if pair.name.casefold() == wanted), None)


def record(pair: InstalledPair) -> None:
    """Keep what was pulled; replaces a record of the same name. Raises: EdgespecError."""
    content = json.dumps(_to_json(pair), indent=2).encode() + b"\n"
    with _locked():
        write_atomically(_file_of(pair.name), content)


def forget(name: str) -> None:
    """Drop the record of a pair, not its files. Raises: EdgespecError."""
    with _locked():
        try:
            _file_of(name).unlink(missing_ok=True)
        except OSError as error:
            raise EdgespecError(
                f"The record of '{shown(name, 80)}' cannot be deleted"
                f" ({shown(error.strerror or error)}); check the folder {shown(_records())}."
            ) from error
    with contextlib.suppress(OSError):
        _mark_of(name).unlink(missing_ok=True)


def mark_used(name: str) -> None:
    """Note that a pair is used now; where that cannot be written, nothing happens."""
    with contextlib.suppress(OSError, ValueError):
        mark = _mark_of(name)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def last_used(name: str) -> float | None:
    """When a pair was used last, in seconds since 1970; None if never."""
    try:
        return _mark_of(name).stat().st_mtime
    except (OSError, ValueError):
        return None


def used_names() -> tuple[str, ...]:
    """The names that were used, the last one first."""
    times: list[tuple[float, str]] = []
    with contextlib.suppress(OSError):
        for mark in os.scandir(data_dir() / "used"):
            with contextlib.suppress(OSError):
                times.append((mark.stat().st_mtime, unquote(mark.name)))
    return tuple(name for _, name in sorted(times, reverse=True))


def now() -> float:
    """Seconds since 1970, for `pulled`."""
    return time.time()


def _records() -> Path:
    return data_dir() / "pairs"


def _record_files() -> list[Path]:
    try:
        with os.scandir(_records()) as entries:
            return sorted(Path(e.path) for e in entries if e.name.endswith(".json"))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _read(file: Path) -> InstalledPair:
    """Raises: OSError; ValueError and what _from_json raises for anything but a record."""
    status = file.stat()
    # a pipe would never end, and a device need not
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_RECORD:
        raise ValueError
    pair = _from_json(json.loads(file.read_bytes()))
    if file.name != _file_of(pair.name).name:  # forgetting it would delete another record
        raise ValueError
    return pair


def _unreadable(path: Path, error: OSError) -> str:
    reason = shown(error.strerror or error)
    return f"{shown(path)} cannot be read ({reason}); check its permissions."


def _file_of(name: str) -> Path:
    return _records() / f"{_file_name(name)}.json"


def _mark_of(name: str) -> Path:
    return data_dir() / "used" / _file_name(name)


def _file_name(name: str) -> str:
    # a slash or a colon is no part of a file's name everywhere
    whole = quote(name.casefold(), safe="").replace(".", "%2E")
    if len(whole) <= _LONGEST_FILE_NAME:
        return whole
    return whole[:_LONGEST_FILE_NAME] + hashlib.blake2b(whole.encode(), digest_size=8).hexdigest()


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    folder = _records()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".lock", timeout=_PATIENCE_S):
            yield
    except Timeout as error:
        raise EdgespecError(
            f"Another edgespec has been writing to {shown(folder)} for {_PATIENCE_S:.0f} seconds;"
            " try again when it is done."
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise EdgespecError(
            f"{shown(folder)} cannot be used ({shown(reason)}); make room or check its permissions."
        ) from error


def _set_aside(file: Path) -> str:
    aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
    name = shown(unquote(file.stem), 80)
    try:
        file.rename(aside)
    except OSError:
        return f"The record of '{name}' is damaged: {shown(file)}; move it away and pull it again."
    return f"The record of '{name}' is damaged and was set aside as {shown(aside)}; pull it again."


def _to_json(pair: InstalledPair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "format": pair.format,
        "pulled": pair.pulled,
        "target": _model_to_json(pair.target),
        "draft": None if pair.draft is None else _model_to_json(pair.draft),
    }


def _model_to_json(model: InstalledModel) -> dict[str, Any]:
    files = [str(file) for file in model.files]
    return {"repo": model.repo, "commit": model.commit, "files": files, "size": model.size}


def _from_json(found: Mapping[str, Any]) -> InstalledPair:
    """Raises: KeyError, TypeError, ValueError for anything but a record."""
    draft, pulled = found["draft"], found["pulled"]
    if type(pulled) not in (int, float) or not 0 <= pulled < _LATEST:
        raise ValueError
    if found["format"] not in FORMATS or not _is_name(found["name"]):
        raise ValueError
    return InstalledPair(
        found["name"],
        found["format"],
        _model_from_json(found["target"]),
        None if draft is None else _model_from_json(draft),
        float(pulled),
    )


def _model_from_json(found: Mapping[str, Any]) -> InstalledModel:
    files = tuple(Path(file) for file in found["files"])
    if not files or not all(file.is_absolute() for file in files):
        raise ValueError
    if any(b"\0" in os.fsencode(file) for file in files):  # no file can be called so
        raise ValueError
    if not (_is_name(found["repo"]) and _is_name(found["commit"])):
        raise ValueError
    size = found["size"]
    if type(size) is not int or not 0 <= size < _LARGEST_MODEL:
        raise ValueError
    return InstalledModel(found["repo"], found["commit"], files, size)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and value.isprintable()
