"""A benchmark on a terminal: how far it is, and its tables."""

from __future__ import annotations

import io
import shutil
import sys
from types import TracebackType
from typing import Self

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable
from rich.text import Text

from edgespec.bench.tables import Table
from edgespec.cli.output import one_line, say

_WIDTH_OF_A_FILE = 200


class HowFar:
    """On stderr: a bar where a person watches, else a line for each prompt."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._line = ""
        if sys.stderr.isatty():
            columns = (BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn())
            console = Console(stderr=True)
            self._bar = Progress(
                *columns, TextColumn("{task.description}", markup=False), console=console
            )

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
            self._bar.add_task("", total=None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int, line: str) -> None:
        """`done` of `total` answers are there; `line` says what is under way."""
        if self._bar is not None:
            task = self._bar.task_ids[0]
            self._bar.update(task, completed=done, total=total, description=one_line(line))
        elif line.endswith("done"):
            say(f"{done} of {total} answers: {one_line(line)}")


def drawn(tables: list[Table]) -> str:
    """The tables for stdout: the terminal's width, or a wide one for a file."""
    terminal = sys.stdout.isatty()
    page = io.StringIO()
    console = Console(
        file=page,
        force_terminal=terminal,
        width=shutil.get_terminal_size().columns if terminal else _WIDTH_OF_A_FILE,
        highlight=False,
    )
    for table in tables:
        for part in fitting(table, console.width) if table.rows else ():
            console.print(_rich(part))
            console.print()
    return page.getvalue()


def fitting(table: Table, width: int) -> list[Table]:
    """The same in tables whose cells need no second line: turned, or one for each row."""
    for candidate in (table, table.turned()):
        if _width(candidate) <= width:
            return [candidate]
    return table.split()


def _width(table: Table) -> int:
    """Of the whole table, with its lines and the marks behind the best cells."""
    rows = (table.head, *table.rows)
    longest = [max(cell_len(one_line(cell)) for cell in cells) for cells in zip(*rows, strict=True)]
    for _, column in table.best:
        longest[column] = max(
            longest[column],
            *(cell_len(one_line(table.rows[r][c])) + 2 for r, c in table.best if c == column),
        )
    return sum(longest) + 3 * len(longest) + 1


def _rich(table: Table) -> RichTable:
    drawn = RichTable(title=Text(table.title), title_justify="left", title_style="bold")
    for number, name in enumerate(table.head):
        drawn.add_column(Text(one_line(name)), justify="left" if number == 0 else "right")
    for row, cells in enumerate(table.rows):
        drawn.add_row(
            *(
                # a mark too, for where bold is not seen
                Text(f"{one_line(cell)} *", style="bold")
                if (row, column) in table.best
                else Text(one_line(cell))
                for column, cell in enumerate(cells)
            )
        )
    return drawn
