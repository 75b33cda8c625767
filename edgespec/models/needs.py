"""What one model is made of, as far as its memory goes: the numbers that every plan starts from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from edgespec.models.header import GgufHeader

_EXPERTS: Final = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
_STATE: Final = re.compile(r"\.(ssm_|shortconv\.|time_mix_)")
_LAYER: Final = re.compile(r"blk\.(\d+)\.")
_ATTENTION_AND_STATE: Final = ("falcon-h1",)  # every layer of these has both
# llama.cpp keeps older states of these, so that guesses can be taken back
_SNAPSHOT_ARCHITECTURES: Final = frozenset(
    (
        "qwen35",
        "qwen35moe",
        "qwen4exp",
        "nemotron_h",
        "nemotron_h_moe",
        "lfm2",
        "lfm2moe",
        "kimi-k3",
        "deepseek4",
        "glm5-next",
        "bailingmoe3",
    )
)
_SNAPSHOTS: Final = 16
_F32: Final = 4


@dataclass(frozen=True, slots=True)
class LayerNeeds:
    """One layer.

    expert_bytes: the part of weight_bytes that --cpu-moe keeps in main memory. keys, values:
    cached elements for each token. state_bytes: a recurrent state, which does not grow.
    """

    weight_bytes: int
    expert_bytes: int = 0
    keys: int = 0
    values: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """A model's sizes; elements are float32 numbers of one token's row.

    input_bytes: what stays in main memory in any case, mostly embeddings. output_bytes: what
    turns the last layer into scores. shared_bytes: the part of input_bytes that does this too;
    a GPU gets a copy. queries: all heads together. inner: the widest row of the feed-forward and
    recurrent parts. masks: one for each kind of attention. block: numbers in one head's key and
    value, which a quantised cache has to divide. trained_context: tokens, 0 = not told.
    """

    parameters: int
    layers: tuple[LayerNeeds, ...]
    input_bytes: int
    output_bytes: int = 0
    shared_bytes: int = 0
    vocabulary: int = 0
    width: int = 0
    queries: int = 0
    heads: int = 0
    inner: int = 0
    masks: int = 1
    block: tuple[int, int] = (0, 0)
    trained_context: int = 0

    @property
    def weight_bytes(self) -> int:
        return self.input_bytes + self.output_bytes + sum(x.weight_bytes for x in self.layers)

    @property
    def has_state(self) -> bool:
        return any(layer.state_bytes for layer in self.layers)

    @property
    def has_cache(self) -> bool:
        return any(layer.keys for layer in self.layers)


def needs_of(header: GgufHeader, kept: Mapping[str, int] | None = None) -> ModelNeeds:
    """Sizes of a GGUF model. Raises: ModelFileError where the header holds nonsense.

    kept: bytes of tensors by name, for a backend that keeps them in a form of its own; None = as
    in the file.
    """
    if kept is None:
        whole, kept = header.weight_bytes, {t.name: t.n_bytes or 0 for t in header.tensors}
    else:
        whole = sum(kept.values())
    by_layer: Counter[int] = Counter()
    experts: Counter[int] = Counter()
    output = embedding = 0
    for tensor in header.tensors:
        size = kept.get(tensor.name, 0)
        layer = _LAYER.match(tensor.name)
        if layer is not None:
            by_layer[int(layer[1])] += size
            experts[int(layer[1])] += size if _EXPERTS.search(tensor.name) else 0
        elif tensor.name.startswith("output"):
            output += size
        elif tensor.name == "token_embd.weight":
            embedding = size
    tied = not any(tensor.name == "output.weight" for tensor in header.tensors)
    cached, states = _cached(header), _states(header)
    return ModelNeeds(
        parameters=header.parameter_count,
        layers=tuple(
            LayerNeeds(by_layer[n], experts[n], *cached[n], state_bytes=states[n])
            for n in range(header.block_count)
        ),
        input_bytes=whole - output - by_layer.total(),
        output_bytes=output,
        shared_bytes=embedding if tied else 0,
        vocabulary=header.vocabulary_size,
        width=header.embedding_length,
        queries=max(header.head_counts, default=0) * header.key_length,
        heads=max(header.head_counts, default=0),
        inner=_inner(header),
        masks=2 if header.sliding_window else 1,
        block=(header.key_length, 0 if _latent(header) else header.value_length),
        trained_context=header.context_length,
    )


def _cached(header: GgufHeader) -> list[tuple[int, int]]:
    """Elements of keys and values that each layer keeps of one token.

    Layers with a sliding window keep them of every token too: the cache is asked for whole, since
    a window that has moved on cannot be taken back.
    """
    recurrent = _recurrent(header)
    both = header.architecture in _ATTENTION_AND_STATE
    own = header.block_count - _number(header, "nextn_predict_layers")
    own -= _number(header, "attention.shared_kv_layers")
    windows = header.hyper("attention.sliding_window_pattern")
    cached: list[tuple[int, int]] = []
    for n, heads in enumerate(header.kv_head_counts):
        kind = ""
        if not isinstance(windows, (str, bool, int, float)) and windows is not None:
            kind = "_swa" if n < len(windows) and windows[n] else ""
        key = _number(header, f"attention.key_length{kind}") or header.key_length
        value = _number(header, f"attention.value_length{kind}") or header.value_length
        grows = n < own and (both or n not in recurrent)
        cached.append((heads * key, 0 if _latent(header) else heads * value) if grows else (0, 0))
    return cached


def _latent(header: GgufHeader) -> bool:
    """Whether keys and values are one compressed row, kept once."""
    return header.hyper("attention.key_length_mla") is not None


def _states(header: GgufHeader) -> list[int]:
    """Bytes of recurrent state in each layer, the older states among them.

    Source: llama.cpp, llama-hparams.cpp, n_embd_r() and n_embd_s().
    """
    width, wkv = header.embedding_length, _number(header, "wkv.head_size")
    shortconv = _number(header, "shortconv.l_cache")
    inner, state = _number(header, "ssm.inner_size"), _number(header, "ssm.state_size")
    if wkv:
        elements = width * ((_number(header, "token_shift_count") or 2) + wkv)
    elif shortconv:
        elements = width * (shortconv - 1)
    else:
        groups = _number(header, "ssm.group_count")
        kernel = max(0, _number(header, "ssm.conv_kernel") - 1)
        elements = kernel * (inner + 2 * groups * state) + inner * state
    kept = 1 + (_SNAPSHOTS if header.architecture in _SNAPSHOT_ARCHITECTURES else 0)
    recurrent = _recurrent(header)
    return [elements * _F32 * kept if n in recurrent else 0 for n in range(header.block_count)]


def _recurrent(header: GgufHeader) -> set[int]:
    """Layers with a recurrent state."""
    found = (_LAYER.match(t.name) for t in header.tensors if _STATE.search(t.name))
    return {int(layer[1]) for layer in found if layer is not None}


def _inner(header: GgufHeader) -> int:
    """Elements of the three rows that a feed-forward layer holds at once, or of a state's four."""
    width, used = header.embedding_length, _number(header, "expert_used_count")
    dense = header.feed_forward_length
    if used:
        one = _number(header, "expert_feed_forward_length") or dense
        shared = _number(header, "expert_shared_feed_forward_length")
        experts = used * one
        dense = max(3 * experts, experts + 2 * used * width) // 3 + shared
    return max(3 * dense, 4 * _number(header, "ssm.inner_size"))


def _number(header: GgufHeader, key: str) -> int:
    """A count of the architecture; 0 where it is missing or no count."""
    value = header.hyper(key)
    return value if type(value) is int and value > 0 else 0
