"""Whether a pair fits into memory, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from edgespec.decoding.session import CPU_CHUNK, GPU_CHUNK, MOST_ROWS
from edgespec.errors import BadInput
from edgespec.models.available import Available
from edgespec.models.model_header import ModelHeader
from edgespec.models.needs import LayerNeeds, ModelNeeds

KV_TYPES: Final = {
    "f32": (1, 4),
    "f16": (1, 2),
    "bf16": (1, 2),
    "auto": (1, 2),
    "q8_0": (32, 34),
    "q4_0": (32, 18),
}
TARGET_ROWS: Final = MOST_ROWS  # scores that a pass may give
DRAFT_ROWS: Final = 17  # the pending token and what a tree of guesses holds
_CELLS: Final = 256  # a cache grows in such steps
_LANES: Final = MOST_ROWS - 1  # leaves of a tree; a pass is laid out for a multiple of them
_F32: Final = 4
_RUNTIME_BYTES: Final = 32 << 20  # vocabulary and small tables of one model
_GPU_RESERVE_BYTES: Final = 512 << 20  # scratch memory that a GPU's library takes later
_TIGHT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Share:
    """Bytes in one kind of memory. working: for the numbers of one pass."""

    weights: int = 0
    cache: int = 0
    working: int = 0

    @property
    def total(self) -> int:
        return self.weights + self.cache + self.working

    def __add__(self, other: Share) -> Share:
        return Share(
            self.weights + other.weights, self.cache + other.cache, self.working + other.working
        )


@dataclass(frozen=True, slots=True)
class ModelUse:
    """One model as it will run.

    rows: scores that one pass may give. gpu_layers: counted from the end, the output as one;
    None = all.
    """

    needs: ModelNeeds
    kv_type: str
    rows: int
    gpu_layers: int | None = None
    cpu_moe: bool = False
    flash_attention: bool = True

    def shares(self, context: int, gpu: bool) -> tuple[Share, Share]:
        """What main memory and what the GPU holds. Weights count once, although a CPU may keep
        some in an order of its own: the file's pages can then be dropped."""
        needs, count = self.needs, len(self.needs.layers) + 1
        on_gpu = 0 if not gpu else count if self.gpu_layers is None else min(count, self.gpu_layers)
        here, there = needs.layers[: count - on_gpu], needs.layers[count - on_gpu :]
        experts = sum(layer.expert_bytes for layer in there) if self.cpu_moe else 0
        weights = needs.input_bytes + sum(layer.weight_bytes for layer in here) + experts
        scores = self.rows * needs.vocabulary * _F32
        working = self._pass_bytes(context, gpu)
        if not on_gpu:
            return Share(
                weights + needs.output_bytes, self._kept(here, context), working + scores
            ), Share()
        moved = sum(layer.weight_bytes for layer in there) - experts
        moved += needs.output_bytes + needs.shared_bytes
        return (
            Share(weights, self._kept(here, context), scores + (working if here else 0)),
            Share(moved, self._kept(there, context), working),
        )

    def _kept(self, layers: tuple[LayerNeeds, ...], context: int) -> int:
        """Cache and recurrent state of some layers."""
        block, size = KV_TYPES[self.kv_type]
        elements = sum(layer.keys + layer.values for layer in layers)
        state = sum(layer.state_bytes for layer in layers)
        return -(-elements * _round_up(context, _CELLS) // block) * size + state

    def _pass_bytes(self, context: int, gpu: bool) -> int:
        """What the widest pass needs while it runs: its layers first, then its scores.

        Found by fitting what llama.cpp 0.3.36 reports for models of several shapes.
        """
        needs = self.needs
        tokens = (GPU_CHUNK if gpu else CPU_CHUNK) + self.rows
        lanes = 1 if needs.has_state else max(1, min(_LANES, self.rows - 1))
        rows = _round_up(tokens, lanes)
        cells = _round_up(context, _CELLS) if needs.has_cache else 0
        width, queries = needs.width, needs.queries
        if self.flash_attention:
            attention, mask = 3 * queries + 4 * width, cells // 2 * needs.masks
        else:
            cached = max((layer.keys + layer.values for layer in needs.layers), default=0)
            attention = 3 * width + 2 * queries + cached + needs.heads * cells
            mask = cells * needs.masks
        layers = rows * (mask + max(attention, needs.inner + 4 * width))
        scores = self.rows * needs.vocabulary + 2 * tokens * width
        return _F32 * max(layers, scores)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a pair wants of one kind of memory, and what is free of it."""

    where: str
    share: Share
    free_bytes: int

    @property
    def missing_bytes(self) -> int:
        return self.share.total - self.free_bytes

    @property
    def tight(self) -> bool:
        return self.share.total > _TIGHT * self.free_bytes


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """A target and its draft at a context of so many tokens; the draft's cache is f16.

    flash_attention: "auto", "on" or "off", as in the options.
    """

    target: ModelNeeds
    draft: ModelNeeds | None
    context: int
    kv_type: str = "auto"
    gpu_layers: int | None = None
    draft_gpu_layers: int | None = None
    cpu_moe: bool = False
    flash_attention: str = "auto"

    @property
    def draft_context(self) -> int:
        """Tokens that the draft model keeps: no more than it was trained on."""
        trained = self.draft.trained_context if self.draft else 0
        return min(self.context, trained or self.context)

    def shares(self, gpu: bool) -> tuple[Share, Share]:
        """What main memory and what the GPU holds of both models."""
        both = [use.shares(context, gpu) for use, context in self.uses()]
        return sum((s[0] for s in both), Share()), sum((s[1] for s in both), Share())

    def uses(self) -> Iterator[tuple[ModelUse, int]]:
        """Each model as it runs, with its context."""
        flash = self.flash_attention != "off"
        yield (
            ModelUse(self.target, self.kv_type, TARGET_ROWS, self.gpu_layers, self.cpu_moe, flash),
            self.context,
        )
        if self.draft is not None:
            use = ModelUse(
                self.draft, "f16", DRAFT_ROWS, self.draft_gpu_layers, flash_attention=flash
            )
            yield use, self.draft_context

    def demands(self, available: Available) -> tuple[Demand, ...]:
        """What is wanted of each kind of memory that this machine has."""
        models = 1 if self.draft is None else 2
        main, gpu = self.shares(bool(available.gpus))
        main += Share(working=models * _RUNTIME_BYTES)
        if not available.gpus:
            return (Demand("main memory", main, available.main_bytes),)
        gpu += Share(working=_GPU_RESERVE_BYTES * len(available.gpus) if gpu.total else 0)
        free = sum(device.free_bytes for device in available.gpus)
        if any(device.unified for device in available.gpus):
            # the GPU's part comes out of main memory, and the driver grants it a part only
            return (
                Demand("memory", main + gpu, available.main_bytes),
                Demand("the GPU's part of memory", gpu, free),
            )
        return Demand("main memory", main, available.main_bytes), Demand("GPU memory", gpu, free)

    def fits(self, available: Available) -> bool:
        return all(demand.missing_bytes <= 0 for demand in self.demands(available))

    def tight(self, available: Available) -> bool:
        """Whether little is left, or nothing."""
        return any(demand.tight for demand in self.demands(available))


def plan(
    target: ModelHeader | ModelNeeds,
    draft: ModelHeader | ModelNeeds | None,
    context: int,
    kv_type: str = "auto",
) -> MemoryPlan:
    """What both models will take with everything on the GPU where there is one.

    context: tokens. kv_type: of the target's cache, a key of KV_TYPES.
    """
    if kv_type not in KV_TYPES:
        raise BadInput(f"--kv-type {kv_type} is unknown; choose from {', '.join(KV_TYPES)}.")
    if context < 1:
        raise BadInput(f"A context of {context} tokens holds nothing; give --context 512 or more.")
    drafts = None if draft is None else _as_needs(draft)
    return MemoryPlan(_as_needs(target), drafts, context, kv_type)


def check_kv_type(needed: MemoryPlan) -> None:
    """Raises: BadInput where this model's cache cannot be kept in the asked-for format."""
    reason = unsupported_cache(needed)
    if reason:
        raise BadInput(f"--kv-type {needed.kv_type} {reason}; leave --kv-type auto.")


def unsupported_cache(needed: MemoryPlan) -> str:
    """Why this cache cannot be had; empty where it can.

    Source: llama.cpp, llama-context.cpp, llama_init_from_model().
    """
    block = KV_TYPES[needed.kv_type][0]
    if block == 1 or not needed.target.has_cache:
        return ""
    if needed.flash_attention == "off":
        return "needs flash attention, which --flash-attention off turns off"
    uneven = next((size for size in needed.target.block if size % block), None)
    if uneven is not None:
        return f"packs {block} numbers together, and this model's heads hold {uneven}"
    return ""


def describe(needed: MemoryPlan, available: Available) -> list[str]:
    """The plan in words: a line for each model, then one for each kind of memory."""
    lines: list[str] = []
    for name, (use, context) in zip(("target", "draft"), needed.uses(), strict=False):
        here, there = use.shares(context, bool(available.gpus))
        whole = here + there
        lines.append(
            f"{name}: {size(whole.weights)} of weights, {size(whole.cache)} of cache for"
            f" {context} tokens, {size(whole.working)} to work in"
        )
    return lines + [_told(demand) for demand in needed.demands(available)]


def one_line(needed: MemoryPlan, available: Available) -> str:
    """The plan in one line."""
    return "; ".join(_told(demand) for demand in needed.demands(available))


def size(n_bytes: int) -> str:
    if n_bytes < 1 << 30:
        return f"{max(n_bytes, 0) / (1 << 20):.0f} MiB"
    return f"{n_bytes / (1 << 30):.1f} GiB"


def _told(demand: Demand) -> str:
    missing = demand.missing_bytes
    verdict = f", {size(missing)} too little" if missing > 0 else ", tight" if demand.tight else ""
    wanted, free = size(demand.share.total), size(demand.free_bytes)
    return f"{demand.where}: takes {wanted} of the {free} free{verdict}"


def _as_needs(model: ModelHeader | ModelNeeds) -> ModelNeeds:
    return model if isinstance(model, ModelNeeds) else model.needs()


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step
