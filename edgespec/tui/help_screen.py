"""All keys, and what the marks mean."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

KEYS = (
    ("Enter", "send"),
    ("Ctrl+J", "new line"),
    ("↑ ↓", "earlier inputs, at first and last line"),
    ("PgUp PgDn", "scroll the conversation"),
    ("Esc", "stop the answer"),
    ("Ctrl+C", "copy a selection; else stop; twice: quit"),
    ("Ctrl+T", "token marks on and off"),
    ("Ctrl+S", "show mode: draft even if it costs"),
    ("Ctrl+N", "new chat"),
    ("Ctrl+P", "more, colours too"),
    ("F1", "this help"),
)
MARKS = (
    ("accepted", "on $token-accepted", "guessed, and the model agreed"),
    ("correction", "underline $token-correction", "the model's own, where a guess was wrong"),
    ("bonus", "bold $token-bonus", "the model's own, after only right guesses"),
    ("⟨rejected⟩", "strike $token-rejected", "a wrong guess, shown for a moment"),
    ("plain", "", "nothing was guessed here"),
)
_COLUMN = 13


class HelpScreen(ModalScreen[None]):
    """Closes with Esc, F1, Enter or q."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,f1,enter,q", "dismiss_help", "Close", show=False),
    ]
    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        background: $background 70%;

        & > VerticalScroll {
            width: 64;
            max-width: 100%;
            height: auto;
            max-height: 100%;
            padding: 0 2;
            border: round $primary;
            border-title-color: $primary;
            border-subtitle-color: $quiet;
            background: $background;
            scrollbar-size-vertical: 1;
        }
    }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "keys and marks"
            box.border_subtitle = "Esc closes"
            yield Static(id="help", markup=False)

    def on_mount(self) -> None:
        lines = [
            Content.assemble((f"{key:<{_COLUMN}}", "$primary"), meaning) for key, meaning in KEYS
        ]
        lines.append(Content(""))
        for sample, style, meaning in MARKS:
            gap = " " * (_COLUMN - len(sample))
            lines.append(Content.assemble((sample, style), gap, meaning))
        self.query_one("#help", Static).update(Content("\n").join(lines))

    def action_dismiss_help(self) -> None:
        self.dismiss()
