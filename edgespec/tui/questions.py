"""Small questions in front of a screen: yes or no, and a line of text."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static

_BOX = """
{name} {{
    align: center middle;
    background: $background 70%;

    & > Vertical {{
        width: 64;
        max-width: 100%;
        height: auto;
        padding: 0 2;
        border: round $primary;
        border-title-color: $primary;
        border-subtitle-color: $quiet;
        background: $background;
    }}
    & Horizontal {{ height: 1; margin-top: 1; }}
    & Button {{ margin-right: 2; }}
}}
"""


class Confirm(ModalScreen[bool]):
    """A question; what is pressed by accident is no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes", show=False),
        Binding("n,escape", "answer(False)", "No", show=False),
        Binding("left,right", "app.focus_next", "The other", show=False),
    ]
    DEFAULT_CSS = _BOX.format(name="Confirm")
    AUTO_FOCUS = "#no"

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_subtitle = "y yes · Esc no"
            yield Static(Content(self._question))
            with Horizontal():
                yield Button("Yes", id="yes", compact=True)
                yield Button("No", id="no", compact=True)

    def on_button_pressed(self, message: Button.Pressed) -> None:
        self.dismiss(message.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class AskText(ModalScreen[str | None]):
    """A line of text; None where the user leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Leave", show=False)]
    DEFAULT_CSS = _BOX.format(name="AskText")

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = "Enter takes it · Esc leaves it"
            yield Input(self._text, compact=True)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self.dismiss(message.value.strip() or None)

    def action_leave(self) -> None:
        self.dismiss(None)
