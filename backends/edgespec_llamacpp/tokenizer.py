"""Text to tokens and back, with the vocabulary inside the model file."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

from edgespec.errors import BackendFailed
from edgespec.text.thoughts import MARKS
from edgespec_llamacpp.library import library

_USUAL_PIECE = 256  # bytes


class LlamaTokenizer:
    """The vocabulary of one loaded model."""

    def __init__(self, model: Any) -> None:
        self._lib = library()
        self._model = model
        self._vocab = self._lib.llama_model_get_vocab(model)
        self.vocab = int(self._lib.llama_vocab_n_tokens(self._vocab))
        self._pieces: dict[int, bytes] = {}
        is_end = self._lib.llama_vocab_is_eog
        self.end_tokens = frozenset(t for t in range(self.vocab) if is_end(self._vocab, t))

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids; with `special`, names of control tokens become those tokens."""
        data = text.encode("utf-8", "replace")
        if not data:
            return []
        room = len(data) + 8
        ids = (self._lib.llama_token * room)()
        n = self._lib.llama_tokenize(self._vocab, data, len(data), ids, room, False, special)
        if n < 0:
            raise BackendFailed(f"A text of {len(data)} bytes could not be split into tokens.")
        return list(ids[:n])

    def piece(self, token: int) -> bytes:
        """The bytes of a token's text; control tokens that mark no thought have none."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token)
        return known

    @property
    def bos(self) -> int | None:
        """The token every text must start with, where the model wants one."""
        if not self._lib.llama_vocab_get_add_bos(self._vocab):
            return None
        token = int(self._lib.llama_vocab_bos(self._vocab))
        return token if token >= 0 else None

    def template(self) -> str | None:
        """The chat template of the model file, or None."""
        found = self._lib.llama_model_chat_template(self._model, None)
        return found.decode("utf-8", "replace") if found else None

    def special_text(self, name: str) -> str:
        """The text of the "bos" or "eos" token; empty where there is none."""
        token = {"bos": self._lib.llama_vocab_bos, "eos": self._lib.llama_vocab_eos}[name](
            self._vocab
        )
        if token < 0:
            return ""
        text: bytes = self._lib.llama_vocab_get_text(self._vocab, token)
        return text.decode("utf-8", "replace")

    @cached_property
    def _marks(self) -> frozenset[int]:
        """Tokens that are a mark of a thought; asked late, since a drafter's vocabulary of its own
        may be one that no text can be split into."""
        marks = [self.encode(mark, special=True) for mark in MARKS]
        return frozenset(ids[0] for ids in marks if len(ids) == 1)

    def _read_piece(self, token: int) -> bytes:
        size = _USUAL_PIECE
        while True:
            # one of its own for each call: several threads may ask at once
            buffer = ctypes.create_string_buffer(size)
            n = self._lib.llama_token_to_piece(
                self._vocab, token, buffer, size, 0, token in self._marks
            )
            if n >= 0:
                return buffer.raw[:n]
            size = -n
