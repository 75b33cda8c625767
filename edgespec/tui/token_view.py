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

from edgespec.text.sanitize import clean
from edgespec.tui.blocks import BlockContent
from edgespec.tui.choosing import Chooser, Chosen
from edgespec.tui.ghosts import SECONDS, Ghost
from edgespec.tui.layout import Manner
from edgespec.tui.painting import COMPONENTS, GUTTER_CELLS, STYLE_SHEET, Brush, overlaid
from edgespec.tui.rendered import MarkdownSetter, code_blocks
from edgespec.tui.transcript import Mark, Place, Spot, Transcript, Voice

_NARROWEST = 8
_PAGES_AHEAD = 2  # how far around the window messages are laid out
_MOST_STRIPS = 4096


class Marking(Enum):
    """Whether tokens show how they came about, and whether they can be chosen."""

    TINT = "tint"
    INSPECT = "inspect"
    OFF = "off"


class TokenView(ScrollView, can_focus=False):
    """A transcript that stays at its end unless the user scrolled up.

    Everything that is added is shown with the next `update_rows`. Whole answers are shown as
    Markdown where that is wanted, but for while tokens can be chosen.
    """

    ALLOW_SELECT = True
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"token-view--{name}" for name in COMPONENTS}
    DEFAULT_CSS = STYLE_SHEET

    following = var(True, toggle_class="-following")

    class TokenSelected(Message):
        """The user chose a token with the mouse or with `move_selection`."""

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
        self._width = self.transcript.width
        self._setter: MarkdownSetter | None = None
        self._brush: Brush | None = None
        self._strips: dict[int, Strip] = {}
        self._ghost: Ghost | None = None
        self._chooser = Chooser(self.transcript)
        self._chosen: Chosen | None = None
        self._lit: dict[int, tuple[int, int]] = {}  # the characters of the chosen token, by line
        self._pressed: Offset | None = None
        self._settling = False

    # what is said

    def begin(self, voice: Voice, key: int | None = None) -> None:
        """Start a block at the end. key: a message's id; only answers with one have tokens to
        choose from."""
        self.transcript.begin(BlockContent(key, voice, whole=False))

    def append(self, text: str, mark: Mark = Mark.PLAIN) -> None:
        """Add a token to the block begun last."""
        self._leave_selection_in(self.transcript.append(text, mark))

    def extend(self, text: str) -> None:
        """Add to the last token, as text that appears once an answer has ended."""
        self._leave_selection_in(self.transcript.extend(text))

    def think(self) -> None:
        """The prompt has opened a thought, in which the block begun last begins."""
        self.transcript.think()

    def end(self, key: int | None = None) -> None:
        """A block is whole; None: the one begun last."""
        anchor = self.transcript.anchor(self.scroll_offset.y)
        self._leave_selection_in(self.transcript.end(key))
        if not self.following:
            self._settle(self.transcript.find(anchor))

    def say(self, voice: Voice, text: str) -> None:
        """Add a block of its own at the end; the one begun last goes on above it."""
        self.transcript.say(voice, text)

    def show(self, blocks: Sequence[BlockContent]) -> None:
        """Replace everything: a conversation was opened, or another branch chosen."""
        self._forget()
        self.transcript.show(blocks)
        self.update_rows(0.0)

    def label(self, key: int, text: str) -> None:
        """Say something about a block, at the edge above it; "" takes it away."""
        self.transcript.label(key, text)

    def haunt(self, text: str, now: float) -> None:
        """Show rejected guesses behind the text for a moment."""
        if self.marking is Marking.OFF or self.app.animation_level == "none":
            return
        self._touch_end()
        self._ghost = Ghost(clean(text, one_line=True), now + SECONDS)

    def code_blocks(self, key: int) -> list[str]:
        """The code of a block's fences, in their order; reasoning left out."""
        block = self.transcript.block(key)
        return [] if block is None else code_blocks(block.answer)

    def _forget(self) -> None:
        self._ghost = None
        self._chosen = None
        self.following = True
        self.screen.clear_selection()

    # how it is shown

    def set_marking(self, marking: Marking) -> None:
        self.marking = marking
        self._ghost = None
        self._brush = None
        self._lay_out_anew()

    def set_rendered(self, rendered: bool) -> None:
        """Whether whole answers are shown as Markdown."""
        self.rendered = rendered
        self._lay_out_anew()

    def set_folded(self, folded: bool) -> None:
        """Whether reasoning is shown as one row."""
        self.folded = folded
        self._lay_out_anew()

    def on_mount(self) -> None:
        self._follow_theme()

    def on_resize(self, event: events.Resize) -> None:
        self._width = max(self.scrollable_content_region.width - GUTTER_CELLS, _NARROWEST)
        if self._width != self.transcript.width:
            self._lay_out_anew()
        else:
            self._settle()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._strips.clear()
        self._brush = None
        if self.is_running:
            self.call_next(self._follow_theme)

    def _follow_theme(self) -> None:
        looks = self._brushed().looks()
        if self._setter is None or self._setter.looks != looks:
            self._setter = MarkdownSetter(looks)
            self._lay_out_anew()

    def _lay_out_anew(self) -> None:
        """Follow another width, theme or wish; what is at the top of the window stays there."""
        if not self.is_attached:
            return
        anchor = self.transcript.anchor(self.scroll_offset.y)
        setter = self._setter if self.rendered and self.marking is not Marking.INSPECT else None
        manner = Manner(self._width, self.folded, setter)
        if manner != self.transcript.manner:
            self.screen.clear_selection()  # it is given in lines
            self.transcript.set_manner(manner)
            self.transcript.take_change()
        self._strips.clear()
        self._settle(None if self.following else self.transcript.find(anchor))
        self._light()
        self.refresh()

    # what changed

    def update_rows(self, now: float) -> None:
        """Bring the screen up to date; called some thirty times a second."""
        if self._ghost is not None and now >= self._ghost.until_s:
            self._touch_end()
            self._ghost = None
        spot = self.transcript.take_change()
        if spot is None:
            return
        for line in [line for line in self._strips if line >= spot.line]:
            del self._strips[line]
        self._settle()
        self._light()
        first = self.transcript.row_number(spot)
        self.refresh_lines(first, max(self.virtual_size.height - first, 1))

    def _touch_end(self) -> None:
        spot = self.transcript.last_written
        if spot is not None:
            self.transcript.touch(spot)

    def _settle(self, top: int | None = None) -> None:
        """Lay out what is near the window. What is seen stays where it is, which is at the end,
        or with the row `top` uppermost."""
        self._settling = True
        transcript, margin = self.transcript, self.size.height * _PAGES_AHEAD
        if self.following:
            top = transcript.height - 1
        row = self.scroll_offset.y if top is None else top
        row = transcript.lay_out_near(max(row, 0), margin)
        # an empty row for air, and for ghosts
        size = Size(transcript.width + GUTTER_CELLS, transcript.height + 1)
        if size != self.virtual_size:
            self.virtual_size = size
        if self.following:
            # forced, because whether there is anything to scroll is known only after the layout
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)
        elif row != self.scroll_offset.y:
            self.scroll_to(y=row, animate=False, force=True)
        self._settling = False

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._settling:
            return
        self.following = self.is_vertical_scroll_end
        if round(old_value) != round(new_value):
            self._settle()

    # choosing tokens

    @property
    def selected(self) -> Chosen | None:
        """The chosen token: its message's key and its number in it."""
        return self._chosen

    def select(self, key: int, index: int) -> None:
        """Choose a token; it is highlighted and brought into view while tokens can be chosen."""
        self._chosen = (key, index)
        self._strips.clear()
        self._light()
        self.refresh()
        if self._lit:
            row = self.transcript.row_number(Spot.at(min(self._lit)))
            if not self.scroll_offset.y <= row < self.scroll_offset.y + self.size.height:
                self.scroll_to(y=row - self.size.height // 2, animate=False, force=True)

    def move_selection(self, tokens: int = 0, rows: int = 0) -> None:
        """Choose the token so many tokens on and rows below; the last one where none is chosen."""
        if self.marking is not Marking.INSPECT:
            return
        chosen = self._chosen
        if tokens or chosen is None:
            chosen = self._chooser.beside(chosen, tokens)
        if rows and self._chosen is not None:
            chosen = self._chooser.below(chosen, rows)
        self._choose(chosen)

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed = event.offset

    def on_click(self, event: events.Click) -> None:
        if self.marking is not Marking.INSPECT or event.offset != self._pressed:
            return
        spot = self.transcript.spot(event.y + self.scroll_offset.y)
        if spot is not None:
            self._choose(self._chooser.at(spot, max(event.x - GUTTER_CELLS, 0)))

    def _choose(self, chosen: Chosen | None) -> None:
        if chosen is not None:
            self.select(*chosen)
            self.post_message(self.TokenSelected(self, *chosen))

    def _light(self) -> None:
        """Find out where the chosen token stands."""
        self._lit = {}
        if self._chosen is not None and self.marking is Marking.INSPECT:
            stretches = self._chooser.stretches(self._chosen)
            self._lit = {s.spot.line: (s.first, s.last) for s in stretches}

    # copying

    def _leave_selection_in(self, number: int | None) -> None:
        """Give up a selection that begins or ends in a block, if any, of which rows have changed:
        it is given in lines."""
        if number is None:
            return
        places = self.text_selection or ()
        if any(place is not None and Spot.at(place.y).block == number for place in places):
            self.screen.clear_selection()

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        start, end = (None if o is None else _place(o) for o in selection)
        return self.transcript.text(start, end), "\n"

    # painting

    def render_line(self, y: int) -> Strip:
        number = y + self.scroll_offset.y
        spot = self.transcript.spot(number)
        line = Spot(len(self.transcript.blocks), 0).line if spot is None else spot.line
        haunted = self._ghost is not None and number == self._ghost_row()
        strip = None if haunted else self._strips.get(line)
        if strip is None:
            segments = [] if spot is None else self._painted(spot)
            if haunted and self._ghost is not None:
                segments = self._haunted(segments, self._ghost)
            width = self.scrollable_content_region.width
            strip = Strip(segments).crop(0, width).extend_cell_length(width, self.rich_style)
            strip = strip.apply_offsets(0, line)
            if not haunted:
                self._keep(line, strip)
        return strip

    def _keep(self, line: int, strip: Strip) -> None:
        if len(self._strips) >= _MOST_STRIPS:
            self._strips.clear()
        self._strips[line] = strip

    def _painted(self, spot: Spot) -> list[Segment]:
        row = self.transcript.row(spot)
        if row is None:
            return []
        brush = self._brushed()
        segments = brush.row(row, self.transcript.width)
        if spot.line in self._lit:
            first, last = self._lit[spot.line]
            if first == last:  # a line end
                segments.append(Segment("⏎", brush.base))
                last += 1
            first, last = first + GUTTER_CELLS, last + GUTTER_CELLS
            segments = overlaid(segments, first, last, brush.style("chosen"))
        return self._selected(segments, spot.line, row.length + GUTTER_CELLS)

    def _selected(self, segments: list[Segment], line: int, length: int) -> list[Segment]:
        selection = self.text_selection
        span = None if selection is None else selection.get_span(line)
        if span is None:
            return segments
        end = length if span[1] == -1 else min(span[1], length)
        style = self.screen.get_component_rich_style("screen--selection")
        return overlaid(segments, span[0], end, style)

    def _ghost_row(self) -> int:
        spot = self.transcript.last_written
        if self._ghost is None or spot is None:
            return 0
        row = self.transcript.row(spot)
        free = self.transcript.width - (0 if row is None else row.cells)
        return self._ghost.row(self.transcript.row_number(spot), free)

    def _haunted(self, segments: list[Segment], ghost: Ghost) -> list[Segment]:
        brush = self._brushed()
        strip = Strip(segments).extend_cell_length(GUTTER_CELLS, brush.base)
        free = self.transcript.width + GUTTER_CELLS - strip.cell_length
        return [*strip, Segment(ghost.cut_to(free), brush.style("rejected"))]

    def _brushed(self) -> Brush:
        if self._brush is None:
            marked = self.marking is not Marking.OFF
            self._brush = Brush(self.rich_style, self._component, marked=marked)
        return self._brush

    def _component(self, name: str) -> Style:
        return self.get_component_rich_style(f"token-view--{name}", partial=True)


def _place(offset: Offset) -> Place:
    return Place(offset.y, max(offset.x - GUTTER_CELLS, 0))
