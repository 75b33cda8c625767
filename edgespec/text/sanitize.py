"""Text that may be shown in a terminal: nothing in it moves the cursor or hides what it says.

Dropped: control characters but newline and tab; whole escape sequences, both the 7-bit and the
8-bit kind; bidi controls; invisible characters, such as fillers and tags; lone surrogates.
Joiners and variation selectors stay, since emoji and several scripts are spelled with them.
Every kind of line end becomes a newline.

The body of an OSC, DCS, APC, PM or SOS sequence ends at its terminator (ST or BEL), at a cancel
character, at a line end (which stays), at the next escape, or after 4096 characters: what
follows is text again. So a body that never ends cannot swallow an answer.
"""

from __future__ import annotations

import re
from enum import Enum, auto

_LONGEST_SEQUENCE = 4096
_LINE_ENDS = "\n\r\u2028\u2029"
_INVISIBLE = (
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SPECIAL = re.compile(f"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{_INVISIBLE}]")


class _Place(Enum):
    """Where in the grammar of escape sequences the next character stands."""

    TEXT = auto()
    ESCAPE = auto()  # behind ESC
    DESIGNATE = auto()  # behind ESC and at least one of " " to "/"
    CSI = auto()
    BODY = auto()  # of OSC, DCS, APC, PM or SOS


_INTRODUCERS = {"\x1b": _Place.ESCAPE, "\x9b": _Place.CSI} | dict.fromkeys(
    "\x90\x98\x9d\x9e\x9f", _Place.BODY
)
_AFTER_ESCAPE = {"[": _Place.CSI} | dict.fromkeys("]PX^_", _Place.BODY)
_BODY_ENDS = "\x07\x18\x1a\x9c"
_BODY_BREAKS = re.compile(f"[{_LINE_ENDS}\x1b\x80-\x9f]")


class Sanitizer:
    """Cleans one stream of text; how it is cut into pieces makes no difference.

    Holds no text back: between calls it knows only where in a sequence the stream stands.
    """

    def __init__(self) -> None:
        self._place = _Place.TEXT
        self._left = 0
        self._after_return = False

    def feed(self, text: str) -> str:
        """What of `text` may be shown."""
        kept: list[str] = []
        at = 0
        while at < len(text):
            if self._place is not _Place.TEXT:
                at += self._swallow(text[at])
                continue
            special = _SPECIAL.search(text, at)
            end = special.start() if special else len(text)
            if end > at:
                kept.append(text[at:end])
                self._after_return = False
            if special:
                kept.append(self._replace(special[0]))
            at = end + 1
        return "".join(kept)

    def flush(self) -> str:
        """End of the stream: an unfinished sequence is dropped, so nothing is left to show."""
        self._place = _Place.TEXT
        self._after_return = False
        return ""

    def _replace(self, char: str) -> str:
        """What stands for one special character of plain text."""
        paired = char == "\n" and self._after_return
        self._after_return = char == "\r"
        if char in _INTRODUCERS:
            self._place = _INTRODUCERS[char]
            self._left = _LONGEST_SEQUENCE
        return "\n" if char in _LINE_ENDS and not paired else ""

    def _swallow(self, char: str) -> bool:
        """Whether `char` belongs to the sequence; if not, it is read again as text."""
        self._left -= 1
        place, belongs = (_Place.TEXT, False) if self._left < 0 else _next(self._place, char)
        self._place = place
        return belongs


def clean(text: str, *, one_line: bool = False) -> str:
    """`text` made safe to show; for names, metadata and errors.

    one_line: newlines and tabs become spaces.
    """
    safe = Sanitizer().feed(text)
    return safe.replace("\n", " ").replace("\t", " ") if one_line else safe


def _next(place: _Place, char: str) -> tuple[_Place, bool]:
    """The place behind `char`, and whether `char` is part of the sequence. Source: ECMA-48."""
    if place is _Place.BODY:
        if char in _BODY_ENDS:
            return _Place.TEXT, True
        return (_Place.TEXT, False) if _BODY_BREAKS.match(char) else (_Place.BODY, True)
    if place is _Place.ESCAPE and char in _AFTER_ESCAPE:
        return _AFTER_ESCAPE[char], True
    if place is _Place.CSI:
        within = " " <= char <= "?"
    else:
        within = " " <= char <= "/"
        place = _Place.DESIGNATE
    if within:
        return place, True
    return _Place.TEXT, "0" <= char <= "~"
