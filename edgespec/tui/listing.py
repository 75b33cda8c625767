"""Lists whose page keys do nothing until they have rows.

Textual's own look up the row of what is highlighted, and fail where the list was filled so lately,
or has so little room, that there is none yet.
"""

from __future__ import annotations

from contextlib import suppress

from textual.app import App
from textual.command import CommandPalette
from textual.widgets import OptionList


class Listing(OptionList):
    """An option list."""

    def action_page_up(self) -> None:
        with suppress(KeyError):
            super().action_page_up()  # type: ignore[no-untyped-call]

    def action_page_down(self) -> None:
        with suppress(KeyError):
            super().action_page_down()  # type: ignore[no-untyped-call]


class Palette(CommandPalette):
    """The command palette."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError):
            super()._action_command_list(action)


class PaletteApp(App[None]):
    """An app with this palette."""

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(Palette(id="--command-palette"))
