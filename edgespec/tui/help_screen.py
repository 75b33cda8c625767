"""All keys and commands, and what the marks mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from edgespec.tui.commands import COMMANDS
from edgespec.tui.keys import HELP
from edgespec.tui.naming import ALL_NAMES

MARKS = (
    ("accepted", "on $token-accepted", "guessed, and the model agreed"),
    ("correction", "underline $token-correction", "the model's own, where a guess was wrong"),
    ("bonus", "bold $token-bonus", "the model's own, after only right guesses"),
    ("⟨rejected⟩", "strike $token-rejected", "a wrong guess, shown for a moment"),
    ("plain", "", "nothing was guessed here"),
)
_COLUMN = 14
_SOURCES = f"{'guessed by':<{_COLUMN}}{', '.join(ALL_NAMES)}"


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
            width: 76;
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
            box.border_title = "keys, commands and marks"
            box.border_subtitle = "Esc closes"
            yield Static(id="help", markup=False)

    def on_mount(self) -> None:
        commands = [
            (f"/{command.name} {command.usage}".rstrip(), command.help) for command in COMMANDS
        ]
        marks = [
            Content.assemble((sample, style), " " * (_COLUMN - len(sample)), meaning)
            for sample, style, meaning in MARKS
        ]
        blank = [Content("")]
        lines = [*_table(HELP), *blank, *_table(commands), *blank, *marks, Content(_SOURCES)]
        self.query_one("#help", Static).update(Content("\n").join(lines))

    def action_dismiss_help(self) -> None:
        self.dismiss()


def _table(rows: Sequence[tuple[str, str]]) -> list[Content]:
    column = max(_COLUMN, *(len(left) + 2 for left, _ in rows))
    return [Content.assemble((f"{left:<{column}}", "$primary"), right) for left, right in rows]
