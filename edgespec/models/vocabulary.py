"""The vocabulary in a tokenizer.json, for comparing two models; nothing is tokenized here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError
from edgespec.models.shown import shown
from edgespec.models.wire import damaged

_MOST_BYTES: Final = 256 << 20
MOST_TOKENS: Final = 1 << 21  # several times the largest vocabulary there is
# the way in which llama.cpp's converter tells control tokens that nobody marked as such
_LOOKS_SPECIAL: Final = re.compile(
    r"<\|[^\s|<>]{1,60}\|>|<｜[^\s<>]{1,60}｜>|</?s>|<(bos|eos|pad|unk)>"  # noqa: RUF001
    r"|<(start|end)_of_turn>|\[/?INST\]"
)


class TokenType(IntEnum):
    """What a token is for. Source: llama.h, enum llama_token_type."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


def looks_special(text: str) -> bool:
    """Whether a token is one that steers a model, by its text."""
    return _LOOKS_SPECIAL.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Texts and types by id. kind: `gpt2` for bytes spelled as letters, `llama` for SentencePiece.

    types: int64, by TokenType.
    """

    kind: str
    tokens: tuple[bytes, ...]
    types: NDArray[np.int64]


NO_VOCABULARY: Final = Vocabulary("", (), np.empty(0, np.int64))


def read_json(path: Path, most_bytes: int) -> dict[str, Any]:
    """One JSON object. Raises: OSError; ModelFileError where it is none, or larger."""
    if os.path.exists(path) and not os.path.isfile(path):  # a pipe would never end
        raise damaged(path, "it is no file")
    with path.open("rb") as file:
        text = file.read(most_bytes + 1)
    if len(text) > most_bytes:
        raise ModelFileError(
            f"{shown(path)} is larger than {most_bytes >> 20} MiB, which no such file is;"
            " check where the model comes from."
        )
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(path, "it is no JSON") from error
    if not isinstance(values, dict):
        raise damaged(path, "it is no JSON object")
    return values


def read_vocabulary(path: Path, size: int) -> Vocabulary:
    """The vocabulary of one tokenizer.json, padded to `size` ids; nothing where there is no file.

    Raises: ModelFileError.
    """
    try:
        values = read_json(path, _MOST_BYTES)
    except FileNotFoundError:
        return NO_VOCABULARY
    except OSError as error:
        reason = shown(error.strerror or error)
        raise ModelFileError(f"{shown(path)} cannot be read ({reason}); check it.") from error
    model = values.get("model")
    if not isinstance(model, dict):
        raise damaged(path, "it holds no vocabulary")
    texts: dict[int, str] = {}
    for token, text in _entries(path, model.get("vocab")):
        texts[token] = text
    added = _added(path, values.get("added_tokens") or [])
    texts |= {token: text for token, (text, _) in added.items()}
    count = max([*texts, size - 1]) + 1
    types = np.full(count, TokenType.NORMAL, np.int64)
    tokens = []
    for token in range(count):
        if token not in texts:
            types[token] = TokenType.UNUSED
        elif token in added:
            special = added[token][1] or looks_special(texts[token])
            types[token] = TokenType.CONTROL if special else TokenType.USER_DEFINED
        tokens.append(texts.get(token, f"[PAD{token}]").encode("utf-8", "replace"))
    return Vocabulary(_kind(values), tuple(tokens), types)


def _entries(path: Path, vocab: Any) -> Iterable[tuple[int, str]]:
    """Ids and texts of the model's own part: a table by text, or a list of texts and scores."""
    if isinstance(vocab, dict):
        pairs = [(token, text) for text, token in vocab.items()]
    elif isinstance(vocab, list) and all(isinstance(e, list) and e for e in vocab):
        pairs = [(token, entry[0]) for token, entry in enumerate(vocab)]
    else:
        raise damaged(path, "it holds no vocabulary")
    for token, text in pairs:
        if type(token) is not int or not 0 <= token < MOST_TOKENS or not isinstance(text, str):
            raise damaged(path, f"its entry {shown(text, 40)} makes no sense")
    return pairs


def _added(path: Path, entries: Any) -> dict[int, tuple[str, bool]]:
    """Text of every added token, and whether it is marked as special."""
    found: dict[int, tuple[str, bool]] = {}
    for entry in entries if isinstance(entries, list) else [None]:
        match entry:
            case {"id": int() as token, "content": str() as text, **rest} if (
                0 <= token < MOST_TOKENS
            ):
                found[token] = (text, rest.get("special") is True)
            case _:
                raise damaged(path, "its added tokens make no sense")
    return found


def _kind(values: Mapping[str, Any]) -> str:
    """How bytes are spelled, by the name that GGUF gives to such tokenizers."""
    parts = json.dumps([values.get("decoder"), values.get("pre_tokenizer")])
    return "gpt2" if '"ByteLevel"' in parts else "llama"
