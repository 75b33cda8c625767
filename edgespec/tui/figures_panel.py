"""The panel of figures: how fast, what speculation brings, and where the time goes."""

from __future__ import annotations

from textual.widget import Widget

from edgespec.decoding.stats import Stats
from edgespec.tui.status import Situation


class FiguresPanel(Widget):
    """The figures of the latest answer; `show` is called a few times a second, seen or not."""

    def show(self, stats: Stats | None, situation: Situation) -> None:
        raise NotImplementedError
