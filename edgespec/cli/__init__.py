"""The command line. Results go to stdout, progress and notes to stderr."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

__all__ = ["main"]

_CANCELLED = 130  # as errors.Cancelled, whose module is not imported yet


def main() -> None:
    """Run the command; Ctrl+C counts from the first import on."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, _stop)
    from edgespec.cli.root import main as run

    try:
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(_CANCELLED)


def _stop(_number: int, _frame: FrameType | None) -> None:
    """End at once: an exception would be lost in the middle of an import, or leave a trace."""
    with contextlib.suppress(OSError):
        os.write(2, b"edgespec: stopped\n")
    os._exit(_CANCELLED)
