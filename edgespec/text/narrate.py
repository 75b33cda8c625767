"""Gives the events of a run their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec.decoding.events import Committed, Finished, Round
from edgespec.text.detokenize import Detokenizer
from edgespec.text.sanitize import Sanitizer, clean
from edgespec.text.stops import StopFilter
from edgespec.text.tokenizer import Tokenizer


class Narrator:
    """Fills in the text of one answer's events, fit for a terminal.

    All texts together are the answer up to its stop string. Text that waits (for the rest of a
    character, or because a stop string may have begun) appears with the token that settles it.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._detokenizer = Detokenizer(tokenizer)
        self._stops = StopFilter(stops)
        self._sanitizer = Sanitizer()

    @property
    def stopped(self) -> bool:
        """Whether a stop string ended the text, so that it says less than its tokens."""
        return self._stops.stopped

    def round(self, event: Round) -> Round:
        """`event` with the text of its tokens, of what they might have been, and of its guesses."""
        tokens = tuple(self._told(item) for item in event.tokens)
        guesses = tuple(replace(item, text=self.alone(item.token)) for item in event.guesses)
        return replace(event, tokens=tokens, guesses=guesses)

    def finish(self, event: Finished) -> Finished:
        """`event` with what was still held back."""
        held = self._stops.feed(self._detokenizer.flush()) + self._stops.flush()
        return replace(event, text=self._sanitizer.feed(held) + self._sanitizer.flush())

    def begun(self, tokens: Sequence[int]) -> tuple[str, ...]:
        """The texts of tokens that stand already; what comes next goes on where they end."""
        return tuple(self._committed(token) for token in tokens)

    def _told(self, item: Committed) -> Committed:
        others = tuple(replace(other, text=self.alone(other.token)) for other in item.alternatives)
        return replace(item, text=self._committed(item.token), alternatives=others)

    def _committed(self, token: int) -> str:
        if token in self._tokenizer.end_tokens:
            return ""
        return self._sanitizer.feed(self._stops.feed_behind(*self._detokenizer.told(token)))

    def alone(self, token: int) -> str:
        """A token by itself: it may be half a character, or be thrown away. Empty where it ends
        the answer."""
        if token in self._tokenizer.end_tokens:
            return ""
        return clean(self._tokenizer.piece(token).decode("utf-8", errors="replace"))
