"""Segments are split into the tokens of the whole text."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from byte_tokenizer import CONTROLS, ByteTokenizer
from hypothesis import given
from hypothesis import strategies as st

from edgespec.text.splitting import Splitter
from edgespec.text.template import Segment

_NAMES = re.compile("(" + "|".join(map(re.escape, CONTROLS)) + ")")


@dataclass(frozen=True)
class Spaced(ByteTokenizer):
    """Puts a space before every text, as SentencePiece does.

    behind_controls: before what follows a control token, too.
    """

    behind_controls: bool = True

    def encode(self, text: str, *, special: bool) -> list[int]:
        ids: list[int] = []
        for part in filter(None, _NAMES.split(text) if special else [text]):
            control = special and part in CONTROLS
            first = not ids or (self.behind_controls and ids[-1] > 255)
            spaced = f" {part}" if first and not control else part
            ids += super().encode(spaced, special=special)
        return ids


said = st.sampled_from(["a", "b c", " d", "e ", " ", "\n", "é\n"]).map(
    lambda text: Segment(text, special=False)
)
written = st.sampled_from(["user\n", "<eos>", "<|im_end|>\n", "<|im_start|>", "[x] ", " "]).map(
    lambda text: Segment(text, special=True)
)


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), Spaced(), Spaced(behind_controls=False)])
@given(segments=st.lists(said | written, max_size=8))
def test_segments_are_split_as_the_text_of_them_all(
    tokenizer: ByteTokenizer, segments: list[Segment]
) -> None:
    whole = "".join(segment.text for segment in segments)
    assert Splitter(tokenizer).ids(segments) == tokenizer.encode(whole, special=True)


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), Spaced(), Spaced(behind_controls=False)])
@given(segments=st.lists(said | written, min_size=1, max_size=8))
def test_what_stands_behind_other_text_is_split_as_it_is_within(
    tokenizer: ByteTokenizer, segments: list[Segment]
) -> None:
    before = tokenizer.encode("before", special=True)
    whole = "before" + "".join(segment.text for segment in segments)
    behind = Splitter(tokenizer).ids(segments, behind_text=True)
    assert [*before, *behind] == tokenizer.encode(whole, special=True)


def test_what_was_said_makes_no_control_token() -> None:
    for tokenizer in (ByteTokenizer(), Spaced()):
        ids = Splitter(tokenizer).ids([Segment("user\n", True), Segment("<eos>", False)])
        assert max(ids) < 256


def test_a_space_between_two_segments_goes_with_the_word_behind_it() -> None:
    """A token may hold both."""

    class Words(Spaced):
        def encode(self, text: str, *, special: bool) -> list[int]:
            spaced = "".join(map(chr, super().encode(text, special=special)))
            return [ord(c) for c in spaced.replace(" hi", "\xff")]

        def piece(self, token: int) -> bytes:
            return b" hi" if token == 255 else super().piece(token)

    segments = [Segment("[x] ", True), Segment("hi", False), Segment(" [y]", True)]
    assert Splitter(Words()).ids(segments) == [*b" [x]", 255, *b" [y]"]
