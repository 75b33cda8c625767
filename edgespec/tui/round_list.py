"""The rounds of one answer on the screen, two lines each, painted as they scroll by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from edgespec.tui.rounds import Fate, Piece, RoundRow, Rounds, in_view

_LINES = 2  # a round takes
_INDENT = 6  # cells: the cursor, the number, and a space
_CURSOR = "▸"
_FEWEST_CELLS = 8  # for a summary beside its times; with fewer, the times go
_MOST_PAINTED = 400  # rounds whose painting is kept
_NONE = "no rounds are known of this answer"
_NOT_YET = "rounds appear here with the next answer"


class RoundList(ScrollView, can_focus=True):
    """Stays at the latest round unless the user went elsewhere. The cursor is a token."""

    class Moved(Message):
        """The user went to another token of the answer `key`."""

        def __init__(self, key: int, index: int) -> None:
            super().__init__()
            self.key, self.index = key, index

    class Entered(Message):
        """The user wants to do something with the token at the cursor."""

    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "round(-1)", "Round before", show=False),
        Binding("down", "round(1)", "Next round", show=False),
        Binding("left", "token(-1)", "Token before", show=False),
        Binding("right", "token(1)", "Next token", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "first", "First round", show=False),
        Binding("end", "last", "Latest round", show=False),
        Binding("enter", "enter", "Choose an alternative", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"round-list--{fate.value}" for fate in Fate),
        "round-list--aside",
        "round-list--cursor",
        "round-list--selected",
    }
    DEFAULT_CSS = """
    RoundList {
        height: 1fr;
        min-height: 4;
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-gutter: stable;
        scrollbar-size-vertical: 1;
        scrollbar-color: $rule;
        scrollbar-background: $background;
        background: $background;
        color: $foreground;

        & > .round-list--accepted { background: $token-accepted; }
        & > .round-list--rejected { color: $token-rejected; text-style: strike; }
        & > .round-list--untested { color: $quiet; }
        & > .round-list--correction { color: $token-correction; text-style: underline; }
        & > .round-list--bonus { color: $token-bonus; text-style: bold; }
        & > .round-list--aside { color: $quiet; }
        & > .round-list--cursor { background: $panel; }
        & > .round-list--selected { text-style: reverse; }
        &:ansi > .round-list--accepted { color: ansi_bright_white; }
        &:ansi > .round-list--aside { text-style: dim; }
        &:ansi > .round-list--untested { text-style: dim; }
    }
    """

    following = var(True)

    def __init__(self, rounds: Rounds, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rounds = rounds
        self.key: int | None = None
        self.cursor: int | None = None
        self._seen = -1
        self._painted: dict[int, tuple[RoundRow, list[Strip]]] = {}
        self._styles: dict[str, Style] = {}

    @property
    def rows(self) -> Sequence[RoundRow]:
        return () if self.key is None else self.rounds.of(self.key)

    def follow(self, key: int) -> None:
        """Show an answer, at its latest round, without a cursor."""
        self.key, self.cursor, self.following = key, None, True
        self._repaint()

    def show_nothing(self) -> None:
        """As before the first answer."""
        self.key, self.cursor, self.following = None, None, True
        self._repaint()

    def go_to(self, key: int, index: int) -> None:
        """Put the cursor on a token, and its round into view."""
        again = (key, index) == (self.key, self.cursor) and self.following
        if key != self.key:
            self.follow(key)
        self.cursor = index
        self.update_rows()
        at = self.rounds.position(key, index)
        if at is not None:
            self._reveal(at)
            self.following = again
        self.refresh()

    def update_rows(self) -> None:
        """Bring the screen up to date with the rounds."""
        if self._seen == self.rounds.version:
            return
        self._seen = self.rounds.version
        self.virtual_size = Size(self._width, _LINES * max(len(self.rows), 1))
        self.refresh()
        self._keep_to_end()

    def _keep_to_end(self) -> None:
        if self.following:
            self.scroll_end(animate=False, force=True, immediate=True, x_axis=False)

    def _repaint(self) -> None:
        self._painted.clear()
        self._seen = -1
        self.update_rows()

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _reveal(self, at: int) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        first = _LINES * at
        if first < top:
            self.scroll_to(y=first, animate=False, force=True)
        elif first + _LINES > top + height:
            self.scroll_to(y=first + _LINES - height, animate=False, force=True)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.following = self.is_vertical_scroll_end

    def on_resize(self, event: events.Resize) -> None:
        self._repaint()
        if not self.following and self._position() < len(self.rows):
            self._reveal(self._position())
            self.following = False

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painted.clear()
        self._styles.clear()

    # what the user does

    def _position(self) -> int:
        """The round at the cursor; the one behind the last where there is none."""
        found = None
        if self.key is not None and self.cursor is not None:
            found = self.rounds.position(self.key, self.cursor)
        return len(self.rows) if found is None else found

    def _move_to(self, index: int) -> None:
        if self.key is not None:
            self.go_to(self.key, index)
            self.post_message(self.Moved(self.key, index))

    def action_round(self, by: int) -> None:
        """To another round; the cursor is on its last token, which is mostly the target's own."""
        rows = self.rows
        if rows:
            at = min(max(self._position() + by, 0), len(rows) - 1)
            self._move_to(max(rows[at].end - 1, rows[at].first))

    def action_token(self, by: int) -> None:
        rows = self.rows
        if rows:
            at = rows[-1].end if self.cursor is None else self.cursor + by
            self._move_to(min(max(at, rows[0].first), rows[-1].end - 1))

    def action_page(self, direction: int) -> None:
        self.action_round(direction * max(self.scrollable_content_region.height // _LINES - 1, 1))

    def action_first(self) -> None:
        self.action_round(-len(self.rows))

    def action_last(self) -> None:
        self.action_round(len(self.rows))
        self.following = True

    def action_enter(self) -> None:
        if self.cursor is not None:
            self.post_message(self.Entered())

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None:
            return
        at, line = divmod(place.y + self.scroll_offset.y, _LINES)
        if at < len(self.rows):
            row = self.rows[at]
            own = max(row.end - 1, row.first)
            self._move_to(self._clicked(row, place.x) if line else own)

    # painting

    def render_line(self, y: int) -> Strip:
        at, line = divmod(y + self.scroll_offset.y, _LINES)
        if at < len(self.rows):
            return self._lines(at)[line]
        note = "" if self.rows or y else _NOT_YET if self.key is None else _NONE
        return self._filled([Segment(note, self._style("aside"))], self.rich_style)

    def _lines(self, at: int) -> list[Strip]:
        row, current = self.rows[at], at == self._position()
        painted = self._painted.get(row.number)
        if painted is not None and painted[0] is row and not current:
            return painted[1]
        base = self.rich_style + self._style("cursor") if current else self.rich_style
        lines = [self._filled(self._head(row, current), base), self._filled(self._tail(row), base)]
        if not current:
            if len(self._painted) >= _MOST_PAINTED:
                self._painted.clear()
            self._painted[row.number] = row, lines
        return lines

    def _filled(self, segments: list[Segment], base: Style) -> Strip:
        """A line on `base`, as wide as the list."""
        styled = [Segment(text, base + style if style else base) for text, style, _ in segments]
        return Strip(styled).crop(0, self._width).extend_cell_length(self._width, base)

    def _head(self, row: RoundRow, current: bool) -> list[Segment]:
        aside = self._style("aside")
        number = f"{_CURSOR if current else ' '}{row.number % 10_000:>4} "
        summary, room = row.summary, self._width - _INDENT - cell_len(row.times) - 2
        if room < _FEWEST_CELLS:
            return [Segment(number, aside), Segment(summary)]
        if cell_len(summary) > room:
            summary = set_cell_size(summary, room - 1) + "…"
        summary = set_cell_size(summary, room)
        return [Segment(number, aside), Segment(summary), Segment(f" {row.times} ", aside)]

    def _tail(self, row: RoundRow) -> list[Segment]:
        pieces = row.pieces
        first, last = self._span(pieces)
        segments = [Segment(" " * _INDENT), Segment("… " if first else "", self._style("aside"))]
        for piece in pieces[first:last]:
            style = self._style(piece.fate.value)
            if piece.stands and piece.index == self.cursor:
                style += self._style("selected")
            segments += [Segment(piece.label, style), Segment(" ")]
        segments.append(Segment("…" if last < len(pieces) else "", self._style("aside")))
        return segments

    def _clicked(self, row: RoundRow, x: int) -> int:
        """The place in the answer of the token at cell `x` of the lower line."""
        pieces = row.pieces
        first, last = self._span(pieces)
        at, index = _INDENT + (2 if first else 0), row.first
        for piece in pieces[first:last]:
            if at <= x:
                index = piece.index
            at += cell_len(piece.label) + 1
        return index

    def _span(self, pieces: Sequence[Piece]) -> tuple[int, int]:
        return in_view(pieces, self._width - _INDENT, self.cursor)

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self.get_component_rich_style(f"round-list--{name}", partial=True)
            self._styles[name] = style
        return style
