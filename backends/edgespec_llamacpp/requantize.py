"""Another number format of the same weights."""

from __future__ import annotations

import ctypes
from pathlib import Path

from edgespec.backends import physical_cores
from edgespec.errors import BackendFailed
from edgespec_llamacpp.library import (
    errors_since,
    interrupts_wait,
    library,
    log_mark,
)

FORMATS = {"bf16": 32}  # enum llama_ftype


def requantize(source: Path, target: Path, number_format: str) -> None:
    """Write `source` to `target` in another format; the caller moves it into place."""
    lib = library()
    parameters = lib.llama_model_quantize_default_params()
    parameters.ftype = FORMATS[number_format]
    parameters.allow_requantize = True
    parameters.nthread = physical_cores()
    mark = log_mark()
    with interrupts_wait():
        result = lib.llama_model_quantize(
            str(source).encode(), str(target).encode(), ctypes.byref(parameters)
        )
    if result != 0:
        raise BackendFailed(
            f"Could not write {target.name} as {number_format}: {errors_since(mark)}."
            " Is there room on the disk?"
        )
