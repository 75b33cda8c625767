"""Rows as segments: which style every piece of text has."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style

from edgespec.tui.rendered import Looks
from edgespec.tui.rows import Look, Mark, Row, Voice

GUTTER_CELLS = 2
_GUTTERS = {
    Voice.USER: "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} ",
    Voice.ERROR: "! ",
}
_PARTS = tuple(part.name for part in fields(Looks))
# the names under which a style sheet speaks of what is painted
COMPONENTS = frozenset(
    {
        *(voice.value for voice in Voice),
        *(mark.value for mark in Mark if mark is not Mark.PLAIN),
        *_PARTS,
        "chosen",
        "aside",
    }
)
STYLE_SHEET = """
TokenView {
    height: 1fr;
    padding: 0 1 0 0;
    overflow-x: hidden;
    overflow-y: auto;
    scrollbar-gutter: stable;
    scrollbar-size-vertical: 1;
    scrollbar-color: $rule;
    scrollbar-background: $background;
    background: $background;
    color: $foreground;

    /* a bar that moves with every line costs more than the text */
    &.-following { scrollbar-visibility: hidden; }
    & > .token-view--user { color: $primary; }
    & > .token-view--thought { color: $quiet; text-style: italic; }
    & > .token-view--note { color: $quiet; }
    & > .token-view--aside { color: $quiet; text-style: italic; }
    & > .token-view--error { color: $error; }
    & > .token-view--accepted { background: $token-accepted; }
    & > .token-view--correction { color: $token-correction; text-style: underline; }
    & > .token-view--bonus { color: $token-bonus; text-style: bold; }
    & > .token-view--rejected { color: $token-rejected; text-style: strike; }
    & > .token-view--chosen {
        background: $token-chosen; color: $background; text-style: bold;
    }
    & > .token-view--heading { color: $primary; text-style: bold; }
    & > .token-view--code { background: $code; }
    & > .token-view--fence { background: $code; }
    & > .token-view--link { color: $primary; text-style: underline; }
    & > .token-view--quote { color: $quiet; text-style: italic; }
    & > .token-view--rule { color: $quiet; }
    & > .token-view--bullet { color: $primary; }
    & > .token-view--keyword { color: $syntax-keyword; text-style: bold; }
    & > .token-view--name { color: $syntax-name; }
    & > .token-view--string { color: $syntax-string; }
    & > .token-view--number { color: $syntax-number; }
    & > .token-view--comment { color: $quiet; text-style: italic; }
    &:nocolor > .token-view--accepted { text-style: italic; }
    &:ansi > .token-view--note { text-style: dim; }
    &:ansi > .token-view--accepted { color: ansi_bright_white; text-style: italic; }
    &:ansi > .token-view--chosen { text-style: reverse; }
    &:ansi > .token-view--code { text-style: bold; }
}
"""


class Brush:
    """Paints rows in the styles of one theme.

    styled: the style of a component, on top of the base. marked: whether tokens show how they
    came about.
    """

    def __init__(self, base: Style, styled: Callable[[str], Style], *, marked: bool) -> None:
        self.base = base
        self._styled = styled
        self._marked = marked
        self._styles: dict[tuple[Voice, Look], Style] = {}

    def looks(self) -> Looks:
        """The styles of the parts of Markdown."""
        return Looks(**{part: self._styled(part) for part in _PARTS})

    def style(self, name: str) -> Style:
        return self.base + self._styled(name)

    def row(self, row: Row, width: int) -> list[Segment]:
        """A row with its gutter. width: cells between which and the text an aside is pushed."""
        gutter = _GUTTERS.get(row.voice, "  ") if row.opens else "  "
        segments = [Segment(gutter, self._style(row.voice, Mark.PLAIN))]
        segments += [Segment(text, self._style(row.voice, look)) for text, look in row.runs]
        if row.aside:
            aside = row.aside
            if cell_len(aside) > width:
                aside = set_cell_size(aside, max(width - 1, 0)).rstrip() + "…"
            segments.append(Segment(" " * (width - cell_len(aside)), self.base))
            segments.append(Segment(aside, self.style("aside")))
        return segments

    def _style(self, voice: Voice, look: Look) -> Style:
        style = self._styles.get((voice, look))
        if style is None:
            if isinstance(look, Style):
                style = self.style(voice.value) + look
            else:
                marked = look is not Mark.PLAIN and self._marked
                style = self.style(look.value if marked else voice.value)
            self._styles[voice, look] = style
        return style


def overlaid(segments: Iterable[Segment], first: int, last: int, style: Style) -> list[Segment]:
    """The segments with `style` on top of the characters from `first` up to `last`."""
    painted: list[Segment] = []
    at = 0
    for text, own, _ in segments:
        start, end = max(first - at, 0), max(last - at, 0)
        painted.append(Segment(text[:start], own))
        painted.append(Segment(text[start:end], (own or Style()) + style))
        painted.append(Segment(text[max(start, end) :], own))
        at += len(text)
    return [segment for segment in painted if segment.text]
