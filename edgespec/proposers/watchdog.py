"""Notices a drafter that is wrong nearly always, which as a rule means a fault and not bad luck."""

from __future__ import annotations

MANY, FLOOR = 64, 0.06  # first guesses that are judged; share of them that must be right


class Watchdog:
    """Counts how often a drafter's first guess is right; parks it where that is hardly ever.

    A sound drafter, however small, guesses a tenth of all tokens. What was counted fades from
    answer to answer, so that a fault that is mended is forgotten.
    """

    def __init__(self) -> None:
        self._asked = self._right = 0
        self.parked = False

    def begin(self) -> None:
        """Another answer starts: a parked drafter gets a shorter trial."""
        self.parked = False
        self._asked, self._right = self._asked // 2, self._right // 2

    def observe(self, right: bool) -> None:
        """One round's first guess."""
        self._asked += 1
        self._right += right
        if self._asked >= MANY:
            self.parked = self._right < FLOOR * self._asked
            if not self.parked:
                self._asked, self._right = self._asked // 2, self._right // 2

    def why(self, name: str) -> str:
        """What to tell of a parked drafter; empty for any other."""
        if not self.parked:
            return ""
        return (
            f"drafter '{name}' rests for this answer: its first guess was right in {self._right} of"
            f" {self._asked} rounds. Likely causes: a number format that this device computes"
            " wrongly (try another quantisation), a drafter made for other layers of the target,"
            " or one of another model family"
        )
