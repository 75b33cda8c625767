"""llama.cpp's own greedy loop, as its examples have it: decode, sample, decode."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.errors import BadInput
from edgespec_llamacpp.library import library
from edgespec_llamacpp.passes import decode


class LlamaPlainLoop:
    """One token a pass through llama_decode and llama.cpp's greedy sampler.

    The prompt is read in the pieces in which a session reads it, its last token alone, so that
    rounding cannot tell the two apart.
    """

    def __init__(self, context: Any, chunk: int, room: int) -> None:
        self._lib = library()
        self._context, self._chunk, self._room = context, chunk, room
        self._memory = self._lib.llama_get_memory(context)
        self._sampler = self._lib.llama_sampler_init_greedy()
        self._cached = TokenHistory()

    def answer(self, prompt: Tokens, max_tokens: int, end_tokens: Collection[int]) -> Iterator[int]:
        if not 0 < len(prompt) < self._room:
            raise BadInput(
                f"The prompt has {len(prompt)} tokens and the context holds {self._room}."
                " Shorten it, or raise --context."
            )
        return self._answer(prompt, min(max_tokens, self._room - len(prompt)), end_tokens)

    def forget(self) -> None:
        self._cached.truncate(0)
        self._lib.llama_memory_clear(self._memory, True)

    def close(self) -> None:
        """Free the cache; the loop is of no use afterwards."""
        context, self._context = self._context, None  # never freed twice
        if context is not None:
            self._lib.llama_sampler_free(self._sampler)
            self._lib.llama_free(context)

    def _answer(self, prompt: Tokens, count: int, end_tokens: Collection[int]) -> Iterator[int]:
        ids = np.array(prompt, dtype=np.int32)  # a copy: the library wants to be able to write
        self._keep(common_prefix(self._cached.array, ids[:-1]))
        while (at := len(self._cached)) < len(ids) - 1:
            end = at - at % self._chunk + self._chunk
            self._decode(ids[at : min(end, len(ids) - 1)])
        line = ids[-1:].copy()
        for _ in range(count):
            self._decode(line)
            token = int(self._lib.llama_sampler_sample(self._sampler, self._context, -1))
            yield token
            if token in end_tokens:
                return
            line[0] = token

    def _keep(self, wanted: int) -> None:
        """Drop what the cache holds beyond `wanted` tokens, or all where it cannot go back."""
        self._cached.truncate(wanted)
        # an interrupt may have come when a pass was done and not yet counted
        if not self._lib.llama_memory_seq_rm(self._memory, 0, wanted, -1):
            self.forget()

    def _decode(self, line: Tokens) -> None:
        tokens = (self._lib.llama_token * len(line)).from_buffer(line)
        decode(self._context, self._lib.llama_batch_get_one(tokens, len(line)))
        self._cached.extend(line.tolist())
