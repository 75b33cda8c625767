"""Where the history lies: a folder and a file for the user alone, and a wrong one set aside."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from filelock import FileLock

from edgespec.models.installed import data_dir
from edgespec.models.shown import shown

_FILE: Final = "history.sqlite3"
_COMPANIONS: Final = ("-wal", "-shm", "-journal")
_PATIENCE_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class FileAt:
    """One file at its place. SQLite goes on writing into one that was moved or deleted."""

    path: Path
    device: int
    number: int

    @classmethod
    def now(cls, path: Path) -> FileAt:
        """Raises: OSError."""
        found = path.stat()
        return cls(path, found.st_dev, found.st_ino)

    @property
    def is_there(self) -> bool:
        try:
            return FileAt.now(self.path) == self
        except OSError:
            return False


def history_path() -> Path:
    """The user's history file, whether or not it is there."""
    return data_dir() / _FILE


@contextmanager
def opening(path: Path) -> Iterator[None]:
    """While one process looks at the file, sets it aside, makes or migrates it, others wait.

    Makes the folder where there is none. Raises: OSError, filelock.Timeout among them.
    """
    make_folder(path.parent)
    if path == history_path() and not os.environ.get("EDGESPEC_DATA_DIR"):
        _tighten(path.parent)  # a folder that the user chose keeps the mode it has
    lock = path.with_name(f"{path.name}.lock")
    with FileLock(lock, timeout=_PATIENCE_S, mode=0o600):
        yield


def make_folder(folder: Path) -> None:
    """Make a folder, and those it lies in, for the user alone, whatever the umask.

    Raises: OSError.
    """
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_folder(folder.parent)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if folder.is_dir():  # another process made it
            return
        raise
    folder.chmod(0o700)


def make_file(path: Path) -> None:
    """Make an empty file for the user alone, whatever the umask; one that is there stays.

    Raises: OSError.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        # not opened: to close it again would drop the locks that SQLite holds on it
        _tighten(path)
        return
    try:
        if os.name == "posix":
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


def is_plain_file(path: Path) -> bool:
    """Whether it is a file of its own, and no link. Raises: OSError."""
    return stat.S_ISREG(path.lstat().st_mode)


def set_aside(path: Path, reason: str) -> str:
    """Rename what lies there, with what SQLite put beside it. Says so in a line.

    Raises: OSError.
    """
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    mores = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    names = (f"{path.stem}.damaged-{now}{more}{path.suffix}" for more in mores)
    kept = next(name for name in map(path.with_name, names) if not os.path.lexists(name))
    path.rename(kept)
    for companion in _COMPANIONS:
        beside = path.with_name(path.name + companion)
        with suppress(FileNotFoundError):
            beside.rename(kept.with_name(kept.name + companion))
    return (
        f"The history {shown(path)} cannot be used ({shown(reason)}), so a new one begins; the old"
        f" one is kept as {shown(kept.name)}."
    )


def _tighten(path: Path) -> None:
    """Take from others what they may; what is not the user's stays as it is."""
    if os.name != "posix":
        return
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid == os.geteuid() and mode & 0o077:
        path.chmod(mode & ~0o077)
