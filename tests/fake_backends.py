"""Installed backends of a Mac, which load nothing: entry points in place of the real ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from edgespec.backends import BackendProbe, DeviceMemory
from edgespec.errors import ModelFileError
from edgespec.models.model_header import ModelHeader
from edgespec.models.needs import ModelNeeds

_MEMORY = (DeviceMemory(20_000_000_000, unified=True),)


class Mlx:
    """Runs GGUF models of the family llama, and no others."""

    @classmethod
    def probe(cls) -> BackendProbe:
        return BackendProbe("mlx", "1", ("Apple M4",), True, _MEMORY, formats=("mlx", "gguf"))

    @classmethod
    def needs(cls, header: ModelHeader) -> ModelNeeds:
        if header.architecture != "llama":
            raise ModelFileError(f"GGUF files of '{header.architecture}' are not converted.")
        return header.needs()


class LlamaCpp:
    """Runs every GGUF model."""

    @classmethod
    def probe(cls) -> BackendProbe:
        return BackendProbe("llamacpp", "1", ("Metal",), True, _MEMORY)


def entry(name: str, backend: type) -> Any:
    return SimpleNamespace(name=name, load=lambda: backend)


WITHOUT_LLAMA_CPP = {"mlx": entry("mlx", Mlx)}
WITH_BOTH = {**WITHOUT_LLAMA_CPP, "llamacpp": entry("llamacpp", LlamaCpp)}
