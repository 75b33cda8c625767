"""The command line. Results go to stdout, progress and notes to stderr."""

from edgespec.cli.root import main

__all__ = ["main"]
