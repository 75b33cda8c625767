"""One conversation: a tree of messages in memory, every change of which is written at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from edgespec.errors import BadInput
from edgespec.history.saved import VOCABULARY, Attachment, Saved, State
from edgespec.history.store import Sheet, Store, Unkept
from edgespec.history.tree import Tree

_LONGEST_TITLE: Final = 80
_LONGEST_NAME: Final = 200  # a title that the user gave
T = TypeVar("T")


class Conversation:
    """A tree of messages and the one its user is at, the head.

    Should it not be possible to write it (any more), it goes on in memory: no method raises for
    that, and whoever made it is told once.
    """

    def __init__(
        self,
        store: Store,
        sheet: Sheet,
        tree: Tree,
        unkept: Callable[[Conversation, Unkept], int],
    ) -> None:
        """unkept: is told, and gives the number of a conversation that has none."""
        self._store, self._sheet, self._tree = store, sheet, tree
        self._unkept = unkept
        self._kept = True
        self._numbers = iter(range(-1, -(2**62), -1))  # of messages that are not kept

    @property
    def id(self) -> int:
        """0 until there is a message; below 0 where it is in memory only."""
        return self._sheet.id

    @property
    def title(self) -> str:
        """The first line of the first message, until it is given another one."""
        return self._sheet.title

    @property
    def system(self) -> str:
        return self._sheet.system

    @property
    def path(self) -> tuple[Saved, ...]:
        """From the first message to the head."""
        return self._tree.path

    @property
    def messages(self) -> tuple[Saved, ...]:
        """Of all branches, oldest first."""
        return tuple(self._tree)

    def say(self, content: str, attachments: Sequence[Attachment] = ()) -> Saved:
        """A user's message behind the head."""
        return self._said(self._tree.head, content, attachments)

    def edit(self, id: int, content: str, attachments: Sequence[Attachment] = ()) -> Saved:
        """A sibling of a user's message, and now the head. Raises: BadInput for an answer."""
        if self._tree[id].role != "user":
            raise BadInput("An answer cannot be edited; edit the message before it.")
        return self._said(self._tree[id].parent, content, attachments)

    def begin_answer(
        self,
        model: str,
        seed: int | None,
        branch: int = 0,
        *,
        beside: int | None = None,
        vocabulary: str | None = None,
    ) -> Saved:
        """An empty answer to the head, and now the head.

        beside: to what this answer answers. vocabulary: digest of the model's; None = not known.
        Raises: BadInput where there is no message of the user to answer.
        """
        asked = self._tree.head if beside is None else self._tree[beside].parent
        if asked is None or self._tree[asked].role != "user":
            raise BadInput("There is no message to answer here; say something first.")
        stats = {} if vocabulary is None else {VOCABULARY: vocabulary}
        message = Saved(
            0, asked, "assistant", "", (), State.WRITING, (), stats, model, seed, branch,
            time.time(),
        )  # fmt: skip
        return self._add(message)

    def write(self, id: int, content: str, ids: Sequence[int]) -> None:
        """What there is of an answer, while it is being written."""
        now = replace(self._tree[id], content=content, ids=tuple(ids), state=State.WRITING)
        self._tree.replace(now)
        try:
            self._keep_answer(now)
        except Unkept as fault:
            if not fault.passing:  # else the next write brings all of it
                self._go_on_in_memory(fault)

    def finish(
        self, id: int, content: str, ids: Sequence[int], state: State, stats: Mapping[str, Any]
    ) -> Saved:
        """The end of an answer. stats: are added to what was known when it began."""
        begun = self._tree[id]
        stats = {**begun.stats, **stats}
        end = replace(begun, content=content, ids=tuple(ids), state=state, stats=stats)
        self._tree.replace(end)
        self._try(lambda: self._keep_answer(end))
        return end

    def siblings(self, id: int) -> tuple[int, ...]:
        """The messages that stand where this one stands, itself included, oldest first."""
        return self._tree.siblings(id)

    def switch(self, id: int) -> None:
        """Go to this message, and down to the newest one below it."""
        self._tree.head = head = self._tree.newest_below(id)
        self._try(lambda: self._store.set_head(self.id, head))

    def rename(self, title: str) -> None:
        """Give it a title; an empty one gives back its first line."""
        given = " ".join(title.split())[:_LONGEST_NAME].rstrip()
        first = next(iter(self._tree), None)
        self._sheet.named = bool(given)
        self._sheet.title = given or (_first_line(first.content) if first else "")
        if self.id:
            self._try(lambda: self._store.set_title(self._sheet))

    def set_system(self, text: str) -> None:
        """The system prompt from now on."""
        self._sheet.system = text
        if self.id:
            self._try(lambda: self._store.set_system(self._sheet))

    def _said(self, parent: int | None, content: str, attachments: Sequence[Attachment]) -> Saved:
        if not self._sheet.named and not self._sheet.title:
            self._sheet.title = _first_line(content)
        attached = tuple(attachments)
        return self._add(
            Saved(
                0, parent, "user", content, attached, State.WHOLE, (), {}, "", None, 0, time.time()
            )
        )

    def _add(self, message: Saved) -> Saved:
        self._sheet.created_s = self._sheet.created_s or message.created_s
        numbers = self._try(lambda: self._store.add(self._sheet, message))
        self._sheet.id, id = numbers or (self.id, next(self._numbers))
        added = replace(message, id=id)
        self._tree.add(added)
        return added

    def _keep_answer(self, message: Saved) -> None:
        if self._kept:
            self._store.update(self.id, message)

    def _try(self, change: Callable[[], T]) -> T | None:
        """What a change of the store gave; None where it is not kept."""
        if not self._kept:
            return None
        try:
            return change()
        except Unkept as fault:
            self._go_on_in_memory(fault)
            return None

    def _go_on_in_memory(self, fault: Unkept) -> None:
        self._kept = False
        number = self._unkept(self, fault)
        self._sheet.id = self._sheet.id or number


def _first_line(text: str) -> str:
    """The first line that says something, cut to a title."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    line = next(filter(None, lines), "")
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1].rstrip() + "…"
