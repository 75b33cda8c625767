"""Splitting a text that comes in segments into the tokens that the whole text is split into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final

from edgespec.text.template import Segment
from edgespec.text.tokenizer import Tokenizer

_LEAD: Final = "\x01"  # merges with nothing
_LONGEST_NAME: Final = 64  # characters of a control token


class Splitter:
    """Splits each segment by itself, so that what was said makes no control tokens.

    SentencePiece puts a space before every text that it is given, and llama.cpp one behind every
    control token. A segment gets that space only where the whole text would have it.
    Source: llama.cpp, llama-vocab.cpp, tokenize, LLAMA_VOCAB_TYPE_SPM.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._adds_spaces = self._bytes(tokenizer.encode("a", special=False)) == b" a"
        self._lead = tokenizer.encode(_LEAD, special=False) if self._adds_spaces else []

    def ids(self, segments: Sequence[Segment], *, behind_text: bool = False) -> list[int]:
        """The ids of a text, or of what stands behind another one."""
        ids: list[int] = []
        if not self._adds_spaces:
            for segment in segments:
                ids += self._alone(segment)
            return ids
        within = behind_text
        for segment in _with_spaces_in_front(segments):
            ids += self._within(segment) if within else self._alone(segment)
            within = not self._adds_space_behind(segment)
        return ids

    def _alone(self, segment: Segment) -> list[int]:
        return self._tokenizer.encode(segment.text, special=segment.special)

    def _within(self, segment: Segment) -> list[int]:
        """The ids of a segment that other text stands before."""
        ids = self._tokenizer.encode(_LEAD + segment.text, special=segment.special)
        at = len(self._lead)
        return ids[at:] if ids[:at] == self._lead else self._alone(segment)

    def _adds_space_behind(self, segment: Segment) -> bool:
        """Whether a text that follows gets a space, as behind a control token."""
        end = Segment(segment.text[-_LONGEST_NAME:], segment.special)
        followed = Segment(end.text + "a", segment.special)
        return self._bytes(self._alone(followed)) == self._bytes(self._alone(end)) + b" a"

    def _bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(map(self._tokenizer.piece, ids))


def _with_spaces_in_front(segments: Sequence[Segment]) -> Iterator[Segment]:
    """The same text, with spaces between two segments in the second one: a token may hold a word
    and the space before it."""
    spaces = ""
    for segment, following in zip_longest(segments, segments[1:]):
        text = spaces + segment.text
        kept = text if following is None else text.rstrip(" ")
        spaces = text[len(kept) :]
        if kept:
            yield Segment(kept, segment.special)
