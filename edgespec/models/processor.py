"""Which processor this machine has."""

from __future__ import annotations

import platform
from pathlib import Path

from edgespec.models.programs import output_of

_TOLD_BY_LINUX = Path("/proc/cpuinfo")
_TELLING = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "CPU implementer",
    "CPU architecture",
    "CPU variant",
    "CPU part",
    "CPU revision",
    "Features",
)  # what does not change while it runs, on x86 and on ARM


def processor_name() -> str:
    """For people."""
    return (
        _first_core(_TOLD_BY_LINUX).get("model name")
        or _brand()
        or platform.processor()
        or platform.machine()
    )


def processor_identity(told_by_linux: Path = _TOLD_BY_LINUX) -> str:
    """The same for processors of one make that can compute the same: in virtual machines and on
    ARM the name alone says too little."""
    core = _first_core(told_by_linux)
    return "|".join(core[name] for name in _TELLING if name in core) or processor_name()


def _first_core(file: Path) -> dict[str, str]:
    """What Linux says of the first core; empty elsewhere."""
    core = dict[str, str]()
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():
                    break
                name, _, value = line.partition(":")
                core[name.strip()] = value.strip()
    except OSError:
        return {}
    return core


def _brand() -> str:
    """What macOS calls the processor; empty elsewhere."""
    if platform.system() != "Darwin":
        return ""
    return output_of("sysctl", "-n", "machdep.cpu.brand_string").strip()
