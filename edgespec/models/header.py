"""What a GGUF header says, with the names that the rest of edgespec uses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgespec.models.advice import sampler_advice
from edgespec.models.ggml import FILE_TYPES, TENSOR_TYPES
from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY, IdTable, id_table
from edgespec.models.wire import Strings, damaged

if TYPE_CHECKING:
    from edgespec.models.catalogue import Format
    from edgespec.models.needs import ModelNeeds

Value = bool | int | float | str | Strings | NDArray[Any]

_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "penalty_repeat": "repeat_penalty",
    "penalty_last_n": "penalty_window",
}
_MAX_HEADS = 1 << 16
_SANE = 1 << 31
_GUESSED = 1024  # a flag that llama.cpp adds to a file type it inferred


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file. dims[0] is the row length; offset counts from the data's start."""

    name: str
    dims: tuple[int, ...]
    ggml_type: int
    offset: int

    @property
    def n_elements(self) -> int:
        return math.prod(self.dims)

    @property
    def n_bytes(self) -> int | None:
        """Size in the file; None for a type that edgespec does not know."""
        known = TENSOR_TYPES.get(self.ggml_type)
        return None if known is None else self.n_elements // known.block * known.size


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """A checked header: counts, lengths and offsets fit the file.

    Of the metadata only what read_header() names is checked; the properties below check the rest
    when asked and raise ModelFileError.
    """

    path: Path
    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    file_size: int
    data_offset: int

    def hyper(self, key: str) -> Value | None:
        """The metadata entry `key` of this model's architecture."""
        return self.metadata.get(f"{self.architecture}.{key}")

    @property
    def format(self) -> Format:
        return "gguf"

    @property
    def has_weights(self) -> bool:
        return bool(self.tensors)

    @property
    def architecture(self) -> str:
        return self._text("general.architecture") or "unknown"

    @property
    def name(self) -> str:
        """What the model calls itself, else the file's name."""
        return self._text("general.name") or self.path.stem

    @property
    def kind(self) -> str:
        """`model`; other kinds, such as `adapter` and `mmproj`, cannot run by themselves."""
        if self.architecture == "clip":
            return "mmproj"
        return self._text("general.type") or "model"

    @property
    def context_length(self) -> int:
        """Tokens that the model was trained to look back on."""
        return self._count("context_length")

    @property
    def embedding_length(self) -> int:
        return self._count("embedding_length")

    @property
    def feed_forward_length(self) -> int:
        """Width of the widest feed-forward layer; 0 if there is none."""
        if self.hyper("feed_forward_length") is None:
            return 0
        return max(self._per_layer("feed_forward_length", _SANE), default=0)

    @property
    def block_count(self) -> int:
        return self._count("block_count")

    @property
    def head_counts(self) -> tuple[int, ...]:
        """Attention heads of every layer; 0 where a layer has no attention."""
        return self._per_layer("attention.head_count", _MAX_HEADS)

    @property
    def kv_head_counts(self) -> tuple[int, ...]:
        """Key and value heads of every layer; 0 where a layer keeps no cache that grows."""
        if self.hyper("attention.head_count_kv") is None:
            return self.head_counts
        return self._per_layer("attention.head_count_kv", _MAX_HEADS)

    @property
    def key_length(self) -> int:
        """Elements of one key of one head."""
        return self._head_size("attention.key_length")

    @property
    def value_length(self) -> int:
        """Elements of one value of one head."""
        return self._head_size("attention.value_length")

    @property
    def sliding_window(self) -> int | None:
        """Tokens that the layers with a sliding window see; None without such layers."""
        value = self.hyper("attention.sliding_window")
        return value if type(value) is int and value > 0 else None

    @property
    def tokenizer(self) -> str:
        """The kind of tokenizer, such as `gpt2` or `llama`; empty if none is named."""
        return self._text("tokenizer.ggml.model")

    @property
    def pretokenizer(self) -> str:
        """How text is split before tokenizing; empty if none is named."""
        return self._text("tokenizer.ggml.pre")

    @property
    def tokens(self) -> Sequence[bytes]:
        """The text of every token id, in the tokenizer's own spelling; may be empty."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens if isinstance(tokens, Strings) else Strings()

    @property
    def token_types(self) -> NDArray[np.int64]:
        """int64 [vocabulary], numbered as llama.cpp does; empty if the file has none."""
        types = self.metadata.get("tokenizer.ggml.token_type")
        return types.astype(np.int64) if isinstance(types, np.ndarray) else np.empty(0, np.int64)

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids; 0 if the file does not tell."""
        if len(self.tokens):
            return len(self.tokens)
        size = self.hyper("vocab_size")
        if type(size) is int:
            return size
        return next((t.dims[-1] for t in self.tensors if t.name == "token_embd.weight"), 0)

    @property
    def id_table(self) -> IdTable | None:
        """Of a drafter whose ids are its own. Raises: ModelFileError where it makes no sense."""
        ids, vocabulary = self.metadata.get(IDS_KEY), self.metadata.get(VOCABULARY_KEY)
        return id_table(self.path, ids, vocabulary, self.vocabulary_size)

    @property
    def chat_template(self) -> str | None:
        return self._text("tokenizer.chat_template") or None

    @property
    def sampler(self) -> Mapping[str, float | int]:
        """What the model's makers recommend, by the names of Sampling; nonsense is left out."""
        found = {n: self.metadata.get(f"general.sampling.{k}") for k, n in _SAMPLING.items()}
        return sampler_advice(found)

    @property
    def file_type(self) -> str:
        """The quantisation's name, such as Q4_K_M; that of most weights if the file names none."""
        number = self.metadata.get("general.file_type")
        if type(number) is int and number & ~_GUESSED in FILE_TYPES:
            return FILE_TYPES[number & ~_GUESSED]
        elements: Counter[int] = Counter()
        for tensor in self.tensors:
            elements[tensor.ggml_type] += tensor.n_elements
        if not elements:
            return "unknown"
        most = elements.most_common(1)[0][0]
        return TENSOR_TYPES[most].name if most in TENSOR_TYPES else f"type {most}"

    @property
    def parameter_count(self) -> int:
        return sum(tensor.n_elements for tensor in self.tensors)

    @property
    def weight_bytes(self) -> int:
        """What the tensors take; for unknown types, what the file leaves for them."""
        sizes = [tensor.n_bytes for tensor in self.tensors]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else self.file_size - self.data_offset

    def special_token(self, name: str) -> int | None:
        """The id of `bos`, `eos`, `eot`, `padding` and so on; None if unset or outside."""
        value = self.metadata.get(f"tokenizer.ggml.{name}_token_id")
        inside = type(value) is int and 0 <= value < self.vocabulary_size
        return value if inside else None  # type: ignore[return-value]

    def needs(self) -> ModelNeeds:
        """Sizes for a memory plan. Raises: ModelFileError where the header holds nonsense."""
        from edgespec.models.needs import needs_of

        return needs_of(self)

    def _text(self, key: str) -> str:
        value = self.metadata.get(key, "")
        if not isinstance(value, str):
            raise damaged(self.path, f"{key} is not text")
        return value

    def _count(self, key: str) -> int:
        value = self.hyper(key)
        if type(value) is not int:
            raise damaged(self.path, f"the header gives no number for {key}")
        return value

    def _per_layer(self, key: str, most: int) -> tuple[int, ...]:
        """One number a layer, 0 to `most`; all 0 where the key is missing."""
        value = self.hyper(key)
        layers = self.block_count
        if value is None:
            counts = [0] * layers
        elif type(value) is int:
            counts = [value] * layers
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and len(value) == layers:
            counts = value.tolist()
        else:
            raise damaged(self.path, f"{key} is neither a number nor one number for each layer")
        if not all(0 <= count <= most for count in counts):
            raise damaged(self.path, f"{key} holds a number that no model has")
        return tuple(counts)

    def _head_size(self, key: str) -> int:
        value = self.hyper(key)
        if value is None:
            heads = max(self.head_counts, default=0)
            return self.embedding_length // heads if heads else 0
        if type(value) is not int or not 0 <= value <= 1 << 20:
            raise damaged(self.path, f"{key} is not a size that a head can have")
        return value
