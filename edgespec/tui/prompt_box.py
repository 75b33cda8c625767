"""Where the user writes: several lines, Enter sends, a paste never does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Protocol

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from edgespec.text.sanitize import clean
from edgespec.tui.completion import Offer
from edgespec.tui.input_history import InputHistory

LONG_PASTE = 10_000  # characters that no one edits in a box of a few lines
_SLOW_TO_CLEAN = 100_000  # characters


class Menu(Protocol):
    """A list of ways to go on that the keys of the box move through while it is open."""

    @property
    def is_open(self) -> bool: ...

    def chosen(self, text: str) -> Offer | None:
        """What Enter takes."""

    def first(self, text: str) -> Offer | None:
        """What Tab takes."""

    def move(self, step: int) -> None: ...

    def close(self) -> None: ...


class PromptBox(TextArea):
    """A text area that grows to a few lines and remembers what was sent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j,shift+enter,alt+enter", "insert_newline", "New line", show=False),
    ]
    DEFAULT_CSS = """
    PromptBox {
        height: auto;
        max-height: 8;
        padding: 0 1;
        border: round $rule;
        border-title-color: $quiet;
        border-subtitle-color: $quiet;
        background: $background;
        scrollbar-size-vertical: 1;

        &:focus { border: round $rule; }
        &.-notice { border-subtitle-color: $warning; border-subtitle-style: bold; }
        & .text-area--placeholder { color: $quiet; }
        &:ansi .text-area--placeholder { text-style: dim; }
    }
    """

    @dataclass
    class Submitted(Message):
        """The user pressed Enter on a text that is not blank, which is no longer in the box.

        Whoever takes it adds it to `inputs`; whoever does not puts it back.
        """

        text: str

    @dataclass
    class PastedLong(Message):
        """Too much was pasted for the box, which does not hold it. text: fit to be shown."""

        text: str

    class TakenBack(Message):
        """Backspace was pressed where there is nothing to delete."""

    def __init__(self, menu: Menu, *, holds: int, id: str | None = None) -> None:
        """holds: characters of a paste; one that is longer becomes a message."""
        super().__init__(
            id=id, highlight_cursor_line=False, placeholder="Ask something", soft_wrap=True
        )
        self.inputs = InputHistory()
        self._menu = menu
        self._holds = holds
        self._refused = ""  # what was put back since something was submitted last

    def put_back(self, text: str) -> None:
        """What was submitted was not taken: it stands before what was typed since, and behind
        what was submitted earlier and was put back, too."""
        before = self._refused if self.text.startswith(self._refused) else ""
        lines = before.split("\n")
        self.insert(text, (len(lines) - 1, len(lines[-1])))
        self._refused = before + text

    def take(self, offer: Offer, *, send: bool) -> None:
        """Put what was offered in place of the text; send: submit it, if it is complete."""
        self.put(offer.text)
        if send and offer.final:
            self.submit()

    def put(self, text: str) -> None:
        """Replace the text; it can be undone."""
        self._replace_via_keyboard(text, (0, 0), self.document.end)
        self.move_cursor(self.document.end)

    def submit(self) -> None:
        """Empty the box and say what was in it: what is typed from now on is another message."""
        if self.text.strip():
            self.post_message(self.Submitted(self.text))
            self._refused = ""
            self.clear()

    async def _on_key(self, event: events.Key) -> None:
        if self._is_mine(event.key):
            event.stop()
            event.prevent_default()
            return
        await super()._on_key(event)

    def _is_mine(self, key: str) -> bool:
        """Whether the key was for the menu, for sending, or for what is attached."""
        if self._menu.is_open and self._is_for_menu(key):
            return True
        if key == "enter":
            self.submit()
        elif key == "backspace" and not self.text:
            self.post_message(self.TakenBack())
        else:
            return False
        return True

    def _is_for_menu(self, key: str) -> bool:
        if key in {"up", "down"}:
            self._menu.move(1 if key == "down" else -1)
        elif key == "escape":
            self._menu.close()
        elif key == "tab" and (offer := self._menu.first(self.text)):
            self.take(offer, send=False)
        elif key == "enter" and (offer := self._menu.chosen(self.text)):
            self.take(offer, send=True)
        else:
            return False
        return True

    async def _on_paste(self, event: events.Paste) -> None:
        # the base class would insert the raw text as well, and a paste may hold escape sequences
        event.prevent_default()
        event.stop()
        if len(event.text) > _SLOW_TO_CLEAN:
            text = await asyncio.to_thread(cleaned, event.text)
        else:
            text = cleaned(event.text)
        if len(text) > self._holds:
            self.post_message(self.PastedLong(text))
        elif result := self._replace_via_keyboard(text, *self.selection):
            self.move_cursor(result.end_location)

    def action_insert_newline(self) -> None:
        self._replace_via_keyboard("\n", *self.selection)

    def action_cursor_up(self, select: bool = False) -> None:
        if select or not self._on_first_row():
            super().action_cursor_up(select)
        else:
            self._recall(self.inputs.older(self.text))

    def action_cursor_down(self, select: bool = False) -> None:
        if select or not self._on_last_row():
            super().action_cursor_down(select)
        else:
            self._recall(self.inputs.newer(self.text))

    def _on_first_row(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    def _on_last_row(self) -> bool:
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        return row == self.wrapped_document.height - 1

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.text = text
            self.move_cursor(self.document.end)


def cleaned(text: str) -> str:
    """As clean(), which is slow at very many lines; no sequence goes on behind a line end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    plain = (line if line.isascii() and line.isprintable() else clean(line) for line in lines)
    return "\n".join(plain)
