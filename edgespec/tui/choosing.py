"""Tokens on the screen: which one stands where, and which one is beside it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from rich.cells import split_graphemes

from edgespec.tui.blocks import Block
from edgespec.tui.rows import Row, Voice
from edgespec.tui.transcript import Spot, Transcript

Chosen = tuple[int, int]  # a message's key, and a token's number in it


@dataclass(frozen=True, slots=True)
class Stretch:
    """Characters of a row, from `first` up to `last`."""

    spot: Spot
    first: int
    last: int


class Chooser:
    """Finds tokens in what is shown. Only answers that have a key have tokens to choose from, and
    only those that can be seen: a folded thought has none."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript

    def at(self, spot: Spot, cell: int) -> Chosen | None:
        """The token at a cell of a row; behind the text, the last one of the row."""
        block = self._transcript.blocks[spot.block]
        row = self._transcript.row(spot)
        if not _choosable(block) or block.key is None or row is None or row.start is None:
            return None
        column = min(column_at(row, cell), max(row.length - 1, 0))
        index = block.token_at(row.start + column)
        return None if index is None else (block.key, index)

    def stretches(self, chosen: Chosen) -> list[Stretch]:
        """Where a token stands, row by row; nothing if it cannot be seen."""
        number = self._transcript.number_of(chosen[0])
        if number is None or chosen[1] >= self._transcript.blocks[number].count:
            return []
        start, end = self._transcript.blocks[number].span_of(chosen[1])
        found = [
            Stretch(Spot(number, at), *columns)
            for at, row in enumerate(self._transcript.rows_of(number))
            if (columns := _columns(row, start, end)) is not None
        ]
        # where nothing but a line end stands, there is a place to show, but no character
        return [stretch for stretch in found if stretch.last > stretch.first] or found[:1]

    def beside(self, chosen: Chosen | None, steps: int) -> Chosen | None:
        """The visible token so many steps on, or back; the last one of all where none is chosen."""
        if chosen is None or self._transcript.number_of(chosen[0]) is None:
            return self._last()
        step = 1 if steps > 0 else -1
        for _ in range(abs(steps)):
            chosen = next(self._visible_from(chosen, step), chosen)
        return chosen

    def below(self, chosen: Chosen | None, rows: int) -> Chosen | None:
        """The token so many rows below, or above."""
        if chosen is None or not self.stretches(chosen):
            return self._last()
        step = 1 if rows > 0 else -1
        for _ in range(abs(rows)):
            chosen = self._on_next_row(chosen, step) or chosen
        return chosen

    def _on_next_row(self, chosen: Chosen, step: int) -> Chosen | None:
        stretch = self.stretches(chosen)[-1 if step > 0 else 0]
        row = self._transcript.row(stretch.spot)
        cell = 0 if row is None else cell_at(row, stretch.first)
        number, at = stretch.spot.block, stretch.spot.row + step
        while 0 <= number < len(self._transcript.blocks):
            rows = self._rows_to_choose(number)
            down, up = range(at, len(rows)), range(min(at, len(rows) - 1), -1, -1)
            for row_number in down if step > 0 else up:
                if found := self.at(Spot(number, row_number), cell):
                    return found
            number, at = number + step, 0 if step > 0 else sys.maxsize
        return None

    def _rows_to_choose(self, number: int) -> list[Row]:
        choosable = _choosable(self._transcript.blocks[number])
        return self._transcript.rows_of(number) if choosable else []

    def _last(self) -> Chosen | None:
        blocks = self._transcript.blocks
        for block in reversed(blocks):
            if _choosable(block) and block.key is not None:
                for found in self._visible_from((block.key, block.count), -1):
                    return found
        return None

    def _visible_from(self, chosen: Chosen, step: int) -> Iterator[Chosen]:
        """The visible tokens behind one, or before it."""
        blocks = self._transcript.blocks
        number: int | None = self._transcript.number_of(chosen[0])
        index = chosen[1] + step
        while number is not None and 0 <= number < len(blocks):
            block = blocks[number]
            if _choosable(block) and block.key is not None:
                shown = _shown(self._transcript.rows_of(number))
                while 0 <= index < block.count:
                    start, end = block.span_of(index)
                    if end > start and any(first <= start < last for first, last in shown):
                        yield block.key, index
                    index += step
            number += step
            if 0 <= number < len(blocks):
                index = 0 if step > 0 else blocks[number].count - 1


def _columns(row: Row, start: int, end: int) -> tuple[int, int] | None:
    """The characters of a row that stand for the places from `start` up to `end`.

    An empty range stands for what begins behind the last character.
    """
    if row.start is None or end <= start:
        return None
    first, last = max(start - row.start, 0), min(end - row.start, row.length)
    if first < last or (first == last == row.length and start - row.start == row.length):
        return first, last
    return None


def column_at(row: Row, cell: int) -> int:
    """The character at a cell of a row."""
    at = 0
    for column, _, cells in split_graphemes(row.text)[0]:
        at += cells
        if at > cell:
            return column
    return row.length


def cell_at(row: Row, column: int) -> int:
    """The cell at which a character of a row begins; of one that others are drawn with, they."""
    return sum(cells for _, end, cells in split_graphemes(row.text)[0] if end <= column)


def _choosable(block: Block) -> bool:
    return block.voice is Voice.ANSWER and block.key is not None


def _shown(rows: list[Row]) -> list[tuple[int, int]]:
    """The ranges of places that can be seen, line ends included."""
    return [(row.start, row.start + row.length + 1) for row in rows if row.start is not None]
