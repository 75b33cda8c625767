"""What small programs of the system tell."""

from __future__ import annotations

import shutil
import subprocess

_WAIT_S = 3.0


def output_of(program: str, *arguments: str) -> str:
    """What a program prints; empty when it is not there, fails, or does not answer in time."""
    path = shutil.which(program)
    if path is None:
        return ""
    try:
        done = subprocess.run(
            [path, *arguments],
            capture_output=True,
            timeout=_WAIT_S,
            check=True,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
