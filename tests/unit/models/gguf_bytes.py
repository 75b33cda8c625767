"""GGUF files byte by byte, so that tests can make them lie."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from edgespec.errors import ModelFileError
from edgespec.models.gguf import read_header

U32, F32, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10

MODEL: dict[str, Any] = {
    "general.architecture": "llama",
    "general.name": "Test 1B",
    "llama.context_length": 2048,
    "llama.embedding_length": 64,
    "llama.block_count": 2,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "<|end|>"],
    "tokenizer.ggml.token_type": [1, 1, 1, 3],
}


@dataclass
class Tensor:
    """A tensor's entry and, unless `n_bytes` is given, as many zero bytes as it needs."""

    name: str = "token_embd.weight"
    dims: Sequence[int] = (64, 4)
    ggml_type: int = 0
    offset: int = 0
    n_dims: int | None = None


@dataclass
class Gguf:
    """A file to be made; every count can be set to something untrue."""

    metadata: Mapping[str, Any] = field(default_factory=lambda: dict(MODEL))
    tensors: Sequence[Tensor] = (Tensor(),)
    magic: bytes = b"GGUF"
    version: int = 3
    n_tensors: int | None = None
    n_entries: int | None = None
    raw_entries: bytes = b""
    data: bytes = b"\0" * (64 * 4 * 4)
    alignment: int = 32

    def header(self) -> bytes:
        n_tensors = len(self.tensors) if self.n_tensors is None else self.n_tensors
        n_entries = len(self.metadata) if self.n_entries is None else self.n_entries
        out = self.magic + struct.pack("<IQQ", self.version, n_tensors, n_entries)
        out += b"".join(string(key) + value(v) for key, v in self.metadata.items())
        out += self.raw_entries
        for t in self.tensors:
            n_dims = len(t.dims) if t.n_dims is None else t.n_dims
            out += string(t.name) + struct.pack("<I", n_dims)
            out += b"".join(struct.pack("<Q", d) for d in t.dims)
            out += struct.pack("<IQ", t.ggml_type, t.offset)
        return out

    def bytes(self) -> bytes:
        header = self.header()
        return header + b"\0" * (-len(header) % self.alignment) + self.data

    def write(self, path: Path) -> Path:
        path.write_bytes(self.bytes())
        return path


def string(text: str | bytes, length: int | None = None) -> bytes:
    """A string whose length may lie."""
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw) if length is None else length) + raw


def value(v: Any) -> bytes:
    """A value with its type in front; bytes stand for themselves."""
    if isinstance(v, bytes):
        return v
    if isinstance(v, bool):
        return struct.pack("<I?", BOOL, v)
    if isinstance(v, int):
        return struct.pack("<II", U32, v)
    if isinstance(v, float):
        return struct.pack("<If", F32, v)
    if isinstance(v, str):
        return struct.pack("<I", STRING) + string(v)
    kind = STRING if isinstance(v[0], str) else U32
    items = b"".join(string(x) if kind == STRING else struct.pack("<I", x) for x in v)
    return struct.pack("<IIQ", ARRAY, kind, len(v)) + items


def vocabulary(tokens: Sequence[str], types: Sequence[int] | None = None, **more: Any) -> Gguf:
    """A model with these tokens; `more` replaces metadata, with __ for the dots in keys."""
    changes = {key.replace("__", "."): v for key, v in more.items()}
    metadata = MODEL | {"tokenizer.ggml.tokens": list(tokens)} | changes
    metadata["tokenizer.ggml.token_type"] = list(types or [1] * len(tokens))
    return Gguf(metadata)


def refused(path: Path) -> str:
    """The one-line message with which the reader turns this file down."""
    with pytest.raises(ModelFileError) as caught:
        read_header(path)
    message = str(caught.value)
    assert path.name in message
    assert "\n" not in message
    return message
