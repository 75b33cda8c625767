"""The conversation as rows of marked text: what is shown, without how it is painted.

Nothing here knows a terminal. Rows are filled greedily, so a row that is full never changes
again while text is added; only the last one is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from rich.cells import cell_len, get_character_cell_size, split_graphemes

_CHUNK = 256  # characters added at once, so that splitting a row stays cheap
_DENSITY = 16  # characters per cell at most; more are marks without width, stacked in spite
# never first in a row: East Asian stops and closing brackets
_CLOSING = frozenset(
    "\u3001\u3002\u3009\u300b\u300d\u300f\u3011\uff01\uff09\uff0c\uff0e\uff1a\uff1b\uff1f"
)


class Voice(Enum):
    """Who speaks in a row."""

    USER = "user"
    ANSWER = "answer"
    NOTE = "note"
    ERROR = "error"


class Mark(StrEnum):
    """How a token came about; the first four are the kinds of a committed token."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"
    PLAIN = "plain"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A row, and a character in it."""

    row: int
    column: int


@dataclass(slots=True)
class Row:
    """One line on the screen. `continues`: it goes on where the row before was full.

    The spaces at which a line was broken stay at the end of the upper row, past the edge, so the
    rows of a line joined together are that line.
    """

    voice: Voice
    opens: bool = False
    continues: bool = False
    runs: list[tuple[str, Mark]] = field(default_factory=list)
    cells: int = 0
    length: int = 0

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)

    def add(self, text: str, mark: Mark) -> None:
        simple = text.isascii() and (not self.runs or self.runs[-1][0][-1:].isascii())
        if self.runs and self.runs[-1][1] is mark:
            self.runs[-1] = (self.runs[-1][0] + text, mark)
        else:
            self.runs.append((text, mark))
        self.length += len(text)
        if simple:
            self.cells += len(text)
        else:
            # a joiner or a variation selector changes the width of what stands before it
            self.cells = sum(cell_len(run) for run, _ in self.runs)

    def cut_at(self, width: int) -> int | None:
        """The character with which the next row has to begin; None while this one is not full."""
        if self.cells <= width and self.length <= _DENSITY * width:
            return None
        text = self.text
        hanging = len(text) - len(text.rstrip(" "))
        if self.cells - hanging <= width and hanging <= width and self.length <= _DENSITY * width:
            return None
        cut = break_at(text, width)
        return cut if cut < len(text) else None

    def split(self, cut: int) -> Row:
        """Keep the first `cut` characters and return the rest as the row that continues."""
        rest = Row(self.voice, continues=True)
        kept, self.runs, self.cells, self.length = self.runs, [], 0, 0
        for text, mark in kept:
            room = max(cut - self.length, 0)
            if text[:room]:
                self.add(text[:room], mark)
            if text[room:]:
                rest.add(text[room:], mark)
        return rest


def break_at(text: str, width: int) -> int:
    """Where to break text that is wider than `width` cells: behind a space, beside a wide
    character, or, where a single word is too long, inside it."""
    fits = min(_that_fit(text, width), _DENSITY * width)
    if fits < len(text) and text[fits] == " ":
        spaces = len(text) - fits - len(text[fits:].lstrip(" "))
        return fits + min(spaces, width)
    after_space = text.rfind(" ", 0, fits) + 1
    if not text[:after_space].strip():
        after_space = 0  # breaking behind the indentation would leave an empty row
    if not text.isascii():
        for cut in range(min(fits, len(text) - 1), after_space, -1):
            if _may_break(text[cut - 1], text[cut]):
                return cut
    return after_space or fits


def _that_fit(text: str, width: int) -> int:
    if text.isascii():
        return max(width, 1)
    spans, _ = split_graphemes(text)
    cells, end = 0, 0
    for _, stop, size in spans:
        cells += size
        if end and cells > width:
            return end
        end = stop
    return end


def _may_break(before: str, after: str) -> bool:
    sizes = get_character_cell_size(before), get_character_cell_size(after)
    return 2 in sizes and sizes[1] > 0 and before != "\u200d" and after not in _CLOSING


class Transcript:
    """All that was said, wrapped to a width in cells."""

    def __init__(self, width: int = 80) -> None:
        self.width = width
        self.rows: list[Row] = []

    def begin(self, voice: Voice) -> None:
        """Start a block. Blocks stand apart by an empty row, notes among themselves do not."""
        if self.rows and not (voice is Voice.NOTE and self.rows[-1].voice is Voice.NOTE):
            self.rows.append(Row(self.rows[-1].voice))
        self.rows.append(Row(voice, opens=True))

    def append(self, text: str, mark: Mark = Mark.PLAIN) -> None:
        """Add text to the block begun last."""
        for number, line in enumerate(text.replace("\t", "    ").split("\n")):
            if number:
                self.rows.append(Row(self.rows[-1].voice))
            for start in range(0, len(line), _CHUNK):
                self._fill(line[start : start + _CHUNK], mark)

    def _fill(self, text: str, mark: Mark) -> None:
        row = self.rows[-1]
        row.add(text, mark)
        while (cut := row.cut_at(self.width)) is not None:
            row = row.split(cut)
            self.rows.append(row)

    def rewrap(self, width: int) -> None:
        """Fill all rows anew for another width."""
        rows, self.rows, self.width = self.rows, [], width
        for row in rows:
            if not row.continues:
                self.rows.append(Row(row.voice, row.opens))
            for text, mark in row.runs:
                for start in range(0, len(text), _CHUNK):
                    self._fill(text[start : start + _CHUNK], mark)

    def clear(self) -> None:
        self.rows.clear()

    def text(self, start: Place | None = None, end: Place | None = None) -> str:
        """The text from `start` up to `end`, line breaks only where the speaker made them."""
        return "".join(self._pieces(start or Place(0, 0), end or Place(len(self.rows), 0)))

    def _pieces(self, start: Place, end: Place) -> Iterator[str]:
        for number in range(max(start.row, 0), min(end.row + 1, len(self.rows))):
            row = self.rows[number]
            if number > start.row and not row.continues:
                yield "\n"
            first = start.column if number == start.row else 0
            last = end.column if number == end.row else row.length
            yield row.text[first:last]

    def offset_of(self, row: int) -> int:
        """Characters and line breaks before a row; a place that outlives re-wrapping."""
        return sum(r.length + (not r.continues) for r in self.rows[:row])

    def row_at(self, offset: int) -> int:
        """The row that holds the place `offset_of` named."""
        for number, row in enumerate(self.rows):
            offset -= row.length + (not row.continues)
            if offset < 0:
                return number
        return max(len(self.rows) - 1, 0)
