"""Columns and sentences that stay within the terminal's width."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from edgespec.text.sanitize import clean

_NARROWEST_COLUMN: Final = 20
_INDENT: Final = "    "


def aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Columns of the same width, for a font that has one.

    In a terminal the last one is wrapped; where that leaves it no room, each row as a whole.
    """
    rows = [tuple(clean(cell, one_line=True) for cell in row) for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    before_last = sum(widths[:-1]) + 2 * len(widths[:-1])
    most = _width()
    if most is not None and before_last + _NARROWEST_COLUMN > most:
        for row in rows:
            yield from _wrapped("  ".join(filter(str.strip, row)).strip(), most, _INDENT)
        return
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        line = "  ".join(cells).rstrip()
        yield from [line] if most is None else _wrapped(line, most, " " * before_last)


def flowing(sentence: str) -> Iterator[str]:
    """A sentence in as many lines as the terminal needs; one where there is no terminal."""
    most = _width()
    yield from [sentence] if most is None else _wrapped(sentence, most, "")


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    # a terminal of no width to speak of still gets its text
    width = max(width, len(indent) + 1)
    wrapper = textwrap.TextWrapper(width, subsequent_indent=indent, break_on_hyphens=False)
    return wrapper.wrap(line) or [""]
