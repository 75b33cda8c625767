"""The composer alone in an app; run as a program, it says at its end what it was asked."""

from __future__ import annotations

import json
import sys
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Static

from edgespec.options import AnswerOptions
from edgespec.tui.completion import Sources
from edgespec.tui.composer import Composer
from edgespec.tui.driver import chat_driver
from edgespec.tui.theme import DARK, token_colours

SOURCES = Sources(lambda: ["demo", "qwen"], AnswerOptions)


class ComposerApp(App[None]):
    """Takes what is sent unless it is busy, counts a token a word, and keeps all it hears."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f10", "leave", show=False),
    ]
    CSS = "#above { height: 1fr; }"

    def __init__(self, *, counts: bool = True) -> None:
        super().__init__(driver_class=chat_driver())
        self.register_theme(DARK)
        self.theme = DARK.name
        self.composer = Composer(SOURCES)
        self.heard: list[Message] = []
        self.busy = False
        self._counts = counts

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield Static("above", id="above")
        yield self.composer

    def on_mount(self) -> None:
        self.composer.box.focus()

    def action_leave(self) -> None:
        # what keys before this one asked for may still be under way
        self.set_timer(0.3, self.exit)

    def on_composer_submitted(self, message: Composer.Submitted) -> None:
        self.heard.append(message)
        if self.busy:
            self.composer.put_back(message)
        else:
            self.composer.sent(message)

    def on_composer_asked(self, message: Composer.Asked) -> None:
        self.heard.append(message)

    def on_composer_refused(self, message: Composer.Refused) -> None:
        self.heard.append(message)

    def on_composer_count_wanted(self, message: Composer.CountWanted) -> None:
        if self._counts:
            self.composer.counted(message.tag, len(message.text.split()))


if __name__ == "__main__":
    app = ComposerApp()
    app.run()
    told = {
        "box": app.composer.box.text,
        "attached": [one.text for one in app.composer.attached],
        "submitted": [m.text for m in app.heard if isinstance(m, Composer.Submitted)],
        "asked": [repr(m.command) for m in app.heard if isinstance(m, Composer.Asked)],
    }
    sys.stdout.write(f"told {json.dumps(told)}\n")
