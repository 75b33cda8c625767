"""One message on the screen: its tokens, and where they stand in its text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from edgespec.text.sanitize import Sanitizer, clean
from edgespec.tui.layout import Layout, Manner
from edgespec.tui.rows import Mark, Row, Voice
from edgespec.tui.thinking import Reasoning

_TAB = 4


@dataclass(frozen=True, slots=True)
class BlockContent:
    """One message, as it is handed to the view.

    key     a message's id; None for notes, which cannot be named later.
    runs    one for each token, which is how tokens are numbered.
    whole   nothing more will be added; an answer is then shown as Markdown.
    thinking  the prompt opened a thought, so the text begins within one.
    """

    key: int | None
    voice: Voice
    runs: tuple[tuple[str, Mark], ...] = ()
    label: str = ""
    whole: bool = True
    thinking: bool = False


class Block:
    """A message that grows token by token; laid out when that is needed.

    Places in its text count characters of the sanitised text, tabs as four spaces.
    """

    def __init__(self, content: BlockContent) -> None:
        self.key = content.key
        self.voice = content.voice
        self.label = clean(content.label, one_line=True)
        self.whole = content.whole
        self.apart = False  # an empty row stands before it
        self._unread: Sequence[tuple[str, Mark]] = content.runs
        text = "".join([text for text, _ in content.runs])
        self._characters = len(text)
        self._line_ends = text.count("\n")
        self._sanitizer = Sanitizer()
        self._reasoning = Reasoning(content.thinking)
        self._tokens: list[tuple[str, Mark]] = []
        self._ends: list[int] = []
        self._layout: Layout | None = None

    def _read_all(self) -> None:
        """Bring in the tokens that were only counted yet."""
        unread, self._unread = self._unread, ()
        for text, mark in unread:
            self._begin_token(mark)
            self._read(text)

    def _begin_token(self, mark: Mark) -> None:
        self._tokens.append(("", mark))
        self._ends.append(self._ends[-1] if self._ends else 0)

    def _read(self, text: str) -> bool:
        """Go on with the last token; whether the reasoning now begins or ends elsewhere."""
        safe = self._sanitizer.feed(text)
        shown = safe.replace("\t", " " * _TAB)
        before, mark = self._tokens[-1]
        self._tokens[-1] = (before + safe, mark)
        self._ends[-1] += len(shown)
        return self.voice is Voice.ANSWER and self._reasoning.feed(shown)

    @property
    def head(self) -> int:
        """Rows before the text: one, empty but for the label, or none."""
        return int(self.apart or bool(self.label))

    @property
    def count(self) -> int:
        """The number of tokens."""
        return len(self._tokens) + len(self._unread)

    @property
    def reasoning(self) -> Reasoning:
        self._read_all()
        return self._reasoning

    def think(self) -> None:
        """The prompt has opened a thought: the text begins within it."""
        self._read_all()
        self._layout, self._reasoning = None, Reasoning(by_prompt=True)
        for text, _, _ in self.pieces():
            self._reasoning.feed(text)

    @property
    def thought_tokens(self) -> int:
        """How many tokens the reasoning has."""
        opened, closed = self.reasoning.opened, self.reasoning.closed
        if opened is None or opened == closed:
            return 0
        last = len(self._ends) if closed is None else bisect_left(self._ends, closed) + 1
        return last - bisect_right(self._ends, opened)

    @property
    def source(self) -> str:
        """The text as it was written, without what a terminal must not see."""
        self._read_all()
        return "".join(text for text, _ in self._tokens)

    @property
    def answer(self) -> str:
        """The source without the reasoning."""
        resumed = self.reasoning.resumed
        if not resumed:
            return self.source if self.reasoning.opened is None else ""
        first = bisect_left(self._ends, resumed)
        start, _ = self.span_of(first)
        text, _ = self._tokens[first]
        return _behind(text, resumed - start) + "".join(t for t, _ in self._tokens[first + 1 :])

    def pieces(self) -> Iterator[tuple[str, Mark, int]]:
        """Every token as it is shown, and its place."""
        self._read_all()
        place = 0
        for (text, mark), end in zip(self._tokens, self._ends, strict=True):
            yield text.replace("\t", " " * _TAB), mark, place
            place = end

    def append(self, text: str, mark: Mark) -> int:
        """Add a token; returns the first row of the text that is to be painted anew."""
        self._read_all()
        self._begin_token(mark)
        return self._grow(text)

    def extend(self, text: str) -> int:
        """Add to the last token, or a first one; returns what append() does."""
        self._read_all()
        if not self._tokens:
            self._begin_token(Mark.PLAIN)
        return self._grow(text)

    def _grow(self, text: str) -> int:
        self._characters += len(text)
        self._line_ends += text.count("\n")
        (before, mark), start = self._tokens[-1], self._ends[-1]
        restructured = self._read(text)
        if restructured or self._layout is None:
            self._layout = None
            return 0
        shown = self._tokens[-1][0][len(before) :].replace("\t", " " * _TAB)
        return self._layout.add(shown, mark, start)

    def end(self) -> bool:
        """Nothing more will be added; whether rows that were laid out are others now."""
        self.whole = True
        return self._layout is not None and self._layout.end()

    def rows(self, manner: Manner) -> list[Row]:
        """The rows of the text, without the head."""
        if self._layout is None or self._layout.manner != manner:
            self._layout = Layout(self, manner)
        return self._layout.rows

    def is_laid_out(self, manner: Manner) -> bool:
        return self._layout is not None and self._layout.manner == manner

    def height(self, manner: Manner) -> int:
        """Rows with the head; an estimate until the block is laid out in this manner."""
        if self._layout is not None and self._layout.manner == manner:
            return self.head + len(self._layout.rows)
        return self.head + 1 + self._line_ends + self._characters // manner.width

    def token_at(self, place: int) -> int | None:
        """The token that holds a place in the text."""
        self._read_all()
        index = bisect_right(self._ends, place)
        return index if index < len(self._ends) else None

    def span_of(self, index: int) -> tuple[int, int]:
        """Where a token's text begins and ends."""
        self._read_all()
        return (self._ends[index - 1] if index else 0), self._ends[index]


def _behind(text: str, places: int) -> str:
    """`text` without its first `places` places."""
    for at, char in enumerate(text):
        if places <= 0:
            return text[at:]
        places -= _TAB if char == "\t" else 1
    return ""
