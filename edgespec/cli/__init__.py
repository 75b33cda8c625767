"""The command line. Results go to stdout, progress and notes to stderr."""

from __future__ import annotations

import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl+C counts from the first import on."""
    try:
        from edgespec.cli.root import main as run

        run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(130)
