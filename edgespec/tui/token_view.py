"""The conversation on the screen: paints a transcript line by line, and only what changed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Offset, Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from edgespec.tui.blocks import BlockContent
from edgespec.tui.ghosts import SECONDS, Ghost
from edgespec.tui.transcript import Mark, Place, Row, Transcript, Voice

_GUTTERS = {
    Voice.USER: "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT} ",
    Voice.ERROR: "! ",
}
_GUTTER_CELLS = 2
_NARROWEST = 8


class Marking(Enum):
    """Whether tokens show how they came about."""

    TINT = "tint"
    INSPECT = "inspect"
    OFF = "off"


class TokenView(ScrollView, can_focus=False):
    """A transcript that stays at its end unless the user scrolled up."""

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"token-view--{voice.value}" for voice in Voice),
        *(f"token-view--{mark.value}" for mark in Mark if mark is not Mark.PLAIN),
    }
    DEFAULT_CSS = """
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
        & > .token-view--note { color: $quiet; }
        & > .token-view--error { color: $error; }
        & > .token-view--accepted { background: $token-accepted; }
        & > .token-view--correction { color: $token-correction; text-style: underline; }
        & > .token-view--bonus { color: $token-bonus; text-style: bold; }
        & > .token-view--rejected { color: $token-rejected; text-style: strike; }
        &:ansi > .token-view--note { text-style: dim; }
        &:ansi > .token-view--accepted { color: ansi_bright_white; }
    }
    """

    following = var(True, toggle_class="-following")

    class TokenSelected(Message):
        """A token was chosen with the mouse or the keys, while tokens can be inspected."""

        def __init__(self, view: TokenView, key: int, index: int) -> None:
            super().__init__()
            self.view = view
            self.key = key
            self.index = index

        @property
        def control(self) -> TokenView:
            return self.view

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.transcript = Transcript()
        self.marking = Marking.TINT
        self.rendered = True
        self.folded = True
        self.selected: tuple[int, int] | None = None
        self._ghost: Ghost | None = None
        self._strips: dict[int, Strip] = {}
        self._styles: dict[tuple[Voice, Mark], Style] = {}
        self._dirty_from: int | None = None

    def begin(self, voice: Voice, key: int | None = None, *, thinking: bool = False) -> None:
        """Start a block; shown with the next `update_rows`, like everything added.

        key: a message's id. thinking: the prompt has already opened a reasoning section.
        """
        self._touch()
        self.transcript.begin(voice)

    def append(self, text: str, mark: Mark = Mark.PLAIN) -> None:
        """Add text, already safe for a terminal, to the block begun last."""
        self._touch()
        self.transcript.append(text, mark)

    def end(self, key: int | None) -> None:
        """The block is whole: an answer is shown as Markdown where that is wanted."""

    def show(self, blocks: Sequence[BlockContent]) -> None:
        """Replace everything: a conversation was opened, or another branch chosen."""
        self.clear()
        for block in blocks:
            self.begin(block.voice, block.key)
            for text, mark in block.runs:
                self.append(text, mark)
            if block.whole:
                self.end(block.key)

    def retract(self, key: int, tokens: int) -> None:
        """Keep the first `tokens` tokens of a block; what is appended next goes behind them."""

    def label(self, key: int, text: str) -> None:
        """Say something about a block at its first row; "" takes it away."""

    def code_blocks(self, key: int) -> list[str]:
        """The code of a block's fences, in their order."""
        return []

    def set_rendered(self, rendered: bool) -> None:
        """Whether whole answers are shown as Markdown."""
        self.rendered = rendered

    def set_folded(self, folded: bool) -> None:
        """Whether reasoning is shown as one row."""
        self.folded = folded

    def select(self, key: int, index: int) -> None:
        """Choose a token: it is highlighted and scrolled to while tokens can be inspected."""
        self.selected = (key, index)

    def move_selection(self, tokens: int = 0, rows: int = 0) -> None:
        """Choose a token near the chosen one, else near the end; says `TokenSelected`."""

    def say(self, voice: Voice, text: str) -> None:
        """Add a block of its own."""
        self.begin(voice)
        self.append(text)

    def haunt(self, text: str, now: float) -> None:
        """Show rejected guesses behind the text for a moment."""
        if self.marking is Marking.OFF or self.app.animation_level == "none":
            return
        self._touch()
        self._ghost = Ghost(text, now + SECONDS)

    def set_marking(self, marking: Marking) -> None:
        self.marking = marking
        self._ghost = None
        self._repaint()

    def clear(self) -> None:
        self.transcript.clear()
        self._ghost = None
        self.following = True
        self.screen.clear_selection()
        self._dirty_from = 0
        self.update_rows(0.0)
        self._repaint()

    def update_rows(self, now: float) -> None:
        """Bring the screen up to date; called some thirty times a second."""
        if self._ghost is not None and now >= self._ghost.until_s:
            self._touch()
            self._ghost = None
        if self._dirty_from is None:
            return
        first, self._dirty_from = self._dirty_from, None
        count = len(self.transcript.rows) + 1  # an empty row for air, and for ghosts
        for number in range(first, count):
            self._strips.pop(number, None)
        self.virtual_size = Size(self.transcript.width + _GUTTER_CELLS, count)
        self.refresh_lines(first, count - first)
        self._keep_to_end()

    def _keep_to_end(self) -> None:
        if self.following:
            # forced, because whether there is anything to scroll is known only after the layout
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def _touch(self) -> None:
        last = max(len(self.transcript.rows) - 1, 0)
        self._dirty_from = last if self._dirty_from is None else min(last, self._dirty_from)

    def _repaint(self) -> None:
        self._strips.clear()
        self._styles.clear()
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.following = self.is_vertical_scroll_end

    def on_resize(self, event: events.Resize) -> None:
        width = max(self.scrollable_content_region.width - _GUTTER_CELLS, _NARROWEST)
        if width != self.transcript.width:
            following = self.following
            top = self.transcript.offset_of(self.scroll_offset.y)
            self.transcript.rewrap(width)
            self.screen.clear_selection()  # it is given in rows
            self._strips.clear()
            self._dirty_from = 0
            self.update_rows(0.0)
            if not following:
                self.scroll_to(y=self.transcript.row_at(top), animate=False, force=True)
        else:
            self._keep_to_end()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = (None if o is None else _place(o) for o in selection)
        return self.transcript.text(start, end), "\n"

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        strip = self._strips.get(number)
        if strip is None:
            strip = self._painted(number)
            if number < len(self.transcript.rows) - 1:
                self._strips[number] = strip
        return strip

    def _painted(self, number: int) -> Strip:
        rows, width = self.transcript.rows, self.scrollable_content_region.width
        base = self.rich_style
        segments: list[Segment] = []
        if number < len(rows):
            row = rows[number]
            gutter = _GUTTERS.get(row.voice, "  ") if row.opens else "  "
            segments = [Segment(gutter, self._style(row.voice, Mark.PLAIN))]
            segments += [Segment(text, self._style(row.voice, mark)) for text, mark in row.runs]
            segments = self._selected(segments, number, row)
        strip = Strip(segments)
        if self._ghost is not None and number == self._ghost_row():
            strip = self._haunted(strip, self._ghost)
        return strip.crop(0, width).extend_cell_length(width, base).apply_offsets(0, number)

    def _selected(self, segments: list[Segment], number: int, row: Row) -> list[Segment]:
        selection = self.text_selection
        span = None if selection is None else selection.get_span(number)
        if span is None:
            return segments
        length = row.length + _GUTTER_CELLS
        start, end = span[0], length if span[1] == -1 else min(span[1], length)
        style = self.screen.get_component_rich_style("screen--selection")
        painted, at = [], 0
        for text, own, _ in segments:
            first, last = max(start - at, 0), max(end - at, 0)
            pieces = ((text[:first], own), (text[first:last], (own or Style()) + style))
            painted += [Segment(*piece) for piece in (*pieces, (text[max(first, last) :], own))]
            at += len(text)
        return [segment for segment in painted if segment.text]

    def _ghost_row(self) -> int:
        rows = self.transcript.rows
        if self._ghost is None or not rows:
            return 0
        return self._ghost.row(len(rows) - 1, self.transcript.width - rows[-1].cells)

    def _haunted(self, strip: Strip, ghost: Ghost) -> Strip:
        base = self.rich_style
        strip = strip.extend_cell_length(_GUTTER_CELLS, base)
        free = self.transcript.width + _GUTTER_CELLS - strip.cell_length
        style = base + self.get_component_rich_style("token-view--rejected", partial=True)
        return Strip([*strip, Segment(ghost.cut_to(free), style)])

    def _style(self, voice: Voice, mark: Mark) -> Style:
        style = self._styles.get((voice, mark))
        if style is None:
            marked = mark is not Mark.PLAIN and self.marking is Marking.TINT
            name = mark.value if marked else voice.value
            style = self.rich_style + self._component(name)
            self._styles[voice, mark] = style
        return style

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(f"token-view--{name}", partial=True)


def _place(offset: Offset) -> Place:
    return Place(offset.y, max(offset.x - _GUTTER_CELLS, 0))
