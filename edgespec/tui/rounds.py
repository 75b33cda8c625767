"""The rounds of the latest answers as rows: what was guessed, what became of it, what it took."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter

from rich.cells import cell_len

from edgespec.decoding.events import Alternative, Committed, Guess, Kind, Round
from edgespec.models.shown import shown
from edgespec.tui.naming import guesses_in_words

MOST_ROUNDS = 20_000
_LONGEST_TEXT = 40  # characters of a token that are shown
_DROPPED_AT_ONCE = 8  # parts of the memory, so that most rounds drop nothing
CHOSEN = "chosen by you"
_NAMELESS_END = "end"


class Fate(StrEnum):
    """What became of a drafted token, or how the target's own came about."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNTESTED = "untested"
    CORRECTION = "correction"
    BONUS = "bonus"
    PLAIN = "plain"


GLYPHS = {
    Fate.ACCEPTED: "✓",
    Fate.REJECTED: "✗",
    Fate.UNTESTED: "·",
    Fate.CORRECTION: "→",
    Fate.BONUS: "+",
    Fate.PLAIN: "→",
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One token of a row. index: the place in the answer that it leads to.

    branches: it does not follow the piece before it, but stands beside an earlier one.
    """

    fate: Fate
    text: str
    index: int
    branches: bool = False

    @property
    def label(self) -> str:
        return f"{'| ' * self.branches}{GLYPHS[self.fate]}{self.text}"

    @property
    def stands(self) -> bool:
        """Whether it became part of the answer."""
        return self.fate not in (Fate.REJECTED, Fate.UNTESTED)


@dataclass(frozen=True, slots=True)
class RoundRow:
    """A round of one answer. number: from 1, in the order in which the rounds came.

    ends: the tokens that end an answer, with their names.
    """

    number: int
    event: Round
    ends: Mapping[int, str] = field(default_factory=dict)

    @property
    def first(self) -> int:
        """Place in the answer of the first token."""
        return self.event.index

    @property
    def end(self) -> int:
        """Place behind the last token."""
        return self.event.index + len(self.event.tokens)

    def token(self, index: int) -> Committed:
        """The token at a place of the answer that this round wrote."""
        return self.event.tokens[index - self.first]

    def depths(self) -> tuple[int, ...]:
        """How many guesses stand above each guess of the draft."""
        depths: list[int] = []
        for guess in self.event.guesses:
            depths.append(0 if guess.parent < 0 else depths[guess.parent] + 1)
        return tuple(depths)

    def cut(self, tokens: int) -> RoundRow:
        """The row with its first tokens alone, and with the guesses for their places."""
        depths, places, kept = self.depths(), dict[int, int](), list[Guess]()
        for number, guess in enumerate(self.event.guesses):
            if depths[number] < tokens:
                places[number] = len(kept)
                parent = guess.parent if guess.parent < 0 else places[guess.parent]
                kept.append(replace(guess, parent=parent))
        event = replace(self.event, tokens=self.event.tokens[:tokens], guesses=tuple(kept))
        return replace(self, event=event)

    def guesses_at(self, index: int) -> tuple[Guess, ...]:
        """The tested guesses for a place of the answer, the accepted one included."""
        return tuple(
            guess
            for guess, depth in zip(self.event.guesses, self.depths(), strict=True)
            if guess.tested and self.first + depth == index
        )

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The drafted tokens in the order of the draft, the target's own where it was chosen."""
        drafted = list(self._drafted())
        tested = [number for number, guess in enumerate(self.event.guesses) if guess.tested]
        at = tested[-1] + 1 if tested else len(drafted)
        return (*drafted[:at], *self._own(), *drafted[at:])

    def _drafted(self) -> Iterator[Piece]:
        last = max(self.end - 1, 0)
        for number, (guess, depth) in enumerate(
            zip(self.event.guesses, self.depths(), strict=True)
        ):
            text = token_text(guess.text, guess.token, self.ends)
            branches = number > 0 and guess.parent != number - 1
            yield Piece(_fate(guess), text, min(self.first + depth, last), branches)

    def _own(self) -> Iterator[Piece]:
        for number, token in enumerate(self.event.tokens):
            if token.kind is not Kind.ACCEPTED:
                text = token_text(token.text, token.token, self.ends)
                yield Piece(Fate(token.kind.value), text, self.first + number)

    @property
    def summary(self) -> str:
        """Who proposed how much, or why nobody did."""
        if not self.event.guesses:
            return shown(self.event.note or self.event.plan or "plain").removeprefix("auto → ")
        return guesses_in_words(self.event.guesses)

    @property
    def times(self) -> str:
        """Draft and verify, in ms; empty where no pass was made."""
        if not self.event.verify_s:
            return ""
        return f"{self.event.draft_s * 1e3:.1f}+{self.event.verify_s * 1e3:.1f}"


class Rounds:
    """Folds the rounds of all answers; the oldest are dropped where there are too many.

    version: grows with every change, so that a screen knows when to look again.
    ends: the tokens that end an answer of the model that is loaded, with their names.
    """

    def __init__(self, most: int = MOST_ROUNDS) -> None:
        self.version = 0
        self.ends: Mapping[int, str] = {}
        self._most = most
        self._count = 0
        self._rows: dict[int, list[RoundRow]] = {}

    def add(self, key: int, event: Round) -> RoundRow:
        """Fold a round of the answer `key`."""
        rows = self._rows.setdefault(key, [])
        row = RoundRow(rows[-1].number + 1 if rows else 1, event, self.ends)
        rows.append(row)
        self._count += 1
        self.version += 1
        if self._count > self._most:
            self._drop_oldest()
        return row

    def of(self, key: int) -> Sequence[RoundRow]:
        """The rounds of an answer that are still known, in order."""
        return self._rows.get(key, [])

    def position(self, key: int, index: int) -> int | None:
        """Where among `of(key)` the round stands that wrote the token at `index`."""
        rows = self.of(key)
        at = bisect_right(rows, index, key=attrgetter("first")) - 1
        return at if at >= 0 and index < rows[at].end else None

    def find(self, key: int, index: int) -> RoundRow | None:
        """The round that wrote the token at `index` of an answer, where it is known."""
        at = self.position(key, index)
        return None if at is None else self.of(key)[at]

    def retract(self, key: int, tokens: int) -> None:
        """Keep what wrote the first `tokens` tokens of an answer, which is written anew behind."""
        rows = self._rows.get(key, [])
        kept = bisect_right(rows, tokens - 1, key=attrgetter("first"))
        self._count -= len(rows) - kept
        del rows[kept:]
        if not kept:
            self._rows.pop(key, None)
        elif rows[-1].end > tokens:
            rows[-1] = rows[-1].cut(tokens - rows[-1].first)
        self.version += 1

    def steer(self, key: int, index: int, chosen: Alternative) -> RoundRow:
        """Retract all from `index` on; the chosen token stands there, as a round of its own."""
        self.retract(key, index)
        token = Committed(chosen.token, Kind.PLAIN, text=chosen.text, logprob=chosen.logprob)
        return self.add(key, Round(index, (token,), (), 0.0, 0.0, 0.0, plan=CHOSEN))

    def clear(self) -> None:
        self._rows.clear()
        self._count = 0
        self.version += 1

    def _drop_oldest(self) -> None:
        key, rows = next(iter(self._rows.items()))
        dropped = rows[: max(self._most // _DROPPED_AT_ONCE, 1)]
        del rows[: len(dropped)]
        self._count -= len(dropped)
        if not rows:
            del self._rows[key]


def in_view(pieces: Sequence[Piece], width: int, selected: int | None) -> tuple[int, int]:
    """The first piece and the one behind the last that are shown in `width` cells.

    The token at place `selected` of the answer is among them, or else the last that became part of
    it; two cells at each end that is cut are left for a mark.
    """
    sizes = [cell_len(piece.label) + 1 for piece in pieces]
    standing = [n for n, piece in enumerate(pieces) if piece.stands]
    of_selected = (n for n in standing if pieces[n].index == selected)
    wanted, first = next(of_selected, standing[-1] if standing else 0), 0
    while first < wanted and _behind_last(sizes, first, width) <= wanted:
        first += 1
    return first, _behind_last(sizes, first, width)


def _behind_last(sizes: Sequence[int], first: int, width: int) -> int:
    room = width + 1 - (2 if first else 0)  # no space is needed behind the last
    if sum(sizes[first:]) <= room:
        return len(sizes)
    last, used = first, 0
    while last < len(sizes) and used + sizes[last] <= room - 2:
        used += sizes[last]
        last += 1
    return max(last, first + 1)


def token_text(text: str, token: int, ends: Mapping[int, str]) -> str:
    """A token as it can be shown in a row: nothing invisible; its id where it has no text yet.

    ends: the tokens that end an answer, with their names, which are shown for want of a text.
    """
    if not text and token in ends:
        text = ends[token] or _NAMELESS_END
    return shown(text.replace("\n", "⏎"), _LONGEST_TEXT) or f"#{token}"


def _fate(guess: Guess) -> Fate:
    if guess.accepted:
        return Fate.ACCEPTED
    return Fate.REJECTED if guess.tested else Fate.UNTESTED
