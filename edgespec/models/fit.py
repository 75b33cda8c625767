"""What helps where a pair does not fit into memory, and choosing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from edgespec.errors import OutOfMemory
from edgespec.models.available import Available
from edgespec.models.memory import KV_TYPES, Demand, MemoryPlan, size, unsupported_cache

SHORT_CONTEXT: Final = 2048  # a fit gives up other things before it goes below
_CONTEXT_STEP: Final = 256
_SMALLEST_CONTEXT: Final = 512
_FEWEST_BITS: Final = 2.5  # a weight; below, quantised models stop making sense


@dataclass(frozen=True, slots=True)
class Fitted:
    """A plan that fits, and what was changed for it, in words."""

    plan: MemoryPlan
    changes: tuple[str, ...]


def check(needed: MemoryPlan, available: Available) -> None:
    """Raises: OutOfMemory with how much is missing and what would help, most harmless first."""
    worst = max(needed.demands(available), key=lambda demand: demand.missing_bytes)
    if worst.missing_bytes <= 0:
        return
    share = worst.share
    ways = list(_ways(needed, available, worst)) or ["use a smaller model"]
    raise OutOfMemory(
        f"This needs {size(share.total)} of {worst.where} ({size(share.weights)} of weights,"
        f" {size(share.cache)} of cache, {size(share.working)} to work in), but"
        f" {size(worst.free_bytes)} are free, {size(worst.missing_bytes)} too little:"
        f" {'; or '.join(ways)}."
    )


def fit(needed: MemoryPlan, available: Available) -> Fitted:
    """The plan with as little changed as it takes to fit, in the order of harm: a context of down
    to 2048 tokens, no draft model, a smaller cache, fewer layers on a GPU that takes only some.

    Raises: OutOfMemory where none of these is enough.
    """
    found = _found(needed, available)
    if found is None:
        check(needed, available)
        raise AssertionError("a plan that does not fit passed its check")
    return Fitted(found, tuple(_changes(needed, found)))


def largest_context(needed: MemoryPlan, available: Available, least: int) -> int:
    """The largest round context from `least` that fits, or the asked-for one; 0 if there is none.

    It is never longer than what was asked for, or than what the model was trained on.
    """
    most = min(needed.context, needed.target.trained_context or needed.context)
    if replace(needed, context=most).fits(available):
        return most
    low, high = 0, (most - 1) // _CONTEXT_STEP
    while low < high:
        middle = (low + high + 1) // 2
        fits = replace(needed, context=middle * _CONTEXT_STEP).fits(available)
        low, high = (middle, high) if fits else (low, middle - 1)
    return low * _CONTEXT_STEP if low * _CONTEXT_STEP >= least else 0


def _found(needed: MemoryPlan, available: Available) -> MemoryPlan | None:
    """The first plan that fits, in the order of harm."""
    if needed.fits(available):
        return needed
    for candidate in _smaller(needed, available):
        context = largest_context(candidate, available, SHORT_CONTEXT)
        if context:
            return replace(candidate, context=context)
    return None


def _smaller(needed: MemoryPlan, available: Available) -> Iterator[MemoryPlan]:
    """Plans that give up more and more."""
    yield needed
    if needed.draft is not None:
        needed = replace(needed, draft=None)
        yield needed
    compact = _compact(needed)
    if compact is not None:
        needed = compact
        yield needed
    layers = _most_gpu_layers(
        replace(needed, context=min(needed.context, SHORT_CONTEXT)), available
    )
    if layers is not None:
        yield replace(needed, gpu_layers=layers)


def _compact(needed: MemoryPlan) -> MemoryPlan | None:
    """The same with a cache in q8_0; None where that is no smaller, or cannot be."""
    block, bytes_each = KV_TYPES[needed.kv_type]
    compact = replace(needed, kv_type="q8_0")
    smaller = bytes_each / block > KV_TYPES["q8_0"][1] / KV_TYPES["q8_0"][0]
    return compact if smaller and not unsupported_cache(compact) else None


def _most_gpu_layers(needed: MemoryPlan, available: Available) -> int | None:
    """The most layers with which all fits; None where none does, or no GPU takes only some."""
    if not available.gpus or not all(gpu.partial for gpu in available.gpus):
        return None
    whole = len(needed.target.layers) + 1
    most = whole if needed.gpu_layers is None else min(needed.gpu_layers, whole)
    counts = range(most, -1, -1)
    return next((n for n in counts if replace(needed, gpu_layers=n).fits(available)), None)


def _changes(before: MemoryPlan, after: MemoryPlan) -> Iterator[str]:
    if after.context != before.context:
        yield f"a context of {after.context} tokens instead of {before.context}"
    if before.draft is not None and after.draft is None:
        yield "no draft model"
    if after.kv_type != before.kv_type:
        yield f"the cache in {after.kv_type}"
    if after.gpu_layers != before.gpu_layers:
        yield f"{after.gpu_layers} of {len(after.target.layers) + 1} layers on the GPU"


def _ways(needed: MemoryPlan, available: Available, worst: Demand) -> Iterator[str]:
    """Changes that make it fit, or help where none does alone."""
    context = largest_context(needed, available, _SMALLEST_CONTEXT)
    if context:
        yield f"--context {context}"
    if needed.draft is not None:
        yield _saving("--draft none", needed, replace(needed, draft=None), available)
    compact = _compact(needed)
    if compact is not None:
        yield _saving("--kv-type q8_0", needed, compact, available)
    layers = _most_gpu_layers(needed, available)
    if layers is not None:
        yield f"--gpu-layers {layers}"
    room = needed.target.weight_bytes - worst.missing_bytes
    if room * 8 >= needed.target.parameters * _FEWEST_BITS:
        yield f"a smaller quantisation, with weights of at most {size(room)}"
    found = _found(needed, available)
    if found is not None:
        yield f"--fit, which takes {' and '.join(_changes(needed, found))}"


def _saving(flag: str, before: MemoryPlan, after: MemoryPlan, available: Available) -> str:
    gpu = bool(available.gpus)
    saved = sum(share.total for share in before.shares(gpu))
    saved -= sum(share.total for share in after.shares(gpu))
    enough = "" if after.fits(available) else ", not enough alone"
    return f"{flag} (saves {size(saved)}{enough})"
