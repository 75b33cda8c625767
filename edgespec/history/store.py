"""What is read from and written into the tables."""

from __future__ import annotations

import json
import math
import sqlite3
import struct
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from edgespec.errors import EdgespecError
from edgespec.history.database import PATIENCE_MS, is_damage
from edgespec.history.place import FileAt
from edgespec.history.saved import Attachment, Saved, State, Summary
from edgespec.models.shown import shown

_ANSWER = "role, content, state, ids, stats, model, seed, branch, created_s"
# a column of SQLite holds values of any kind, whatever it is declared as
_READ_ANSWER: Final = """
    CAST(role AS TEXT), CAST(content AS TEXT), CAST(state AS TEXT), CAST(ids AS BLOB),
    CAST(stats AS TEXT), CAST(model AS TEXT), CAST(seed AS INTEGER),
    max(CAST(branch AS INTEGER), 0), CAST(created_s AS REAL)
"""
_SNIPPET: Final = 200
_HARDLY_MS: Final = 20
_MOST_DIGITS: Final = 15  # of a figure; with more it is none of ours
_SUMMARY: Final = """
    SELECT c.id, CAST(c.title AS TEXT), CAST(c.changed_s AS REAL),
        (SELECT count(*) FROM messages WHERE conversation = c.id),
        substr(CAST(m.content AS TEXT), 1, ?)
    FROM conversations c {joined} ORDER BY c.changed_s DESC, c.id DESC LIMIT ? OFFSET ?
"""


class Unkept(EdgespecError):
    """A change that could not be written, and why. passing: another process was in the way."""

    def __init__(self, reason: str, *, passing: bool = False) -> None:
        super().__init__(reason)
        self.passing = passing


class Gone(Unkept):
    """The conversation is there no more."""


@dataclass(slots=True)
class Sheet:
    """A conversation without its messages.

    id: 0 where it is not kept (yet). named: whether its user gave it its title.
    """

    id: int = 0
    title: str = ""
    named: bool = False
    system: str = ""
    created_s: float = 0.0


class Store:
    """The tables, behind one connection.

    Every method that changes something does so in one transaction, and raises Unkept where that
    fails; every other one raises EdgespecError. name: of the file, for messages. file: the one
    that is to be written; None where there is none.
    """

    def __init__(
        self, connection: sqlite3.Connection, name: str, file: FileAt | None = None
    ) -> None:
        self._connection = connection
        self._name = name
        self._file = file
        self.close = weakref.finalize(self, _close, connection, file)

    def add(self, sheet: Sheet, message: Saved) -> tuple[int, int]:
        """A message at the end of a conversation, now its head; with the first the conversation.

        message: its number is not looked at. Returns both numbers.
        """
        with self._change() as run:
            number = (
                sheet.id
                or run(
                    "INSERT INTO conversations (title, named, system, created_s, changed_s)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (*_titles(sheet), _storable(sheet.system), sheet.created_s, message.created_s),
                ).lastrowid
            )
            id = run(
                f"INSERT INTO messages (conversation, parent, {_ANSWER})"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (number, message.parent, message.role, *_written(message), message.created_s),
            ).lastrowid
            for place, attached in enumerate(message.attachments):
                named, text = _storable(attached.name), _storable(attached.text)
                run(
                    "INSERT INTO attachments VALUES (?, ?, ?, ?, ?)",
                    (id, place, named, text, attached.tokens),
                )
            _set_head(run, number, id)
        assert number
        assert id
        return number, id

    def update(self, number: int, message: Saved) -> None:
        """What has become of an answer in conversation `number`.

        One that is being written is written again soon, so that does not wait for others.
        """
        content, state, ids, stats, *_ = _written(message)
        waits_ms = _HARDLY_MS if message.state is State.WRITING else PATIENCE_MS
        with self._change(waits_ms) as run:
            done = run(
                "UPDATE messages SET content = ?, state = ?, ids = ?, stats = ? WHERE id = ?",
                (content, state, ids, stats, message.id),
            )
            _check_there(done)
            run("UPDATE conversations SET changed_s = ? WHERE id = ?", (time.time(), number))

    def set_head(self, number: int, id: int) -> None:
        with self._change() as run:
            _set_head(run, number, id)

    def set_title(self, sheet: Sheet) -> None:
        with self._change() as run:
            done = run(
                "UPDATE conversations SET title = ?, named = ? WHERE id = ?",
                (*_titles(sheet), sheet.id),
            )
            _check_there(done)

    def set_system(self, sheet: Sheet) -> None:
        with self._change() as run:
            done = run(
                "UPDATE conversations SET system = ? WHERE id = ?",
                (_storable(sheet.system), sheet.id),
            )
            _check_there(done)

    def delete(self, number: int) -> bool:
        """Whether it was there. Its words do not stay in the file."""
        with self._change() as run:
            found: int = run("DELETE FROM conversations WHERE id = ?", (number,)).rowcount
            run("INSERT INTO texts (texts) VALUES ('optimize')", ())
        self._read("PRAGMA wal_checkpoint(TRUNCATE)")
        return found > 0

    def end_unfinished(self) -> None:
        """Mark as cut off what nobody is writing any more.

        An answer that another process is still writing is marked otherwise by its next write.
        """
        with self._change() as run:
            run("UPDATE messages SET state = 'cut' WHERE state = 'writing'", ())

    def sheet(self, number: int) -> tuple[Sheet, int | None] | None:
        """A conversation and its head; None where it is not there."""
        rows = self._read(
            "SELECT id, CAST(title AS TEXT), named, CAST(system AS TEXT), CAST(created_s AS REAL),"
            " head FROM conversations WHERE id = ?",
            (number,),
        )
        for id, title, named, system, created_s, head in rows:
            return Sheet(id, title, bool(named), system, created_s), head
        return None

    def messages(self, number: int) -> Iterator[Saved]:
        """All messages of a conversation, oldest first."""
        attached: dict[int, list[Attachment]] = {}
        for message, *rest in self._read(
            "SELECT message, CAST(name AS TEXT), CAST(text AS TEXT), CAST(tokens AS INTEGER)"
            " FROM attachments JOIN messages ON messages.id = message WHERE conversation = ?"
            " ORDER BY message, place",
            (number,),
        ):
            attached.setdefault(message, []).append(Attachment(*rest))
        for id, parent, role, content, state, ids, stats, model, seed, branch, at in self._read(
            f"SELECT id, parent, {_READ_ANSWER} FROM messages WHERE conversation = ? ORDER BY id",
            (number,),
        ):
            yield Saved(
                id, parent, role, content, tuple(attached.get(id, ())), _found(state), _ids(ids),
                _figures(stats), model, seed, branch, at,
            )  # fmt: skip

    def recent(self, limit: int, offset: int) -> list[Summary]:
        """The last changed first, with what their last message begins with."""
        joined = "LEFT JOIN messages m ON m.id = c.head"
        return self._summaries(_SUMMARY.format(joined=joined), (_SNIPPET, limit, offset))

    def found(self, hits: str, values: Sequence[object], most: int, limit: int) -> list[Summary]:
        """Conversations with a message, raw and up to `most` characters of it.

        hits: SQL that gives numbers of conversations and of a message, or NULL, in each.
        """
        joined = (
            "JOIN (SELECT conversation, max(message) AS message FROM hits GROUP BY conversation)"
            " best ON best.conversation = c.id LEFT JOIN messages m ON m.id = best.message"
        )
        sql = f"WITH hits (conversation, message) AS ({hits}) {_SUMMARY.format(joined=joined)}"
        everything = (*values, most, limit, 0)
        try:
            return self._summaries(sql, everything)
        except EdgespecError as error:
            if not self._mended(error.__cause__):
                raise
            return self._summaries(sql, everything)

    def inputs(self, limit: int) -> list[str]:
        """The newest messages of the user, newest first."""
        rows = self._read(
            "SELECT CAST(content AS TEXT) FROM messages WHERE role = 'user'"
            " ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return [content for (content,) in rows]

    def _summaries(self, sql: str, values: Sequence[object]) -> list[Summary]:
        rows = self._read(sql, values)
        return [Summary(id, title, at, count, text or "") for id, title, at, count, text in rows]

    def _read(self, sql: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise EdgespecError(
                f"{self._name} cannot be read ({shown(error)}); if that stays so, move it away."
            ) from error

    @contextmanager
    def _change(self, patience_ms: int = PATIENCE_MS) -> Iterator[Any]:
        """One transaction: all of it or nothing. Others may hold it up for `patience_ms`."""
        connection = self._connection
        if _is_elsewhere(self._file):
            _complete(connection)
            raise Unkept(f"{self._name} was moved, replaced or deleted")
        try:
            connection.execute(f"PRAGMA busy_timeout = {patience_ms}")
            connection.execute("BEGIN IMMEDIATE")
            yield connection.execute
            connection.execute("COMMIT")
        except (sqlite3.Error, OverflowError) as error:  # the latter for a number of over 64 bits
            self._roll_back()
            self._mended(error)  # for the next change
            raise _unkept(error, self._name) from error
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        # a full disk has ended the transaction already
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _mended(self, error: BaseException | None) -> bool:
        """Whether it was the index for searching that was damaged, and was made anew."""
        if not (isinstance(error, sqlite3.Error) and is_damage(error)):
            return False
        try:
            self._connection.execute("INSERT INTO texts (texts) VALUES ('rebuild')")
        except sqlite3.Error:
            return False
        return True


def _close(connection: sqlite3.Connection, file: FileAt | None) -> None:
    if _is_elsewhere(file):
        _complete(connection)
    connection.close()


def _is_elsewhere(file: FileAt | None) -> bool:
    return file is not None and not file.is_there


def _complete(connection: sqlite3.Connection) -> None:
    """Bring all that was written into the file itself, wherever it is now.

    SQLite would leave it in the log at the old place, and take it for one of the new file there.
    """
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _unkept(error: Exception, name: str) -> Unkept:
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
        return _gone()
    passing = code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return Unkept(f"{name} cannot be written ({shown(error)})", passing=passing)


def _gone() -> Gone:
    return Gone("The conversation was deleted by another edgespec")


def _check_there(done: sqlite3.Cursor) -> None:
    if not done.rowcount:
        raise _gone()


def _set_head(run: Any, number: int | None, id: int | None) -> None:
    done = run(
        "UPDATE conversations SET head = ?, changed_s = ? WHERE id = ?", (id, time.time(), number)
    )
    _check_there(done)


def _titles(sheet: Sheet) -> tuple[str, int]:
    return _storable(sheet.title), int(sheet.named)


def _written(message: Saved) -> tuple[object, ...]:
    """The columns from the content to the branch."""
    return (
        _storable(message.content),
        message.state.value,
        struct.pack(f"<{len(message.ids)}i", *message.ids),
        json.dumps(dict(message.stats), default=str),
        _storable(message.model),
        message.seed,
        message.branch,
    )


def _storable(text: str) -> str:
    """The text; half a pair of surrogates, which no file can hold, becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _found(state: str) -> State:
    """Who still writes an answer knows its state; for everybody else it is cut off."""
    return State.WHOLE if state == State.WHOLE else State.CUT


def _ids(data: bytes) -> tuple[int, ...]:
    return () if len(data) % 4 else struct.unpack(f"<{len(data) // 4}i", data)


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def _finite(written: str) -> float | None:
    value = float(written)
    return value if math.isfinite(value) else None


_FIGURES: Final = json.JSONDecoder(
    parse_constant=lambda _: None, parse_int=_whole, parse_float=_finite
)


def _figures(text: str) -> Mapping[str, Any]:
    """The figures of an answer; what is no number of finite size, such as NaN, is None."""
    try:
        found, _ = _FIGURES.raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
