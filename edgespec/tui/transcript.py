"""The conversation as rows: what is shown, without how it is painted.

Messages are laid out when they come near the window; until then their heights are estimates. So
rows are named in two ways: by their number from the top, which changes when estimates become
known, and by their line, which stays: it counts within the message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from edgespec.text.sanitize import clean
from edgespec.tui.blocks import Block, BlockContent
from edgespec.tui.layout import Manner
from edgespec.tui.rows import Mark, Row, Voice

__all__ = ["Mark", "Place", "Row", "Spot", "Transcript", "Voice"]

_LINES = 1 << 20  # lines that a message may have before its last ones share their names


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line, and a character in it."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A row of a block, the head counted."""

    block: int
    row: int

    @property
    def line(self) -> int:
        return self.block * _LINES + min(self.row, _LINES - 1)

    @classmethod
    def at(cls, line: int) -> Spot:
        return cls(*divmod(line, _LINES))


@dataclass(frozen=True, slots=True)
class Anchor:
    """What stands in a row, so that it is found again when rows fall otherwise.

    share   how far down in its block, from 0 to 1.
    place   of the row in the text of its block, where it has one.
    """

    block: int
    share: float
    place: int | None


class Transcript:
    """All that was said, laid out in one manner."""

    def __init__(self, width: int = 80) -> None:
        self.manner = Manner(width)
        self.blocks: list[Block] = []
        self._open: Block | None = None
        self._numbers: dict[int, int] = {}
        self._heights: list[int] = []
        self._tops: list[int] | None = None
        self._changed: Spot | None = None

    @property
    def width(self) -> int:
        return self.manner.width

    # what is said

    def begin(self, content: BlockContent) -> None:
        """Start a block at the end; what is appended goes there until another one begins.

        Blocks stand apart by an empty row, notes among themselves do not.
        """
        self._open = self._add(content)

    def say(self, voice: Voice, text: str) -> None:
        """Add a block of its own; the one begun last stays open."""
        self._add(BlockContent(None, voice, ((text, Mark.PLAIN),)))

    def show(self, contents: Iterable[BlockContent]) -> None:
        """Replace everything."""
        self.clear()
        for content in contents:
            block = self._add(content)
            self._open = None if content.whole else block

    def append(self, text: str, mark: Mark = Mark.PLAIN) -> int | None:
        """Add a token to the block begun last. Returns the block's number where rows before its
        last one are others now, as where a thought is closed."""
        return self._grow(lambda block: block.append(text, mark))

    def extend(self, text: str) -> int | None:
        """Add to the last token of the block begun last. Returns what append() does."""
        return self._grow(lambda block: block.extend(text))

    def _grow(self, add: Callable[[Block], int]) -> int | None:
        block = self._open
        assert block is not None, "nothing was begun"
        number, had = self._number(block), block.is_laid_out(self.manner)
        last = len(block.rows(self.manner)) - 1 if had else 0
        first = add(block)
        has_other_rows = had and (first < last or not block.is_laid_out(self.manner))
        self.touch(Spot(number, block.head + first))
        self._measure(number)
        return number if has_other_rows else None

    def think(self) -> None:
        """The prompt has opened a thought, in which the block begun last begins."""
        if self._open is not None and not self._open.reasoning.by_prompt:
            self._open.think()
            self._changes(self._open)

    def end(self, key: int | None) -> int | None:
        """A block is whole; None: the one begun last. Returns its number if it has other rows."""
        block = self._open if key is None else self.block(key)
        if block is None:
            return None
        if block is self._open:
            self._open = None
        has_other_rows = block.end()
        self._changes(block)
        return self._number(block) if has_other_rows else None

    def label(self, key: int, text: str) -> None:
        block = self.block(key)
        if block is not None:
            block.label = clean(text, one_line=True)
            self._changes(block)

    def clear(self) -> None:
        self.blocks.clear()
        self._numbers.clear()
        self._heights.clear()
        self._tops = self._open = None
        self.touch(Spot(0, 0))

    def _add(self, content: BlockContent) -> Block:
        block = Block(content)
        if self.blocks:
            before = self.blocks[-1].voice
            block.apart = not (block.voice is before is Voice.NOTE)
        if block.key is not None:
            self._numbers[block.key] = len(self.blocks)
        self.blocks.append(block)
        self._heights.append(block.height(self.manner))
        self._tops = None
        self.touch(Spot(len(self.blocks) - 1, 0))
        return block

    def block(self, key: int) -> Block | None:
        number = self._numbers.get(key)
        return None if number is None else self.blocks[number]

    def number_of(self, key: int) -> int | None:
        """Which block has the key, counted from the top."""
        return self._numbers.get(key)

    @property
    def last_written(self) -> Spot | None:
        """The last row of the block that is written, else of the last one."""
        block = self._open or (self.blocks[-1] if self.blocks else None)
        if block is None:
            return None
        number = self._number(block)
        return Spot(number, block.head + len(block.rows(self.manner)) - 1)

    def _number(self, block: Block) -> int:
        if block.key is not None:
            return self._numbers[block.key]
        return next(n for n in reversed(range(len(self.blocks))) if self.blocks[n] is block)

    # what has changed

    def _changes(self, block: Block) -> None:
        number = self._number(block)
        self.touch(Spot(number, 0))
        self._measure(number)

    def touch(self, spot: Spot) -> None:
        """A row has to be painted anew, and all below it."""
        self._changed = spot if self._changed is None else min(self._changed, spot)

    def take_change(self) -> Spot | None:
        """The first row that has to be painted anew since this was asked last."""
        changed, self._changed = self._changed, None
        return changed

    def set_manner(self, manner: Manner) -> None:
        """Lay out in another manner; everything is an estimate again."""
        if manner != self.manner:
            self.manner = manner
            self._heights = [block.height(manner) for block in self.blocks]
            self._tops = None
            self.touch(Spot(0, 0))

    # where it stands

    def _measure(self, number: int) -> None:
        height = self.blocks[number].height(self.manner)
        if height == self._heights[number]:
            return
        self._heights[number] = height
        if self._tops is not None and number == len(self.blocks) - 1:
            self._tops[-1] = self._tops[-2] + height
        else:
            self._tops = None

    @property
    def tops(self) -> list[int]:
        """The first row of every block, and behind them the number of all rows."""
        if self._tops is None:
            self._tops = list(accumulate(self._heights, initial=0))
        return self._tops

    @property
    def height(self) -> int:
        return self.tops[-1]

    def spot(self, row: int) -> Spot | None:
        """Where the row with this number stands; None behind the end."""
        if not 0 <= row < self.height:
            return None
        number = bisect_right(self.tops, row) - 1
        return Spot(number, row - self.tops[number])

    def row_number(self, spot: Spot) -> int:
        return self.tops[spot.block] + spot.row

    def lay_out_near(self, row: int, margin: int) -> int:
        """Lay out the block of a row, and what is within `margin` rows above and below.

        Returns the number that this row has now.
        """
        spot = self.spot(min(row, self.height - 1))
        if spot is None:
            return 0
        if not self.blocks[spot.block].is_laid_out(self.manner):
            share = spot.row / self._heights[spot.block]
            self._lay_out(spot.block)
            spot = self._found(Anchor(spot.block, share, None))
        self._measure(spot.block)
        missing, number = margin - self._heights[spot.block] + spot.row, spot.block
        while missing > 0 and (number := number + 1) < len(self.blocks):
            self._lay_out(number)
            missing -= self._heights[number]
        missing, number = margin - spot.row, spot.block
        while missing > 0 and (number := number - 1) >= 0:
            self._lay_out(number)
            missing -= self._heights[number]
        return self.row_number(spot)

    def _lay_out(self, number: int) -> None:
        self.blocks[number].rows(self.manner)
        self._measure(number)

    def anchor(self, row: int) -> Anchor | None:
        """What stands in the row with this number."""
        spot = self.spot(row)
        if spot is None:
            return None
        shown = self.row(spot) if self.blocks[spot.block].is_laid_out(self.manner) else None
        share = spot.row / self._heights[spot.block]
        return Anchor(spot.block, share, None if shown is None else shown.start)

    def find(self, anchor: Anchor | None) -> int:
        """The number of the row that shows what the anchor holds."""
        if anchor is None or anchor.block >= len(self.blocks):
            return 0
        self._lay_out(anchor.block)
        return self.row_number(self._found(anchor))

    def _found(self, anchor: Anchor) -> Spot:
        rows = self.rows_of(anchor.block)
        if anchor.place is not None:
            for number in reversed(range(len(rows))):
                start = rows[number].start
                if start is not None and start <= anchor.place:
                    return Spot(anchor.block, number)
        return Spot(anchor.block, min(round(anchor.share * len(rows)), len(rows) - 1))

    # rows and text

    def rows_of(self, number: int) -> list[Row]:
        """All rows of a block, the head included."""
        block = self.blocks[number]
        rows = block.rows(self.manner)
        return [Row(block.voice, aside=block.label), *rows] if block.head else rows

    def row(self, spot: Spot) -> Row | None:
        block = self.blocks[spot.block]
        if spot.row < block.head:
            return Row(block.voice, aside=block.label)
        rows = block.rows(self.manner)
        number = spot.row - block.head
        return rows[number] if number < len(rows) else None

    @property
    def rows(self) -> list[Row]:
        """Every row there is."""
        return [row for number in range(len(self.blocks)) for row in self.rows_of(number)]

    def text(self, start: Place | None = None, end: Place | None = None) -> str:
        """What is seen from `start` up to `end`, lines broken only where the speaker did it.

        Of messages that nobody has come near, what they say as it was written.
        """
        first, last = start or Place(0, 0), end or Place(len(self.blocks) * _LINES, 0)
        return "".join(self._pieces(first, last))[1:]

    def _pieces(self, start: Place, end: Place) -> Iterator[str]:
        """The text, every line with its line end before it."""
        last = min(Spot.at(end.line).block, len(self.blocks) - 1)
        for number in range(Spot.at(start.line).block, last + 1):
            block = self.blocks[number]
            whole = start <= Place(number * _LINES, 0) and Place((number + 1) * _LINES, 0) <= end
            if whole and not block.is_laid_out(self.manner):
                yield "\n" * (block.head + 1) + block.answer
                continue
            for at, row in enumerate(self.rows_of(number)):
                line = Spot(number, at).line
                if start.line <= line <= end.line:
                    yield "" if row.continues and line > start.line else "\n"
                    first = start.column if line == start.line else 0
                    yield _text_of(row, first, end.column if line == end.line else row.length)


def _text_of(row: Row, first: int, last: int) -> str:
    text = row.text[first:last]
    # what pads Markdown to the edge was not written by anyone
    return text if row.start is not None or last < row.length else text.rstrip(" ")
