"""Conversations that are kept: a new one, an older one, its title, its file, its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.errors import BadInput, NotFound
from edgespec.models.shown import shown
from edgespec.tui.file_names import free_file_name

if TYPE_CHECKING:
    from edgespec.history import Conversation, History


class Shelf:
    """The history, and which of its conversations is open. opened: told of another one."""

    def __init__(self, history: History, opened: Callable[[Conversation], None]) -> None:
        self.history = history
        self._opened = opened
        self.current = history.new()

    def new(self, system: str) -> None:
        """Begin a conversation; it is kept from its first message on."""
        self._open(self.history.new(system))

    def open(self, id: int) -> None:
        """Raises: NotFound."""
        if id != self.current.id:
            self._open(self.history.load(id))

    def reopen_latest(self) -> bool:
        """Open what was changed last; False where nothing was kept yet."""
        latest = self.history.recent(1)
        if latest:
            self.open(latest[0].id)
        return bool(latest)

    def rename(self, id: int, title: str) -> str:
        """Give a conversation a title. Raises: NotFound; BadInput while there is nothing in it."""
        if id == 0:
            raise BadInput("nothing was said yet; a conversation has a title from then on")
        kept = self.current if id == self.current.id else self.history.load(id)
        kept.rename(title)
        return f"renamed to {shown(title)}"

    def delete(self, id: int) -> str:
        """Raises: NotFound."""
        if id == 0:
            raise BadInput("nothing was said yet; there is nothing to delete")
        self.history.delete(id)
        return "deleted"

    def export(self, id: int, path: str) -> str:
        """Write a conversation to a new file that only its owner reads; says where it lies.

        path: "" = a file of the working folder, called by the title that is open and the day.

        Raises: EdgespecError where that cannot be; NotFound.
        """
        if id == 0:
            raise NotFound("nothing was said yet; there is nothing to export")
        path = path or free_file_name(self.current.title)
        try:
            file = Path(path).expanduser().absolute()
            self.history.export(id, file)
        except FileExistsError:
            raise BadInput(f"{shown(path)} is there already; give another name") from None
        except RuntimeError as error:  # of a ~user that nobody is
            raise BadInput(f"{shown(path)} cannot be written ({shown(error)})") from error
        return f"written to {shown(file)}"

    def _open(self, conversation: Conversation) -> None:
        self.current = conversation
        self._opened(conversation)
