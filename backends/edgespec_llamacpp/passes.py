"""One pass through llama.cpp: run it, say why it failed, read its scores."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from edgespec.decoding.draft import Row
from edgespec.errors import BackendFailed, CacheFull
from edgespec_llamacpp.library import errors_since, library, log_mark, raise_kept_interrupt


def decode(context: Any, batch: Any) -> None:
    """Read a batch into the cache. Raises: CacheFull, BackendFailed."""
    mark = log_mark()
    result = library().llama_decode(context, batch)
    raise_kept_interrupt()
    if result == 0:
        return
    if result == 1:
        raise CacheFull(
            f"The cache has no room for {batch.n_tokens} more tokens."
            " Raise --context or start a new chat."
        )
    raise BackendFailed(f"llama.cpp could not run the model (code {result}): {errors_since(mark)}")


def scores(context: Any, count: int, vocab: int) -> Row:
    """float32 [count, vocab] of the latest pass, in place: the next one overwrites them."""
    pointer = library().llama_get_logits(context)  # waits for the device
    address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    memory: Any = (ctypes.c_float * (count * vocab)).from_address(address)
    rows: Row = np.frombuffer(memory, dtype=np.float32).reshape(count, vocab)
    return rows
