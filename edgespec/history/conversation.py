"""One conversation: a tree of messages in memory, every change of which is written at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edgespec.history.saved import Attachment, Saved, State


class Conversation:
    """A tree of messages and the one its user looks at, the head."""

    id: int  # 0 until the first message is kept
    title: str
    system: str

    @property
    def path(self) -> tuple[Saved, ...]:
        """From the first message to the head."""
        raise NotImplementedError

    def say(self, content: str, attachments: Sequence[Attachment] = ()) -> Saved:
        """A user's message behind the head."""
        raise NotImplementedError

    def begin_answer(
        self, model: str, seed: int | None, branch: int = 0, *, beside: int | None = None
    ) -> Saved:
        """An empty answer to the head. beside: to the message that this answer answers."""
        raise NotImplementedError

    def write(self, id: int, content: str, ids: Sequence[int]) -> None:
        """What there is of an answer, while it is being written."""
        raise NotImplementedError

    def finish(
        self, id: int, content: str, ids: Sequence[int], state: State, stats: Mapping[str, Any]
    ) -> Saved:
        """The end of an answer."""
        raise NotImplementedError

    def edit(self, id: int, content: str, attachments: Sequence[Attachment] = ()) -> Saved:
        """A sibling of a user's message, and now the head."""
        raise NotImplementedError

    def siblings(self, id: int) -> tuple[int, ...]:
        """The messages that stand where this one stands, itself included, oldest first."""
        raise NotImplementedError

    def switch(self, id: int) -> None:
        """Go to this message, and down to the newest one below it."""
        raise NotImplementedError

    def rename(self, title: str) -> None:
        """Give it a title; an empty one gives it back its first line."""
        raise NotImplementedError

    def set_system(self, text: str) -> None:
        """The system prompt from now on."""
        raise NotImplementedError
