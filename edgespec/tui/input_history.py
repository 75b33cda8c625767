"""What was sent before, walked with the arrow keys."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_KEPT = 1000


class InputHistory:
    """Past inputs, oldest first, and the unsent draft that waits behind the newest.

    What was changed in passing waits where it stands, too, until something is sent.
    """

    def __init__(self) -> None:
        self._past: list[str] = []
        self._at = 0
        self._unsent: dict[int, str] = {}  # by its place

    def add(self, text: str) -> None:
        if not self._past or self._past[-1] != text:
            self._past.append(text)
            del self._past[:-_MOST_KEPT]
        self._at = len(self._past)
        self._unsent.clear()

    def begin_with(self, earlier: Iterable[str]) -> None:
        """Put inputs of earlier sessions, oldest first, before those of this one."""
        since, self._past = self._past, []
        for text in (*earlier, *since):
            self.add(text)

    def older(self, current: str) -> str | None:
        """The input before the one shown; None if there is none. current: what is shown now."""
        return self._walk(current, -1) if self._at > 0 else None

    def newer(self, current: str) -> str | None:
        """The input after the one shown, at last the unsent draft; None if that is shown."""
        return self._walk(current, 1) if self._at < len(self._past) else None

    def _walk(self, current: str, step: int) -> str:
        if current.strip():
            self._unsent[self._at] = current
        else:
            self._unsent.pop(self._at, None)
        self._at += step
        sent = self._past[self._at] if self._at < len(self._past) else ""
        return self._unsent.get(self._at, sent)
