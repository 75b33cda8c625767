"""Rows of text as they stand on the screen, and how text is filled into them.

Nothing here knows a terminal. Rows are filled greedily, so a row that is full never changes
again while text is added; only the last one is open.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, StrEnum

from rich.cells import cell_len, get_character_cell_size, split_graphemes
from rich.style import Style

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
    THOUGHT = "thought"
    NOTE = "note"
    ERROR = "error"


class Mark(StrEnum):
    """How a token came about; the first four are the kinds of a committed token."""

    ACCEPTED = "accepted"
    CORRECTION = "correction"
    BONUS = "bonus"
    PLAIN = "plain"
    REJECTED = "rejected"


Look = Mark | Style  # of text as it was written, and of text that was set as Markdown


@dataclass(slots=True)
class Row:
    """One line on the screen.

    opens      the first of its block.
    continues  it goes on where the row before was full. The spaces at which a line was broken
               stay at the end of the upper row, past the edge, so the rows of a line joined
               together are that line.
    start      the place of its first character in the text of its block; None where it shows
               something else than that text.
    aside      what is said about the block, at the right edge; no part of the text.
    """

    voice: Voice
    opens: bool = False
    continues: bool = False
    start: int | None = None
    aside: str = ""
    runs: list[tuple[str, Look]] = field(default_factory=list)
    cells: int = 0
    length: int = 0

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.runs)

    def add(self, text: str, look: Look) -> None:
        simple = text.isascii() and (not self.runs or self.runs[-1][0][-1:].isascii())
        if self.runs and self.runs[-1][1] is look:
            self.runs[-1] = (self.runs[-1][0] + text, look)
        else:
            self.runs.append((text, look))
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
        start = None if self.start is None else self.start + cut
        rest = Row(self.voice, continues=True, start=start)
        kept, self.runs, self.cells, self.length = self.runs, [], 0, 0
        for text, look in kept:
            room = max(cut - self.length, 0)
            if text[:room]:
                self.add(text[:room], look)
            if text[room:]:
                rest.add(text[room:], look)
        return rest


class Wrapped:
    """Text filled into rows, which stand for the text of a block from `start` on."""

    def __init__(self, voice: Voice, width: int, start: int = 0, *, trimmed: bool = False) -> None:
        self.rows = [Row(voice, opens=True, start=start)]
        self.end = start
        self._width = width
        self._trimmed = trimmed  # leave out line ends at the beginning

    @property
    def empty(self) -> bool:
        return len(self.rows) == 1 and not self.rows[0].length

    def add(self, text: str, look: Look) -> None:
        if self._trimmed:
            text = self._trim(text)
        for number, line in enumerate(text.split("\n")):
            if number:
                self.end += 1
                self.rows.append(Row(self.rows[-1].voice, start=self.end))
            for at in range(0, len(line), _CHUNK):
                self._fill(line[at : at + _CHUNK], look)
            self.end += len(line)

    def _trim(self, text: str) -> str:
        rest = text.lstrip("\n")
        self._trimmed = not rest
        self.end += len(text) - len(rest)
        self.rows[0].start = self.end
        return rest

    def _fill(self, text: str, look: Look) -> None:
        row = self.rows[-1]
        row.add(text, look)
        while (cut := row.cut_at(self._width)) is not None:
            row = row.split(cut)
            self.rows.append(row)


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
