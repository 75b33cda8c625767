"""Guesses that were turned down: shown for a moment at the end of the text, never part of it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from edgespec.decoding.events import Round

SECONDS = 0.5
_ROOM = 6  # fewer free cells than this, and a ghost goes to the row below


@dataclass(frozen=True, slots=True)
class Ghost:
    """What was turned down, and until when it is shown (seconds on the caller's clock)."""

    text: str
    until_s: float

    def row(self, last_row: int, free: int) -> int:
        """The row to be painted on, where the last row of the text has `free` cells left."""
        return last_row if free >= min(_ROOM, cell_len(self.text)) else last_row + 1

    def cut_to(self, free: int) -> str:
        if cell_len(self.text) <= free:
            return self.text
        return set_cell_size(self.text, max(free - 2, 0)).rstrip() + "…⟩" if free > 2 else ""


def rejected(event: Round) -> str:
    """The guesses of a round that were turned down, each chain in brackets; "" if there are none.

    Behind every guess that the target saw and refused, its first child stands for what the
    drafter would have said next.
    """
    chains = []
    for index, guess in enumerate(event.guesses):
        if guess.tested and not guess.accepted:
            chain = "".join(_chain(event, index)).replace("\n", "⏎").replace("\t", " ")
            if chain:
                chains.append(f"⟨{chain}⟩")
    return "".join(chains)


def _chain(event: Round, index: int) -> list[str]:
    texts = [event.guesses[index].text]
    for later in range(index + 1, len(event.guesses)):
        if event.guesses[later].parent == index:
            index = later
            texts.append(event.guesses[later].text)
    return texts
