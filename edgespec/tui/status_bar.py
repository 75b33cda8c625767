"""The status line on the screen."""

from __future__ import annotations

from typing import ClassVar

from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from edgespec.tui.status import SEPARATOR, Part, Tone, fitted


class StatusBar(Widget):
    """One line that shows as many parts as fit."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"status-bar--{tone.value}" for tone in Tone}
    DEFAULT_CSS = """
    StatusBar {
        height: 1;
        padding: 0 2;
        background: $background;
        color: $quiet;

        & > .status-bar--figure { color: $foreground; }
        & > .status-bar--aside { color: $quiet; }
        & > .status-bar--warning { color: $warning; text-style: bold; }
        &:ansi { text-style: dim; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: tuple[Part, ...] = ()

    def show(self, parts: list[Part]) -> None:
        if tuple(parts) != self._parts:
            self._parts = tuple(parts)
            self.refresh()

    def render(self) -> Content:
        pieces: list[str | tuple[str, Style]] = []
        for part in fitted(self._parts, self.content_size.width):
            style = self.get_visual_style(f"status-bar--{part.tone.value}", partial=True)
            pieces += [SEPARATOR] if pieces else []
            pieces.append((part.text, style))
        return Content.assemble(*pieces)
