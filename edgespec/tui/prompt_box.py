"""Where the user writes: several lines, Enter sends, a paste never does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from edgespec.text.sanitize import clean
from edgespec.tui.input_history import InputHistory


class PromptBox(TextArea):
    """A text area that grows to a few lines and remembers what was sent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+j", "insert_newline", "New line", show=False),
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
        """The user pressed Enter on a text that is not blank."""

        text: str

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id, highlight_cursor_line=False, placeholder="Ask something", soft_wrap=True
        )
        self.inputs = InputHistory()

    def sent(self) -> None:
        """Take the text as sent: remember it and empty the box."""
        self.inputs.add(self.text)
        self.clear()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            if self.text.strip():
                self.post_message(self.Submitted(self.text))
            return
        await super()._on_key(event)

    async def _on_paste(self, event: events.Paste) -> None:
        # the base class would insert the raw text as well, and a paste may hold escape sequences
        event.prevent_default()
        event.stop()
        text = clean(event.text)
        if result := self._replace_via_keyboard(text, *self.selection):
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
            self._recall(self.inputs.newer())

    def _on_first_row(self) -> bool:
        return self.wrapped_document.location_to_offset(self.cursor_location).y == 0

    def _on_last_row(self) -> bool:
        row = self.wrapped_document.location_to_offset(self.cursor_location).y
        return row == self.wrapped_document.height - 1

    def _recall(self, text: str | None) -> None:
        if text is not None:
            self.text = text
            self.move_cursor(self.document.end)
