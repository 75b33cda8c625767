"""A drafter with an id table, cut out of a tiny model without any training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import gguf
import numpy as np
from gguf import GGUFReader

from edgespec.models.gguf import read_header
from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY, vocabulary_digest

_NUMBERS = (
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "rope.dimension_count",
)


def write_trimmed(
    path: Path, source: Path, ids: Sequence[int], *, told: Sequence[int] | None = None
) -> Path:
    """The model `source` with the tokens `ids` alone; a last row stands for all others.

    told: what the id table says instead.
    """
    header, reader = read_header(source), GGUFReader(source)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("trimmed")
    for key in _NUMBERS:
        value = header.hyper(key)
        assert isinstance(value, int)
        writer.add_uint32(f"llama.{key}", value)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(ids) + 1)
    writer.add_tokenizer_model("no_vocab")
    writer.add_array(IDS_KEY, list(ids if told is None else told))
    writer.add_string(VOCABULARY_KEY, vocabulary_digest(header.tokens))
    for tensor in reader.tensors:
        weights = np.array(tensor.data)
        if tensor.name in ("token_embd.weight", "output.weight"):
            weights = np.vstack([weights[list(ids)], weights.mean(0, keepdims=True)])
        writer.add_tensor(tensor.name, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
