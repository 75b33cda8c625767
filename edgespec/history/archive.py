"""All conversations that are kept, in one SQLite file."""

from __future__ import annotations

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edgespec.errors import EdgespecError, NotFound
from edgespec.history import database, export
from edgespec.history.conversation import Conversation
from edgespec.history.place import FileAt, history_path, opening
from edgespec.history.saved import Summary
from edgespec.history.schema import MOST_INDEXED
from edgespec.history.search import Words
from edgespec.history.store import Gone, Sheet, Store, Unkept
from edgespec.history.tree import Tree
from edgespec.models.shown import shown
from edgespec.text.documents import Document, with_documents

if TYPE_CHECKING:
    from edgespec.text.template import Message

_ALL: Final = -1


class History:
    """Conversations, the last changed first. For one thread; several processes may share a file.

    Where the disk refuses, conversations go on in memory until `close`, and a note says so.
    """

    def __init__(self, store: Store, notes: Sequence[str] = ()) -> None:
        self._store = store
        self._notes = list(notes)
        self._tell: Callable[[str], object] = lambda _: None
        self._unkept: dict[int, Conversation] = {}
        self._numbers = itertools.count(-1, -1)  # of conversations that never were kept

    @classmethod
    def open(cls, path: Path | None = None) -> History:
        """The user's history, or the one at `path`; made where there is none.

        A file that is damaged or no history is set aside. Raises: BadInput for a file of a newer
        version.
        """
        path = history_path() if path is None else path
        try:
            with opening(path):
                connection, notes = database.connect(path)
                file = FileAt.now(path)
            history = cls(Store(connection, f"The history {shown(path)}", file), notes)
            history._store.end_unfinished()
        except (OSError, sqlite3.Error, Unkept) as fault:
            return cls._without_writing(path, fault)
        return history

    @classmethod
    def existing(cls) -> History:
        """The user's history to read in; where there is none, nothing is made."""
        return cls.open() if os.path.lexists(history_path()) else cls.in_memory()

    @classmethod
    def in_memory(cls) -> History:
        """One that is gone at the end."""
        return cls(Store(database.connect_in_memory(), "The history"))

    @classmethod
    def _without_writing(cls, path: Path, fault: Exception) -> History:
        name = f"The history {shown(path)}"
        reason = shown(getattr(fault, "strerror", None) or fault)
        why = str(fault) if isinstance(fault, Unkept) else f"{name} cannot be written ({reason})"
        note = f"{why}, so nothing is kept."
        connection = database.connect_read_only(path)
        if connection is None:
            return cls(Store(database.connect_in_memory(), "The history"), [note])
        return cls(Store(connection, name), [note])

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, so far."""
        return tuple(self._notes)

    def listen(self, tell: Callable[[str], object]) -> None:
        """Tell the notes there are, and each one that comes later, such as of a full disk."""
        self._tell = tell
        for note in self._notes:
            tell(note)

    def recent(self, limit: int, offset: int = 0) -> list[Summary]:
        """limit: -1 for all."""
        unkept = [_summary(c) for c in self._unkept.values()]
        return self._merged(unkept, self._store.recent(_ALL if limit < 0 else limit, offset))

    def search(self, text: str, limit: int) -> list[Summary]:
        """Where one message, or the title, holds every word of `text`."""
        words = Words.of(text)
        if not words.words:
            return []
        found = self._store.found(*words.hits(), MOST_INDEXED, limit)
        unkept = [
            _summary(c)
            for c in self._unkept.values()
            if words.in_all([c.title, *(m.content for m in c.messages)])
        ]
        return [replace(s, snippet=words.snippet(s.snippet)) for s in self._merged(unkept, found)]

    def inputs(self, limit: int) -> list[str]:
        """The user's last messages, oldest first."""
        return self._store.inputs(limit)[::-1]

    def new(self, system: str = "") -> Conversation:
        """Nothing of it is kept before its first message."""
        return Conversation(self._store, Sheet(system=system), Tree(), self._goes_on_in_memory)

    def load(self, id: int) -> Conversation:
        """Raises: NotFound."""
        if id in self._unkept:
            return self._unkept[id]
        found = self._store.sheet(id)
        if found is None:
            raise NotFound(f"There is no conversation {id}; 'edgespec history list' shows them.")
        sheet, head = found
        tree = Tree(self._store.messages(id), head)
        return Conversation(self._store, sheet, tree, self._goes_on_in_memory)

    def delete(self, id: int) -> None:
        """Raises: NotFound; EdgespecError where the disk refuses."""
        in_memory = self._unkept.pop(id, None) is not None
        try:
            there = id > 0 and self._store.delete(id)
        except Unkept as fault:
            raise EdgespecError(f"{fault}; nothing was deleted.") from fault
        if not there and not in_memory:
            raise NotFound(f"There is no conversation {id}; 'edgespec history list' shows them.")

    def markdown(self, id: int) -> str:
        """The path to the head, to be read. Raises: NotFound."""
        return export.as_markdown(self.load(id))

    def export(self, id: int, file: Path, *, replaces: bool = False) -> None:
        """Write it to a file. Raises: NotFound; as export.write()."""
        export.write(self.load(id), file, replaces=replaces)

    def as_json(self, id: int) -> dict[str, Any]:
        """All branches, with the figures of each answer. Raises: NotFound."""
        return export.as_data(self.load(id))

    def conversations(self) -> Iterator[list[Message]]:
        """What was said last, as the model heard it; the conversation of now first."""
        from edgespec.text.template import Message  # jinja: a chat opens without it

        for summary in self.recent(_ALL):
            conversation = self.load(summary.id)
            system = conversation.system
            told = [Message("system", system)] if system else []
            for message in conversation.path:
                documents = [Document(a.name, a.text) for a in message.attachments]
                told.append(Message(message.role, with_documents(message.content, documents)))
            yield told

    def close(self) -> None:
        self._store.close()

    def _goes_on_in_memory(self, conversation: Conversation, fault: Unkept) -> int:
        number = conversation.id or next(self._numbers)
        self._unkept[number] = conversation
        is_gone = isinstance(fault, Gone)  # this one alone, so of the next one it is told again
        named = f"“{shown(conversation.title)}”" if is_gone else "this conversation"
        note = f"{fault}, so {named} goes on in memory only; export it to keep it."
        if is_gone or note not in self._notes:
            self._notes.append(note)
            self._tell(note)
        return number

    def _merged(self, unkept: Sequence[Summary], kept: Sequence[Summary]) -> list[Summary]:
        """Those in memory hold more than what is kept of them."""
        return [*unkept, *(summary for summary in kept if summary.id not in self._unkept)]


def _summary(conversation: Conversation) -> Summary:
    path = conversation.path
    return Summary(
        conversation.id,
        conversation.title,
        path[-1].created_s if path else 0.0,
        len(conversation.messages),
        path[-1].content if path else "",
    )
