"""Names for the files that conversations are written to, made of their titles."""

from __future__ import annotations

import os
import re
from datetime import date
from itertools import chain, count
from typing import Final

from edgespec.text.sanitize import clean

_MOST_CHARS: Final = 40  # of a title; four bytes each still fit


def file_name(title: str) -> str:
    """A Markdown file called by a title, the same on every system."""
    return f"{_words(title)}.md"


def free_file_name(title: str) -> str:
    """One called by a title and the day that is not in the working folder yet."""
    stem = f"{_words(title)}-{date.today():%Y-%m-%d}"
    names = chain([f"{stem}.md"], (f"{stem}-{n}.md" for n in count(2)))
    return next(name for name in names if not os.path.lexists(name))


def _words(title: str) -> str:
    words = re.findall(r"[^\W_]+", clean(title, one_line=True).lower())
    return "-".join(words)[:_MOST_CHARS].strip("-") or "conversation"
