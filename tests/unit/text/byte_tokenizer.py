"""A tokenizer small enough to think about: one token per byte, and a few control tokens."""

import re
from dataclasses import dataclass, field
from itertools import pairwise

CONTROLS = ("<|im_start|>", "<|im_end|>", "<eos>")


@dataclass(frozen=True)
class ByteTokenizer:
    """Tokens 0 to 255 are bytes, then control tokens, then whatever `more` adds."""

    more: tuple[bytes, ...] = ()
    vocab: int = field(init=False, default=1024)
    bos: int | None = None
    end_tokens: frozenset[int] = frozenset({257, 258})

    def encode(self, text: str, *, special: bool) -> list[int]:
        pattern = "|".join(map(re.escape, CONTROLS))
        parts = re.split(f"({pattern})", text) if special else [text]
        tokens: list[int] = []
        for part in parts:
            if special and part in CONTROLS:
                tokens.append(256 + CONTROLS.index(part))
            else:
                tokens.extend(part.encode())
        return tokens

    def piece(self, token: int) -> bytes:
        if token < 256:
            return bytes([token])
        at = token - 256 - len(CONTROLS)
        return b"" if at < 0 else self.more[at]

    def template(self) -> str | None:
        return None

    def special_text(self, name: str) -> str:
        return {"eos": "<eos>"}.get(name, "")


def with_pieces(pieces: list[bytes]) -> tuple[ByteTokenizer, list[int]]:
    """A tokenizer that has these pieces, and the tokens that spell them in order."""
    first = 256 + len(CONTROLS)
    return ByteTokenizer(tuple(pieces)), list(range(first, first + len(pieces)))


def cut(data: bytes, borders: list[int]) -> list[bytes]:
    """`data` cut at the given places."""
    places = sorted({0, len(data), *(border % (len(data) + 1) for border in borders)})
    return [data[a:b] for a, b in pairwise(places)]
