"""What MLX computes on here, and in which number format."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Final

from edgespec.backends import physical_cores
from edgespec.errors import BackendMissing

# elsewhere than on a Mac, MLX comes with nothing to compute on unless that is asked for
_NEEDS: Final = '"mlx-lm>=0.32.2"' + (' "mlx[cpu]>=0.32.4"' if sys.platform == "linux" else "")
_INSTALL: Final = f"Install it with: pip install {_NEEDS}"
_CHIP: Final = re.compile(r"\bM(\d+)\b")
_FIRST_FAST_BFLOAT: Final = 3  # M1 and M2 compute bfloat16 in steps
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Device:
    """Where passes run. chip: "" without Metal. wired_bytes: what the system lets models keep in
    memory; 0 where there is no such limit. memory_bytes: all there is."""

    metal: bool
    chip: str = ""
    wired_bytes: int = 0
    memory_bytes: int = 0

    @property
    def words(self) -> str:
        if not self.metal:
            return f"CPU, {physical_cores()} cores (MLX)"
        limit = f", {self.wired_bytes / _GIB:.1f} GiB of" if self.wired_bytes else ","
        memory = f"{self.memory_bytes / _GIB:.0f} GiB of memory" if self.memory_bytes else "memory"
        words = "for models" if self.wired_bytes else "shared with the system"
        return f"{self.chip or 'Metal GPU'} (Metal{limit} {memory} {words})"


def core() -> Any:
    """The module mlx.core. Raises: BackendMissing where MLX or mlx-lm is not installed."""
    try:
        import mlx.core as mx
    except (ImportError, OSError, RuntimeError) as error:
        raise BackendMissing(f"The MLX backend needs mlx ({error}). {_INSTALL}") from error
    if find_spec("mlx_lm") is None:
        raise BackendMissing(f"The MLX backend needs mlx-lm. {_INSTALL}")
    return mx


def library_version() -> str:
    """Versions of MLX and of the models' code."""
    try:
        return f"{version('mlx')}, mlx-lm {version('mlx-lm')}"
    except PackageNotFoundError:
        return "unknown"


@cache
def device() -> Device:
    """What MLX found."""
    mx = core()
    if not mx.metal.is_available():
        return Device(metal=False)
    facts = mx.device_info()
    return Device(
        True,
        str(facts.get("device_name", "")),
        int(facts.get("max_recommended_working_set_size", 0)),
        int(facts.get("memory_size", 0)),
    )


def free_bytes(here: Device) -> int:
    """What a model may still take of the GPU's part of memory."""
    return max(0, (here.wired_bytes or here.memory_bytes) - int(core().get_active_memory()))


def number_format(chip: str, stored: str, *, quantised: bool, guesses_only: bool) -> str:
    """In which format a model's floating-point numbers are kept in memory, by its name in MLX.

    chip: as Metal names it; "" for a CPU. stored: of the file. What a target says must not depend
    on the chip, so its numbers stay as they are; a drafter's may lose some range for speed.
    """
    if not chip:
        # without Metal, passes of packed weights over 16-bit numbers take several times as long
        return "float32" if quantised else stored
    generation = _CHIP.search(chip)
    slow = generation is not None and int(generation[1]) < _FIRST_FAST_BFLOAT
    return "float16" if guesses_only and slow and stored == "bfloat16" else stored
