"""Connections to the history's file, and what is wrong with a file that cannot be used."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from edgespec.errors import BadInput
from edgespec.history import schema
from edgespec.history.place import is_plain_file, make_file, set_aside
from edgespec.models.shown import shown

_MOST_CHECKED: Final = 64 * 2**20  # bytes; a larger file would be checked for seconds
_DAMAGE: Final = frozenset({sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT})
PATIENCE_MS: Final = 5000  # with another process that writes
_SETTINGS: Final = (
    f"PRAGMA busy_timeout = {PATIENCE_MS}",
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",  # nothing of a history in memory is to reach the disk
    "PRAGMA secure_delete = ON",  # what was deleted is not to be read in the file
)
_TABLES: Final = {"conversations", "messages"}


def connect(path: Path) -> tuple[sqlite3.Connection, list[str]]:
    """A connection to a file of the present version, and what the user should know.

    A file that is damaged, or no history, is set aside, and a new one begins. Nobody else may be
    opening it. Raises: BadInput for one of a newer version; OSError and sqlite3.Error where the
    disk refuses.
    """
    notes: list[str] = []
    if fault := _fault(path):
        notes.append(set_aside(path, fault))
    make_file(path)
    connection = _connection(path.absolute().as_uri(), writable=True)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        schema.bring_up_to_date(connection)
    except BaseException:
        connection.close()
        raise
    return connection, notes


def connect_read_only(path: Path) -> sqlite3.Connection | None:
    """A connection where nothing can be written; None where there is nothing to read.

    Raises: as connect().
    """
    for how in ("", "&immutable=1"):  # the latter where not even SQLite's own files can be made
        try:
            connection = _connection(f"{path.absolute().as_uri()}?mode=ro{how}")
        except sqlite3.Error:
            continue
        try:
            if _pragma(connection, "user_version") == schema.VERSION:
                return connection
        except sqlite3.Error:
            pass
        connection.close()
    return None


def connect_in_memory() -> sqlite3.Connection:
    """An empty history that no file holds."""
    connection = _connection("file::memory:", writable=True)
    schema.bring_up_to_date(connection)
    return connection


def is_damage(error: sqlite3.Error) -> bool:
    """Whether it is the file's content that is wrong, and not the disk or another process."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _connection(uri: str, *, writable: bool = False) -> sqlite3.Connection:
    """Raises: sqlite3.Error."""
    # check_same_thread: the garbage collector closes a connection from any thread
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.text_factory = _text
        connection.create_function("folded", 1, _folded, deterministic=True)
        for setting in _SETTINGS:
            connection.execute(setting)
        if not writable:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _folded(text: object) -> str:
    """What a column holds may be of any kind."""
    return _text(text).casefold() if isinstance(text, bytes) else str(text or "").casefold()


def _fault(path: Path) -> str:
    """Why a file cannot be used; empty where it can. Nothing is changed.

    Raises: BadInput for one of a newer version; OSError, sqlite3.Error.
    """
    try:
        if not is_plain_file(path):
            return "it is no file of its own; EDGESPEC_DATA_DIR moves the history"
    except FileNotFoundError:
        return ""
    # where nobody has the file open, SQLite need not put files of its own beside it
    in_use = os.path.lexists(path.with_name(f"{path.name}-wal"))
    how = "" if in_use else "&immutable=1"
    connection = _connection(f"{path.absolute().as_uri()}?mode=ro{how}")
    try:
        return _inspected(connection, path)
    except sqlite3.Error as error:
        if is_damage(error):
            return str(error)
        raise
    finally:
        connection.close()


def _inspected(connection: sqlite3.Connection, path: Path) -> str:
    """The fault of a file that SQLite can open."""
    version = _pragma(connection, "user_version")
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    if not names and version == 0:
        return ""
    if _pragma(connection, "application_id") != schema.APPLICATION:
        return "another program made it"
    if version > schema.VERSION:
        raise BadInput(
            f"The history {shown(path)} was written by a newer edgespec (version {version} of its"
            f" tables, this one knows {schema.VERSION}); update edgespec, or use --no-history."
        )
    if version < 1 or not names >= _TABLES:
        return "its tables are not those of a history"
    if path.stat().st_size > _MOST_CHECKED:
        return ""
    told = [str(line) for (line,) in connection.execute("PRAGMA quick_check(10)")]
    # the index for searching is mended where it is used
    sound = all(line == "ok" or line.startswith("malformed inverted index") for line in told)
    return "" if sound else "its content is damaged"


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
