"""All conversations that are kept, in one SQLite file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgespec.history.conversation import Conversation
from edgespec.history.saved import Summary


class History:
    """Conversations, the last changed first. For one thread; several processes may share a file."""

    @classmethod
    def open(cls, path: Path | None = None) -> History:
        """The user's history. Raises: BadInput for a file of a newer version."""
        raise NotImplementedError

    @classmethod
    def in_memory(cls) -> History:
        """One that is gone at the end."""
        raise NotImplementedError

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, so far."""
        raise NotImplementedError

    def listen(self, tell: Callable[[str], object]) -> None:
        """Tell the notes there are, and each one that comes later (such as of a full disk)."""
        raise NotImplementedError

    def recent(self, limit: int, offset: int = 0) -> list[Summary]:
        raise NotImplementedError

    def search(self, text: str, limit: int) -> list[Summary]:
        raise NotImplementedError

    def inputs(self, limit: int) -> list[str]:
        """The user's last messages, oldest first."""
        raise NotImplementedError

    def new(self, system: str = "") -> Conversation:
        """Nothing of it is kept before its first message."""
        raise NotImplementedError

    def load(self, id: int) -> Conversation:
        """Raises: NotFound."""
        raise NotImplementedError

    def delete(self, id: int) -> None:
        raise NotImplementedError

    def markdown(self, id: int) -> str:
        raise NotImplementedError

    def as_json(self, id: int) -> dict[str, Any]:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
