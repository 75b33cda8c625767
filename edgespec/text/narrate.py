"""Gives the events of a run their text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from edgespec.decoding.events import Finished, Round
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

    def round(self, event: Round) -> Round:
        """`event` with the text of its tokens and of its guesses."""
        tokens = tuple(replace(item, text=self._committed(item.token)) for item in event.tokens)
        guesses = tuple(replace(item, text=self._guess(item.token)) for item in event.guesses)
        return replace(event, tokens=tokens, guesses=guesses)

    def finish(self, event: Finished) -> Finished:
        """`event` with what was still held back."""
        held = self._stops.feed(self._detokenizer.flush()) + self._stops.flush()
        return replace(event, text=self._sanitizer.feed(held) + self._sanitizer.flush())

    def _committed(self, token: int) -> str:
        if token in self._tokenizer.end_tokens:
            return ""
        return self._sanitizer.feed(self._stops.feed(self._detokenizer.feed(token)))

    def _guess(self, token: int) -> str:
        """A guess by itself: it may be half a character, or be thrown away."""
        if token in self._tokenizer.end_tokens:
            return ""
        return clean(self._tokenizer.piece(token).decode("utf-8", errors="replace"))
