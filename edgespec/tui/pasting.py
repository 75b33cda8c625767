"""What of a terminal's input was pasted, also where a paste holds the mark that ends one.

A terminal that does not filter what it pastes passes an end mark within the text on, and what
stands behind it then looks typed: a line end there would send the message. Nothing in the stream
tells the two apart, but time does: a paste arrives at once, and a person does not press a key
within a quarter of a second of pasting. So what follows an end mark that closely is held back:
if another end mark comes, it was pasted; if the input rests and none came, it was typed.

Escape sequences within a paste are its text. (Textual's own parser reads up to 32 characters
behind an ESC in a paste as keys, Enter among them.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

START = "\x1b[200~"
END = "\x1b[201~"
SETTLE_S = 0.25
_REST_S = 0.03  # between the reads of one paste, also on a busy machine
_BURST = 32  # characters of a read that no key and no few keys make
# a mouse that moves without a button down, and the focus: they do nothing, and may come for long
_IDLE_REPORTS = re.compile(r"(?:\x1b\[<(?:35|39|43|47|51|55|59|63);-?\d+;-?\d+M|\x1b\[[IO])+")
# in one read without escape sequences: a paste in a terminal that does not mark them
_GOES_ON_BEHIND_A_LINE_END = re.compile(r"[\r\n][^\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Typed:
    """Input for the parser of keys; the marks of pastes are part of it."""

    text: str


@dataclass(frozen=True, slots=True)
class Pasted:
    text: str


Piece = Typed | Pasted


class PasteGuard:
    """Splits one stream of input into what was typed and what was pasted.

    Times are seconds of one clock that never goes back.
    """

    def __init__(self) -> None:
        self._place: _Place = _Outside()

    @property
    def until_s(self) -> float | None:
        """When to call rested(), if no input came until then; None = not at all."""
        return self._place.until_s

    def feed(self, text: str, now_s: float) -> list[Piece]:
        """What the next read holds, as far as it is known."""
        pieces: list[Piece] = []
        while text:
            found, self._place, text = self._place.take(text, now_s)
            pieces += found
        return [piece for piece in pieces if piece.text]

    def rested(self) -> list[Piece]:
        """What is known because no input came until `until_s`.

        The caller has to have looked: that time has passed does not mean that nothing came.
        """
        held = self._place.held
        self._place = _Outside()
        return [Typed(held)] if held else []


class _Place(Protocol):
    """Where in a paste the stream stands."""

    @property
    def until_s(self) -> float | None: ...

    @property
    def held(self) -> str:
        """Input of which nothing is known yet."""

    def take(self, text: str, now_s: float) -> tuple[list[Piece], _Place, str]:
        """What is known now, the place behind it, and what is to be read from there."""


class _Outside:
    """No paste.

    tail: the beginning of a mark, perhaps, that the next read completes.
    burst_until_s: when a paste that is not marked cannot go on any more.
    """

    until_s = None
    held = ""

    def __init__(self, burst_until_s: float = 0.0) -> None:
        self._tail = ""
        self._burst_until_s = burst_until_s

    def take(self, text: str, now_s: float) -> tuple[list[Piece], _Place, str]:
        seen = self._tail + text
        at = seen.find(START)
        if at >= 0:
            begin = at + len(START) - len(self._tail)
            return [Typed(text[:begin])], _Within(), text[begin:]
        if self._is_unmarked_paste(text, now_s):
            return [Pasted(text)], _Outside(now_s + SETTLE_S), ""
        self._tail = seen[len(seen) - _unfinished(seen, START) :]
        return [Typed(text)], self, ""

    def _is_unmarked_paste(self, text: str, now_s: float) -> bool:
        goes_on = now_s < self._burst_until_s and len(text) >= _BURST
        return "\x1b" not in text and (
            goes_on or _GOES_ON_BEHIND_A_LINE_END.search(text) is not None
        )


class _Within:
    """A paste whose end has not come; `tail` may be the beginning of its mark."""

    until_s = None
    held = ""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._tail = ""

    def take(self, text: str, now_s: float) -> tuple[list[Piece], _Place, str]:
        seen = self._tail + text
        at = seen.find(END)
        if at < 0:
            cut = len(seen) - _unfinished(seen, END)
            self._parts.append(seen[:cut])
            self._tail = seen[cut:]
            return [], self, ""
        body = "".join([*self._parts, seen[:at]])
        return [Pasted(body), Typed(END)], _Behind(now_s), seen[at + len(END) :]


class _Behind:
    """Close behind an end mark: what comes now may still be of the paste."""

    def __init__(self, now_s: float) -> None:
        self.held = ""
        self.until_s: float | None = now_s + SETTLE_S

    def take(self, text: str, now_s: float) -> tuple[list[Piece], _Place, str]:
        if not self.held and (reports := _IDLE_REPORTS.match(text)):
            return [Typed(reports[0])], self, text[reports.end() :]
        self.held += text
        self._wait(SETTLE_S if len(text) >= _BURST else _REST_S, now_s)
        begin, end = self.held.find(START), self.held.rfind(END)
        if begin >= 0 and end < begin:
            return (
                [Pasted(self.held[:begin]), Typed(START)],
                _Within(),
                self.held[begin + len(START) :],
            )
        if end < 0:
            return [], self, ""
        pasted = self.held[:end].replace(START, "").replace(END, "")
        return [Pasted(pasted)], _Behind(now_s), self.held[end + len(END) :]

    def _wait(self, seconds: float, now_s: float) -> None:
        self.until_s = max(self.until_s or 0.0, now_s + seconds)


def _unfinished(text: str, mark: str) -> int:
    """How many characters at the end of the text may be the beginning of the mark."""
    lengths = range(len(mark) - 1, 0, -1)
    return next((length for length in lengths if text.endswith(mark[:length])), 0)
