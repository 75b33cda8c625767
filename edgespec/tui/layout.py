"""The rows of one message: its tokens or its Markdown, and its reasoning folded or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from edgespec.tui.rows import Mark, Row, Voice, Wrapped
from edgespec.tui.thinking import Reasoning


class Setter(Protocol):
    """Sets Markdown as rows."""

    def rows(self, text: str, width: int) -> list[Row] | None:
        """None where that would cost too much; the tokens are shown then."""


class Spoken(Protocol):
    """What a layout wants to know of a message."""

    @property
    def voice(self) -> Voice: ...
    @property
    def whole(self) -> bool: ...
    @property
    def reasoning(self) -> Reasoning: ...
    @property
    def thought_tokens(self) -> int: ...
    @property
    def answer(self) -> str: ...
    def pieces(self) -> Iterator[tuple[str, Mark, int]]: ...


@dataclass(frozen=True, slots=True)
class Manner:
    """How messages are laid out. setter: None shows the tokens of whole answers too."""

    width: int
    folded: bool = True
    setter: Setter | None = None


class Layout:
    """The rows of a message in one manner; grows with it as long as its reasoning, if there is
    any, begins and ends where it did."""

    def __init__(self, message: Spoken, manner: Manner) -> None:
        self.manner = manner
        self._message = message
        self._reasoning = message.reasoning
        self._thought: Wrapped | None = None
        self._rows: list[Row] | None = None
        self._set = self._markdown()
        opened, trimmed = self._reasoning.opened, False
        if opened is not None:
            self._thought = Wrapped(Voice.THOUGHT, manner.width, opened, trimmed=True)
            trimmed = True
        self._answer = Wrapped(
            message.voice, manner.width, self._reasoning.resumed, trimmed=trimmed
        )
        for text, mark, place in message.pieces():
            self._fill(text, mark, place)

    def add(self, text: str, mark: Mark, place: int) -> int:
        """Add a token; returns the first row that changed."""
        first = 0 if self._thinks and self.manner.folded else len(self.rows) - 1
        self._fill(text, mark, place)
        self._rows = None
        return first

    def end(self) -> bool:
        """The message is whole; whether its rows are others now."""
        before = list(self.rows)
        self._set = self._markdown()
        self._rows = None
        return before != self.rows

    def _markdown(self) -> list[Row] | None:
        setter, message = self.manner.setter, self._message
        if setter is None or not message.whole or message.voice is not Voice.ANSWER:
            return None
        return setter.rows(message.answer, self.manner.width)

    def _fill(self, text: str, mark: Mark, place: int) -> None:
        opened, closed = self._reasoning.opened, self._reasoning.closed
        if self._thought is not None and opened is not None:
            last = len(text) if closed is None else max(closed - place, 0)
            self._thought.add(text[max(opened - place, 0) : last], mark)
            if closed is None:
                return
        if self._set is None:
            self._answer.add(text[max(self._reasoning.resumed - place, 0) :], mark)

    @property
    def _thinks(self) -> bool:
        """Whether the reasoning still goes on."""
        return (
            self._thought is not None and self._reasoning.closed is None and not self._message.whole
        )

    @property
    def rows(self) -> list[Row]:
        """At least one."""
        if self._thought is None:
            return self._set or self._answer.rows
        if self._rows is None:
            self._rows = self._joined(self._thought)
        return self._rows

    def _joined(self, thought: Wrapped) -> list[Row]:
        rows = [] if self._is_blank(thought) else self._thought_rows(thought)
        answer = self._set or ([] if self._answer.empty else self._answer.rows)
        if answer:
            answer[0].opens = not rows
        if rows and answer and not self.manner.folded:
            rows.append(Row(self._message.voice))
        return [*rows, *answer] or self._answer.rows

    def _is_blank(self, thought: Wrapped) -> bool:
        return not self._thinks and not any(row.text.strip() for row in thought.rows)

    def _thought_rows(self, thought: Wrapped) -> list[Row]:
        number = self._message.thought_tokens
        tokens = f"{number} token{'' if number == 1 else 's'}"
        sign = "▸" if self.manner.folded else "▾"
        words = f"thinking, {tokens} so far" if self._thinks else f"thought for {tokens}"
        if self._thinks and not self.manner.folded:
            words = "thinking"  # the number would change with every token, far above the end
        head = Row(Voice.THOUGHT, opens=True)
        head.add(f"{sign} {words}", Mark.PLAIN)
        text = list(thought.rows)
        while len(text) > 1 and not text[-1].text.strip():
            text.pop()
        text[0] = replace(text[0], opens=False)
        if not self.manner.folded:
            return [head, *text]
        return [head, replace(text[-1], continues=False)] if self._thinks else [head]
