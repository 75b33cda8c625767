"""What edgespec asks of a model on the disk before it is loaded, in whatever format it is kept."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgespec.models.catalogue import Format
from edgespec.models.id_table import IdTable
from edgespec.models.needs import ModelNeeds


class ModelHeader(Protocol):
    """A model that was looked at and makes sense so far; its weights were not read."""

    @property
    def path(self) -> Path:
        """What a backend loads: a GGUF file, the first part of several, or an MLX folder."""
        ...

    @property
    def format(self) -> Format: ...

    @property
    def architecture(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> str:
        """`model`; other kinds cannot run by themselves."""
        ...

    @property
    def file_size(self) -> int:
        """Bytes of all files with weights."""
        ...

    @property
    def has_weights(self) -> bool: ...

    @property
    def context_length(self) -> int:
        """Tokens that the model was trained to look back on; 0 where it is not told."""
        ...

    @property
    def tokenizer(self) -> str:
        """The kind of tokenizer, such as `gpt2` or `llama`; empty if none is named."""
        ...

    @property
    def pretokenizer(self) -> str:
        """How text is split before tokenizing; empty if it is not told by name."""
        ...

    @property
    def tokens(self) -> Sequence[bytes]:
        """The text of every token id, in the tokenizer's own spelling; may be empty."""
        ...

    @property
    def token_types(self) -> NDArray[np.int64]:
        """int64 [vocabulary], numbered as llama.cpp does; may be empty."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids; 0 if it is not told."""
        ...

    @property
    def id_table(self) -> IdTable | None:
        """Of a drafter whose ids are its own. Raises: ModelFileError where it makes no sense."""
        ...

    @property
    def sampler(self) -> Mapping[str, float | int]:
        """What the model's makers recommend, by the names of Sampling."""
        ...

    def special_token(self, name: str) -> int | None:
        """The id of `bos`, `eos` or `eot`; None if unset."""
        ...

    def needs(self) -> ModelNeeds:
        """Sizes for a memory plan. Raises: ModelFileError where the header holds nonsense."""
        ...


def header_of(path: Path) -> ModelHeader:
    """The checked header of a GGUF file or of an MLX folder.

    Raises: NotFound, ModelFileError.
    """
    from edgespec.models.folder_header import read_folder
    from edgespec.models.split import read_model

    return read_folder(path) if os.path.isdir(path) else read_model(path)
