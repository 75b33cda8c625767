"""Whether a model fits into memory, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from edgespec.errors import BadInput, OutOfMemory
from edgespec.models.header import GgufHeader

KV_TYPES: Final = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "auto": (1, 2),
    "q8_0": (32, 34),
    "q4_0": (32, 18),
}
_UBATCH: Final = 512
_BASE_BYTES: Final = 64 << 20
_CONTEXT_STEP: Final = 256
_SMALLEST_CONTEXT: Final = 512
_FEWEST_BITS: Final = 2.5  # a weight; below, quantised models stop making sense


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """What one model takes. kv_elements: cached keys and values for each token of context."""

    parameters: int
    weight_bytes: int
    kv_elements: int
    kv_type: str
    compute_bytes: int

    def kv_bytes(self, context: int) -> int:
        block, size = KV_TYPES[self.kv_type]
        return -(-self.kv_elements * context // block) * size

    def total_bytes(self, context: int) -> int:
        return self.weight_bytes + self.compute_bytes + self.kv_bytes(context)


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a target and its draft take for a context of so many tokens.

    Weights count in full although the file is mapped: every pass reads all of them.
    """

    target: ModelNeeds
    draft: ModelNeeds | None
    context: int

    @property
    def kv_bytes(self) -> int:
        return sum(model.kv_bytes(self.context) for model in self._models)

    @property
    def weight_bytes(self) -> int:
        return sum(model.weight_bytes for model in self._models)

    @property
    def total_bytes(self) -> int:
        return sum(model.total_bytes(self.context) for model in self._models)

    @property
    def _models(self) -> list[ModelNeeds]:
        return [self.target] if self.draft is None else [self.target, self.draft]


def plan(
    target: GgufHeader, draft: GgufHeader | None, context: int, kv_type: str = "f16"
) -> MemoryPlan:
    """What both models will take; the draft's cache is never quantised.

    context: tokens. kv_type: of the target's cache, a key of KV_TYPES.
    """
    if kv_type not in KV_TYPES:
        raise BadInput(f"--kv-type {kv_type} is unknown; choose from {', '.join(KV_TYPES)}.")
    if context < 1:
        raise BadInput(f"A context of {context} tokens holds nothing; give --context 512 or more.")
    draft_type = "f32" if kv_type == "f32" else "f16"
    return MemoryPlan(
        _needs(target, kv_type), None if draft is None else _needs(draft, draft_type), context
    )


def check(needed: MemoryPlan, available_bytes: int) -> None:
    """Raises: OutOfMemory with how much is missing and what would help, most harmless first."""
    missing = needed.total_bytes - available_bytes
    if missing <= 0:
        return
    parts = f"{_size(needed.weight_bytes)} of weights, {_size(needed.kv_bytes)} of cache"
    ways = _ways(needed, available_bytes) or ["use a smaller model"]
    raise OutOfMemory(
        f"This needs {_size(needed.total_bytes)} ({parts}), but {_size(available_bytes)} are free,"
        f" {_size(missing)} too little: {'; or '.join(ways)}."
    )


def _ways(needed: MemoryPlan, available_bytes: int) -> list[str]:
    """Changes that make it fit, or help where none does alone."""
    ways: list[str] = []
    context = _largest_context(needed, available_bytes)
    if context:
        ways.append(f"--context {context}")
    if KV_TYPES[needed.target.kv_type][1] / KV_TYPES[needed.target.kv_type][0] > 34 / 32:
        smaller = replace(needed, target=replace(needed.target, kv_type="q8_0"))
        ways.append(_saving("--kv-type q8_0", needed, smaller, available_bytes))
    if needed.draft is not None:
        smaller = replace(needed, draft=None)
        ways.append(_saving("--draft none", needed, smaller, available_bytes))
    room = needed.target.weight_bytes - (needed.total_bytes - available_bytes)
    if room * 8 >= needed.target.parameters * _FEWEST_BITS:
        ways.append(f"a smaller quantisation, with weights of at most {_size(room)}")
    return ways


def _largest_context(needed: MemoryPlan, available_bytes: int) -> int:
    """The largest round context that fits; 0 if no useful one does."""
    low, high = 0, needed.context // _CONTEXT_STEP
    while low < high:
        middle = (low + high + 1) // 2
        fits = replace(needed, context=middle * _CONTEXT_STEP).total_bytes <= available_bytes
        low, high = (middle, high) if fits else (low, middle - 1)
    context = low * _CONTEXT_STEP
    return context if context >= _SMALLEST_CONTEXT else 0


def _saving(flag: str, before: MemoryPlan, after: MemoryPlan, available_bytes: int) -> str:
    saved = _size(before.total_bytes - after.total_bytes)
    enough = after.total_bytes <= available_bytes
    return f"{flag} (saves {saved}{'' if enough else ', not enough alone'})"


def _needs(header: GgufHeader, kv_type: str) -> ModelNeeds:
    """Source of the compute buffer's size: llama.cpp reserves it for a batch of 512 rows.

    It holds the scores of every row, some copies of the hidden state and one of the feed-forward
    layer, float32; without flash attention, attention scores come on top.
    """
    width = header.embedding_length
    rows = header.vocabulary_size + 6 * width + 2 * header.feed_forward_length
    return ModelNeeds(
        parameters=header.parameter_count,
        weight_bytes=header.weight_bytes,
        kv_elements=_kv_heads(header) * (header.key_length + header.value_length),
        kv_type=kv_type,
        compute_bytes=_BASE_BYTES + _UBATCH * 4 * rows,
    )


def _kv_heads(header: GgufHeader) -> int:
    """Key and value heads of all layers whose cache grows with the context."""
    heads = header.kv_head_counts
    interval = header.hyper("full_attention_interval")
    if type(interval) is int and interval > 0:
        # the layers between are recurrent, and their state does not grow
        heads = heads[interval - 1 :: interval]
    return sum(heads)


def _size(n_bytes: int) -> str:
    if n_bytes < 1 << 30:
        return f"{max(n_bytes, 0) / (1 << 20):.0f} MiB"
    return f"{n_bytes / (1 << 30):.1f} GiB"
