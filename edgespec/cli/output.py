"""What reaches the two streams: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from edgespec.errors import EdgespecError
from edgespec.text.sanitize import clean


def prepare_streams() -> None:
    """UTF-8 where no terminal says otherwise; a character that cannot be shown stops nothing."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ours = os.name == "nt" or not stream.isatty()
            stream.reconfigure(encoding="utf-8" if ours else None, errors="replace")


def one_line(text: str) -> str:
    """`text` as a single line that no terminal can misread."""
    return " ".join(clean(text, one_line=True).split())


def say(line: str) -> None:
    """One line on stderr."""
    print(line, file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Something the user should know, beside the result."""
    say(f"note: {one_line(text)}")


def write(text: str) -> None:
    """Part of the result, at once."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise EdgespecError(
            f"The result cannot be written: {error.strerror}. Send it elsewhere and run again."
        ) from error


def write_json(value: Mapping[str, Any], *, indent: int | None = None) -> None:
    """One object. ASCII only, so that neither a pipe nor a terminal can misread it."""
    write(json.dumps(value, indent=indent, allow_nan=False) + "\n")


class Progress:
    """Takes one-line progress messages; shows them if somebody is there to see them."""

    def __init__(self, *, verbose: bool) -> None:
        self._shown = verbose or sys.stderr.isatty()

    def __call__(self, line: str) -> None:
        if self._shown:
            say(one_line(line))


class ReadingLine:
    """Tells a person how far a long prompt has been read, in one line that goes away."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._width = 0

    def show(self, read: int, total: int) -> None:
        if self._shown and read < total:
            line = f"reading the prompt: {read} of {total} tokens"
            print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)
            self._width = len(line)

    def close(self) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
            self._width = 0
