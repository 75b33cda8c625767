"""Many texts in one llama.cpp context, one sequence each, one token of each in a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edgespec.decoding.draft import Row
from edgespec.errors import BackendFailed, CacheFull
from edgespec_llamacpp.library import library
from edgespec_llamacpp.passes import decode, scores


class LlamaBatch:
    """See edgespec.train.batch.Batch."""

    def __init__(self, context: Any, slots: int, room: int, vocab: int) -> None:
        self._lib = library()
        self._context, self._vocab = context, vocab
        self.slots, self.context = slots, room
        self._memory = self._lib.llama_get_memory(context)
        self._batch = self._lib.llama_batch_init(slots, 0, 1)
        self._read = [0] * slots
        self._unsettled = set[int]()  # slots whose cache may hold more than was counted

    def step(self, slots: Sequence[int], tokens: Sequence[int]) -> Row:
        self._settle()
        batch, read = self._batch, self._read.copy()
        batch.n_tokens = len(slots)
        for row, (slot, token) in enumerate(zip(slots, tokens, strict=True)):
            if read[slot] >= self.context:
                raise CacheFull(f"Slot {slot} holds its {self.context} tokens already.")
            batch.token[row], batch.pos[row] = token, read[slot]
            batch.n_seq_id[row], batch.seq_id[row][0], batch.logits[row] = 1, slot, 1
            read[slot] += 1
        self._unsettled.update(slots)
        decode(self._context, batch)
        self._read = read
        self._unsettled.clear()
        return scores(self._context, len(slots), self._vocab)

    def forget(self, slot: int) -> None:
        self._unsettled.add(slot)
        self._read[slot] = 0
        self._lib.llama_memory_seq_rm(self._memory, slot, -1, -1)
        self._unsettled.discard(slot)

    def close(self) -> None:
        context, self._context = self._context, None  # never freed twice
        if context is not None:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(context)

    def _settle(self) -> None:
        """Take back a step that failed or was broken off."""
        for slot in tuple(self._unsettled):
            if not self._lib.llama_memory_seq_rm(self._memory, slot, self._read[slot], -1):
                raise BackendFailed(
                    f"Slot {slot} could not take back a step that was broken off. Empty it with"
                    " forget() and read its text anew."
                )
            self._unsettled.discard(slot)
