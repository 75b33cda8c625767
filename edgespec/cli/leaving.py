"""How a command ends: one line on stderr and an exit code, for whatever happened."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import Any, Final

import click

from edgespec.cli.output import one_line, say
from edgespec.errors import Cancelled, EdgespecError

_PATIENCE_S: Final = 1.0


@dataclass(slots=True)
class Run:
    """What holds for the whole call of the program."""

    verbose: bool = False


class Interrupted(Exception):
    """Ctrl+C, outside of an answer."""


class ReaderLeft(Exception):
    """Whoever read our output has stopped, as `head` does."""


def verbose_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --verbose, which may stand before or after the command's name."""

    def note(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted:
            ctx.ensure_object(Run).verbose = True

    return click.option(
        "--verbose",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=note,
        help="Show progress everywhere, and the trace of an error.",
    )(command)


def take_no_more_interrupts() -> None:
    """From here on Ctrl+C changes nothing, unless leaving takes so long that it must kill."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        return
    began = monotonic()

    def again(number: int, _frame: FrameType | None) -> None:
        if monotonic() - began >= _PATIENCE_S:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGINT, again)
    # Python's own end takes every handler away but this one
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def report(error: BaseException, *, verbose: bool) -> int:
    """Say in one line what ended the program, and give its exit code."""
    match error:
        case SystemExit():
            return error.code if isinstance(error.code, int) else int(bool(error.code))
        case ReaderLeft() | BrokenPipeError():
            _drop_output()
            return 1
        case Interrupted() | KeyboardInterrupt() | click.Abort():
            line, code = "stopped", Cancelled.exit_code
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return error.exit_code
        case click.ClickException():
            line, code = _usage(error), error.exit_code
        case EdgespecError():
            line, code = str(error) or type(error).__name__, error.exit_code
        case _:
            line, code = f"internal error: {type(error).__name__}: {error}", 1
            if not verbose:
                line += "; run again with --verbose for the trace"
    if verbose:
        # line by line, so that each keeps its indentation but no control character
        for row in "".join(traceback.format_exception(error)).splitlines():
            indent = row[: len(row) - len(row.lstrip(" "))]
            say(indent + one_line(row))
    say(f"edgespec: {one_line(line)}")
    return code


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    return f"{message.rstrip('.')}. See '{context.command_path} --help'."


def _drop_output() -> None:
    # the interpreter flushes stdout once more on its way out and would complain
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
