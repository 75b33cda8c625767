"""The visible letters that stand for bytes in byte-level vocabularies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache


@cache
def letters_of_bytes() -> Mapping[int, str]:
    """The letter of each byte. Source: GPT-2, encoder.py, bytes_to_unicode()."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in visible]
    letters = {byte: chr(byte) for byte in visible}
    return letters | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


@cache
def bytes_of_letters() -> Mapping[str, int]:
    return {letter: byte for byte, letter in letters_of_bytes().items()}
