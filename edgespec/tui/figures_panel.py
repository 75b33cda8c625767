"""The panel of figures: how fast, what speculation brings, and where the time goes."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from edgespec.decoding.stats import Stats
from edgespec.tui.figures import Pace, figure_lines
from edgespec.tui.status import Drafting, Situation, Tone


class FiguresPanel(VerticalScroll):
    """The figures of the latest answer; `show` is called a few times a second, seen or not."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"figures-panel--{tone.value}" for tone in Tone}
    DEFAULT_CSS = """
    FiguresPanel {
        width: 48;
        max-width: 100%;
        height: 1fr;
        padding: 0 1;
        border-left: solid $rule;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-color: $rule;
        scrollbar-background: $background;
        background: $background;
        color: $foreground;

        &:focus { border-left: solid $primary; }
        & > Static { height: auto; text-wrap: nowrap; }
        & > .figures-panel--figure { color: $foreground; }
        & > .figures-panel--aside { color: $quiet; }
        & > .figures-panel--warning { color: $warning; text-style: bold; }
        &:ansi > .figures-panel--aside { text-style: dim; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines = Static(markup=False)
        self._stats: Stats | None = None
        self._situation, self._drafting = Situation(), Drafting()
        self._pace = Pace()

    def compose(self) -> ComposeResult:
        yield self._lines

    def show(
        self, stats: Stats | None, situation: Situation, drafting: Drafting | None = None
    ) -> None:
        """stats: of the latest answer, its pace followed from call to call."""
        shown = self._stats, self._situation, self._drafting
        self._stats, self._situation, self._drafting = stats, situation, drafting or Drafting()
        if stats is not None:
            self._pace = self._pace.after(stats)
        if shown != (self._stats, self._situation, self._drafting):
            self._write()

    def on_mount(self) -> None:
        self._write()

    def on_show(self) -> None:
        self._write()

    def on_resize(self, event: events.Resize) -> None:
        self._write()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        if self.is_mounted:
            self._write()

    def _write(self) -> None:
        if not self.display:
            return
        width = self.scrollable_content_region.width
        lines = figure_lines(self._stats, self._pace, self._situation, self._drafting, width)
        styles = {tone: self._style(tone) for tone in Tone}
        text = Content("\n").join(
            Content.assemble(*((text, styles[tone]) for text, tone in line)) for line in lines
        )
        self._lines.update(text)

    def _style(self, tone: Tone) -> Style:
        return self.get_visual_style(f"figures-panel--{tone.value}", partial=True)
