"""Whether there is room for the target's cache once more, beside the pair that was loaded."""

from __future__ import annotations

from dataclasses import replace

from edgespec import backends
from edgespec.api import Model
from edgespec.backends import SessionOptions
from edgespec.loading import room
from edgespec.models import memory


def no_room(model: Model, options: SessionOptions) -> str:
    """Why main memory cannot hold it, in words; empty where it can.

    A library notices too late that main memory ran out, since it is handed out before it is used;
    a GPU refuses by itself.
    """
    header = model.loaded.header
    free = room(backends.find(model.info.backend).probe().gpu_memory)
    if free.gpus:
        return ""
    plan = memory.plan(header, None, options.context, options.kv_type)
    here, _ = replace(plan, flash_attention=options.flash_attention).shares(gpu=False)
    needed = here.cache + here.working
    if needed <= free.main_bytes:
        return ""
    return (
        f"its own cache needs {memory.size(needed)} of main memory and"
        f" {memory.size(free.main_bytes)} are free; a shorter --context needs less"
    )
