"""Reasoning sections: where a model thinks aloud before it answers."""

from __future__ import annotations

from enum import Enum, auto

from edgespec.text.thoughts import MARKS, THOUGHT_MARKS

_CLOSING = tuple(THOUGHT_MARKS.values())
_LONGEST = max(len(tag) for tag in _CLOSING) + 1  # and the line end before it


class _Where(Enum):
    """What the text that comes next belongs to."""

    START = auto()  # not known yet
    THOUGHT = auto()
    ANSWER = auto()  # unless a closing tag says that it was a thought all along
    REST = auto()


class Reasoning:
    """Finds the reasoning section of an answer while it is written, however it is cut into pieces.

    The section stands at the beginning, behind a tag, or without one where the prompt is known to
    have opened it. A closing tag that begins a line and that nothing opened says that the prompt
    did, so that all before it was a thought. Tags elsewhere are text: an answer may speak about
    them.

    by_prompt  the prompt has opened it.
    opened     where the reasoning begins; None without one.
    closed     where it ends; None while it goes on.
    resumed    where the answer begins, behind the tag.
    """

    def __init__(self, by_prompt: bool = False) -> None:
        self.by_prompt = by_prompt
        self.opened: int | None = None
        self.closed: int | None = None
        self.resumed = 0
        self._where = _Where.START
        self._tail = ""  # what was seen last and may be the beginning of a tag
        self._end = 0

    def feed(self, text: str) -> bool:
        """Read on; whether the places above have changed."""
        if self._where is _Where.REST:
            return False
        before = (self.opened, self.closed)
        seen = self._tail + text
        start = self._end - len(self._tail)
        self._end += len(text)
        if self._where is _Where.START:
            self._begin(seen)
        elif self._where is _Where.THOUGHT:
            self._find_end(seen, start)
        else:
            self._find_unopened(seen, start)
        self._tail = seen if self._where is _Where.START else seen[-_LONGEST:]
        return before != (self.opened, self.closed)

    def _begin(self, seen: str) -> None:
        text = seen.lstrip()
        start = len(seen) - len(text)
        opening = next((tag for tag in THOUGHT_MARKS if text.startswith(tag)), None)
        if opening is not None:
            self.opened = start + len(opening)
        elif text.startswith(_CLOSING):
            self.opened = 0
        elif not text or any(tag.startswith(text) for tag in MARKS):
            return
        elif self.by_prompt:
            self.opened = 0
        if self.opened is None:
            self._where = _Where.ANSWER
            self._find_unopened(seen, 0)
        else:
            self._where = _Where.THOUGHT
            self._find_end(seen, 0)

    def _find_unopened(self, seen: str, start: int) -> None:
        opening = min((at for tag in THOUGHT_MARKS if (at := seen.find(tag)) >= 0), default=None)
        self._find_end(seen[:opening], start, line_end="\n")
        if self.closed is not None:
            self.opened = 0
        elif opening is not None:
            self._where = _Where.REST

    def _find_end(self, seen: str, start: int, line_end: str = "") -> None:
        """Look for a closing tag, behind `line_end`, in what was seen from the place `start` on."""
        tags = [line_end + tag for tag in _CLOSING]
        found = min(((at, tag) for tag in tags if (at := seen.find(tag)) >= 0), default=None)
        if found is not None:
            at, tag = found
            self.closed = start + at
            self.resumed = self.closed + len(tag)
            self._where = _Where.REST
