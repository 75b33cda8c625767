"""What MLX says when it fails, as errors of edgespec."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mlx.core as mx

from edgespec.errors import BackendFailed, OutOfMemory

FAILURES = (MemoryError, RuntimeError, ValueError)  # what MLX raises
_MEMORY = ("allocat", "out of memory", "insufficient memory", "maximum allowed buffer size")


@contextmanager
def on_stream(stream: Any, forget: Callable[[], None]) -> Iterator[None]:
    """Work on `stream`; where it fails, the session is emptied, since its cache may be half done.

    Raises: OutOfMemory, BackendFailed.
    """
    try:
        with mx.stream(stream):
            yield
    except FAILURES as error:
        forget()
        raise as_told(error) from error


@contextmanager
def whole_or_empty(forget: Callable[[], None]) -> Iterator[None]:
    """Where an interrupt breaks this off, what it worked on is emptied: it may be half done."""
    try:
        yield
    except KeyboardInterrupt:
        forget()
        raise


def as_told(error: Exception) -> OutOfMemory | BackendFailed:
    """The failure in one line."""
    reason = " ".join(str(error).split())[:300]
    if isinstance(error, MemoryError) or any(word in reason.lower() for word in _MEMORY):
        return OutOfMemory(
            f"No memory is left for this pass ({reason})."
            " Try a shorter --context or a smaller model."
        )
    return BackendFailed(f"MLX could not run the model: {reason}")
