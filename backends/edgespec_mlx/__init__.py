"""The MLX adapter's place. This version cannot run models on MLX yet, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from edgespec.backends import BackendProbe, Placement
from edgespec.errors import BackendMissing

__all__ = ["MlxBackend"]

_NOT_YET = (
    "This version of edgespec cannot run models on MLX yet; on a Mac use llama.cpp for now:"
    " install edgespec with the extra 'llamacpp' (it compiles for some minutes)."
)


class MlxBackend:
    """Refuses every model with a line that names what works instead."""

    @classmethod
    def probe(cls) -> BackendProbe:
        raise BackendMissing(_NOT_YET)

    @classmethod
    def load(cls, path: Path, placement: Placement) -> NoReturn:
        raise BackendMissing(_NOT_YET)

    @classmethod
    def requantize(cls, source: Path, target: Path, number_format: str) -> None:
        raise BackendMissing(_NOT_YET)
