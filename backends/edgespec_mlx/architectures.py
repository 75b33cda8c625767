"""Families whose GGUF files become MLX folders: names of tensors, config.json, rows in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from edgespec.errors import ModelFileError
from edgespec.models.catalogue import catalogue
from edgespec.models.header import GgufHeader
from edgespec.models.shown import shown
from edgespec.models.wire import damaged

_BLOCK: Final = re.compile(r"blk\.(\d+)\.(\w+)\.(weight|bias)")
_OUTER: Final = {
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
}
_INNER: Final = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
FACTORS: Final = "rope_freqs.weight"
_IGNORED: Final = frozenset((FACTORS,))  # told by config.json instead
_LLAMA3_CONTEXT: Final = 8192  # of Llama 3, before its positions were stretched
_FACTOR_ERROR: Final = 1e-3

Reorder = Callable[[NDArray[np.intp]], NDArray[np.intp]]


@dataclass(frozen=True, slots=True)
class Target:
    """One tensor as MLX wants it. name: without `.weight` or `.bias`, which is `part`.

    heads: of a matrix whose rows GGUF keeps in the order of neighbours, for rotation; 0 = as is.
    """

    name: str
    part: str
    heads: int = 0

    @property
    def whole_name(self) -> str:
        return f"{self.name}.{self.part}"

    def rows(self, count: int) -> NDArray[np.intp] | None:
        """Which of the file's rows comes at each place; None = all in order."""
        if not self.heads:
            return None
        rows = np.arange(count).reshape(self.heads, -1, 2)
        return rows.swapaxes(1, 2).reshape(-1)


def check_architecture(header: GgufHeader) -> None:
    """Raises: ModelFileError naming what works instead, where the file cannot be converted."""
    if header.architecture not in _CONFIGS:
        raise ModelFileError(
            f"{shown(header.path.name)} is of the architecture '{shown(header.architecture, 40)}';"
            f" GGUF files of {', '.join(sorted(_CONFIGS))} are converted for MLX, others are not;"
            f" {_instead(header)}."
        )
    for key in ("expert_count", "attention.scale", "logit_scale", "embedding_scale"):
        if header.hyper(key):
            raise _not_alike(header, f"it has {key}")
    head = _head(header)
    if header.hyper("rope.dimension_count") not in (None, head):
        raise _not_alike(header, "only a part of each head is rotated")
    if header.architecture == "qwen2" and head * _heads(header) != header.embedding_length:
        raise _not_alike(header, "its heads are not as wide together as the model")


def target_of(header: GgufHeader, name: str) -> Target | None:
    """Where a tensor goes; None where config.json says the same.

    Raises: ModelFileError for a tensor that such a model has not.
    """
    if name in _IGNORED:
        return None
    stem, _, part = name.rpartition(".")
    if stem in _OUTER and part in ("weight", "bias"):
        return Target(_OUTER[stem], part)
    block = _BLOCK.fullmatch(name)
    inner = _INNER.get(block[2]) if block else None
    if block is None or inner is None:
        raise _not_alike(header, f"it has the tensor {shown(name, 60)}")
    heads = 0
    if header.architecture == "llama" and block[2] in ("attn_q", "attn_k"):
        heads = _heads(header) if block[2] == "attn_q" else max(header.kv_head_counts)
    return Target(f"model.layers.{block[1]}.{inner}", block[3], heads)


def config_of(header: GgufHeader, factors: NDArray[np.float32] | None) -> dict[str, Any]:
    """config.json, without the number formats. factors: of `rope_freqs.weight`, if it is there."""
    names = {tensor.name for tensor in header.tensors}
    config: dict[str, Any] = {
        "model_type": header.architecture,
        "hidden_size": header.embedding_length,
        "num_hidden_layers": header.block_count,
        "intermediate_size": header.feed_forward_length,
        "num_attention_heads": _heads(header),
        "num_key_value_heads": max(header.kv_head_counts),
        "head_dim": _head(header),
        "rms_norm_eps": _number(header, "attention.layer_norm_rms_epsilon"),
        "vocab_size": header.vocabulary_size,
        "max_position_embeddings": header.context_length,
        "rope_theta": _number(header, "rope.freq_base", 10000.0),
        "tie_word_embeddings": "output.weight" not in names,
        "converted_by": "edgespec",
    }
    for key, name in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        token = header.special_token(name)
        if token is not None:
            config[f"{key}_token_id"] = token
    scaling = _scaling(header, factors)
    if scaling:
        config["rope_scaling"] = scaling
    return config | _CONFIGS[header.architecture](names)


def _llama(names: set[str]) -> dict[str, Any]:
    return {
        "attention_bias": "blk.0.attn_q.bias" in names,
        "mlp_bias": "blk.0.ffn_up.bias" in names,
    }


_CONFIGS: Final[Mapping[str, Callable[[set[str]], dict[str, Any]]]] = {
    "llama": _llama,
    "qwen2": lambda _: {},
    "qwen3": lambda _: {},
}


def _scaling(header: GgufHeader, factors: NDArray[np.float32] | None) -> dict[str, Any]:
    """How positions are stretched. Raises: ModelFileError for a way that is not known."""
    kind = header.hyper("rope.scaling.type")
    if factors is not None:
        return _llama3_scaling(header, factors)
    if kind in (None, "none", ""):
        return {}
    if kind == "linear":
        factor = _number(header, "rope.scaling.factor")
        return {"rope_type": "linear", "type": "linear", "factor": factor}
    raise _not_alike(header, f"its positions are stretched in the way '{shown(kind, 20)}'")


def _llama3_scaling(header: GgufHeader, factors: NDArray[np.float32]) -> dict[str, Any]:
    """Llama 3.1's way, found again from the factors that it gives to the frequencies."""
    factor, head = float(factors.max()), _head(header)
    base = _number(header, "rope.freq_base", 10000.0)
    waves = 2 * np.pi * base ** (np.arange(0, head, 2) / head)
    smooth = (_LLAMA3_CONTEXT / waves - 1) / (4 - 1)
    expected = 1 / ((1 - smooth) / factor + smooth)
    expected = np.where(waves < _LLAMA3_CONTEXT / 4, 1, expected)
    expected = np.where(waves > _LLAMA3_CONTEXT, factor, expected)
    same = factors.shape == expected.shape and np.allclose(factors, expected, rtol=_FACTOR_ERROR)
    if not same:
        raise _not_alike(header, "its positions are stretched in a way of its own")
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": _LLAMA3_CONTEXT,
    }


def _heads(header: GgufHeader) -> int:
    counts = set(header.head_counts) | {0}
    if len(counts) != 2 or len(set(header.kv_head_counts) - {0}) != 1:
        raise _not_alike(header, "its layers differ in their number of heads")
    return max(counts)


def _head(header: GgufHeader) -> int:
    if header.key_length != header.value_length:
        raise _not_alike(header, "its keys and values differ in size")
    return header.key_length


def _number(header: GgufHeader, key: str, other: float | None = None) -> float:
    value = header.hyper(key)
    value = other if value is None else value
    if type(value) not in (int, float):
        raise damaged(header.path, f"{key} is missing")
    assert isinstance(value, int | float)
    return float(value)


def _not_alike(header: GgufHeader, why: str) -> ModelFileError:
    kind = shown(header.architecture, 40)
    return ModelFileError(
        f"{shown(header.path.name)} is not like other '{kind}' models: {why}; it is not converted"
        f" for MLX; {_instead(header)}."
    )


def _instead(header: GgufHeader) -> str:
    """A ready MLX repository of this model, where the catalogue has one."""
    wanted = _plain(header.name)
    for entry in catalogue().entries:
        build = entry.build("mlx")
        if build is None:
            continue
        stem = _plain(re.sub(r"-(\d+bit|bf16|fp16)$", "", build.target.repo.partition("/")[2]))
        if stem and (stem in wanted or wanted in stem):
            return f"use the MLX repository {build.target.repo}, or --backend llamacpp"
    return "look for an MLX repository of this model, or use --backend llamacpp"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
