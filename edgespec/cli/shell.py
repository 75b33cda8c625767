"""Words of a command line as they can be typed here; on Windows in cmd and PowerShell alike."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterable
from typing import Final

WINDOWS: Final = os.name == "nt"
_BARE: Final = re.compile(r"[\w.:/\\=+~-]+")  # means itself to both shells of Windows


def quoted(word: str) -> str:
    """One argument."""
    if not WINDOWS:
        return shlex.quote(word)
    if _BARE.fullmatch(word):
        return word
    line = subprocess.list2cmdline([word])  # which quotes for a program, not for a shell
    return line if line.startswith('"') else f'"{line}"'


def program(path: str) -> str:
    """The program at the beginning of a line."""
    if WINDOWS and not _BARE.fullmatch(path):
        # alone in quotes it is a mere text to PowerShell, and behind its & an error to cmd
        return f"cmd /c call {quoted(path)}"
    return quoted(path)


def joined(words: Iterable[str]) -> str:
    """A whole line of arguments."""
    return " ".join(map(quoted, words))
