"""How a fetch is shown: bars with speed and time left, or plain lines where no terminal is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from edgespec.cli.output import one_line, say
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.models.hub import RemoteFile
    from edgespec.models.transfer import Report

_STEP = 10  # percent between two plain lines
_LARGE = 50_000_000  # bytes; what is smaller is here within seconds and needs no lines
_LONGEST = 40


@contextmanager
def progress_of(stream: TextIO) -> Iterator[Report]:
    """What hears how a fetch goes, until the end of the block."""
    if not stream.isatty():
        yield Lines()
        return
    columns = (
        # names come from the network, so nothing in them is markup
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream)) as progress:
        yield Bars(progress)


class Bars:
    """One bar a file."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def resumes(self, file: RemoteFile, done: int) -> None:
        # a reset, since reading the disk must not count as speed of the network
        self._progress.reset(self._task(file), completed=done)

    def progress(self, file: RemoteFile, done: int) -> None:
        self._progress.update(self._task(file), completed=done)

    def note(self, text: str) -> None:
        self._progress.console.print(f"note: {one_line(text)}", markup=False, highlight=False)

    def _task(self, file: RemoteFile) -> TaskID:
        if file.blob not in self._tasks:
            name = _short(file.name)
            self._tasks[file.blob] = self._progress.add_task(name, total=file.size)
        return self._tasks[file.blob]


class Lines:
    """A line for every tenth of a large file."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}

    def resumes(self, file: RemoteFile, done: int) -> None:
        """Only what comes next is told: this is read within seconds."""

    def progress(self, file: RemoteFile, done: int) -> None:
        if file.size <= _LARGE:
            return
        percent = 100 * done // file.size
        if percent // _STEP > self._told.get(file.blob, 0) // _STEP:
            self._told[file.blob] = percent
            say(f"{_short(file.name)}: {percent}% of {size_text(file.size)}")

    def note(self, text: str) -> None:
        say(f"note: {one_line(text)}")


def _short(name: str) -> str:
    """The end of a name, where its quantisation stands."""
    clean = one_line(name)
    return clean if len(clean) <= _LONGEST else f"…{clean[1 - _LONGEST :]}"
