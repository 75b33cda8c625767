"""What was sent before, walked with the arrow keys."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_KEPT = 1000


class InputHistory:
    """Past inputs, oldest first, and the unsent draft that waits behind the newest."""

    def __init__(self) -> None:
        self._past: list[str] = []
        self._at = 0
        self._draft = ""

    def add(self, text: str) -> None:
        if not self._past or self._past[-1] != text:
            self._past.append(text)
            del self._past[:-_MOST_KEPT]
        self._at, self._draft = len(self._past), ""

    def begin_with(self, earlier: Iterable[str]) -> None:
        """Put inputs of earlier sessions, oldest first, before those of this one."""
        since, self._past = self._past, []
        for text in (*earlier, *since):
            self.add(text)

    def older(self, current: str) -> str | None:
        """The input before the one shown; None if there is none."""
        if self._at == 0:
            return None
        if self._at == len(self._past):
            self._draft = current
        self._at -= 1
        return self._past[self._at]

    def newer(self) -> str | None:
        """The input after the one shown, at last the unsent draft; None if that is shown."""
        if self._at == len(self._past):
            return None
        self._at += 1
        return self._draft if self._at == len(self._past) else self._past[self._at]
