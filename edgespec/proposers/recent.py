"""A drafter whose context is shorter than the conversation, which reads the last part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from edgespec.decoding.draft import Draft, Tokens
from edgespec.decoding.session import Caps, Scores, Session

SHORTEST: Final = 512  # tokens of context from which the last part of a text says enough
_MARGIN: Final = 128  # tokens that guesses may take


class RecentSession:
    """A session that holds texts of `context` tokens, over one with room for fewer.

    Where a text is too long, the inner session holds its end, at least half of that room. What
    it begins with stays until the room is used up, so that most of it need not be read again.
    """

    def __init__(self, session: Session, context: int) -> None:
        self._session, self._context = session, context
        self._room = session.caps.context - _MARGIN
        self._start = 0

    @property
    def caps(self) -> Caps:
        return replace(self._session.caps, context=self._context)

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        self._start = self._start_for(len(tokens))
        for held in self._session.prefill(tokens[self._start :]):
            yield self._start + held

    def held(self, tokens: Tokens) -> int:
        start = self._start_for(len(tokens))
        return start + self._session.held(tokens[start:])

    def verify(self, draft: Draft) -> Scores:
        return self._session.verify(draft)

    def extend(self, grown: Draft) -> Scores:
        return self._session.extend(grown)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self._session.commit(path, next_token)

    def reset(self) -> None:
        self._start = 0
        self._session.reset()

    def _start_for(self, length: int) -> int:
        """Where what is held begins: a step of a fixed length back, so that it seldom moves."""
        if length <= self._room:
            return 0
        step = max(1, self._room // 2)
        return -(-(length - self._room) // step) * step
