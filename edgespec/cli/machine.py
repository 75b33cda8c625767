"""What this machine has, as far as the system and its drivers tell without waiting."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from edgespec.models.processor import processor_name
from edgespec.models.programs import output_of

_NVIDIA_DRIVER = Path("/proc/driver/nvidia/gpus")
_AMD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU that a driver knows. vendor: nvidia, amd or apple."""

    vendor: str
    name: str


@dataclass(frozen=True, slots=True)
class Machine:
    """System, processor and memory. cores: physical; None where the system does not tell."""

    system: str
    cpu: str
    cores: int | None
    memory_bytes: int


def this_machine() -> Machine:
    import psutil  # a fifth of the start-up of commands that do not need it

    return Machine(
        system=platform.platform(),
        cpu=processor_name(),
        cores=psutil.cpu_count(logical=False),
        memory_bytes=psutil.virtual_memory().total,
    )


def apple_chip() -> bool:
    return platform.system() == "Darwin" and platform.machine() == "arm64"


def gpus() -> tuple[Gpu, ...]:
    """The GPUs whose drivers answer."""
    if apple_chip():
        return (Gpu("apple", processor_name()),)
    return (*_nvidia(), *_amd())


def _nvidia() -> tuple[Gpu, ...]:
    # the driver's own files first: they cost nothing, the tool may take seconds
    names = [
        line.partition(":")[2].strip()
        for file in sorted(_NVIDIA_DRIVER.glob("*/information"))
        for line in _lines_of(file)
        if line.startswith("Model:")
    ]
    if not names:
        told = output_of("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
        names = [line.strip() for line in told.splitlines() if line.strip()]
    return tuple(Gpu("nvidia", name) for name in names)


def _amd() -> tuple[Gpu, ...]:
    nodes = []
    for folder in sorted(_AMD_NODES.glob("*")):
        properties = dict(
            line.split(maxsplit=1) for line in _lines_of(folder / "properties") if " " in line
        )
        if properties.get("gfx_target_version", "0") != "0":  # 0 is a CPU node
            names = _lines_of(folder / "name")
            nodes.append(Gpu("amd", names[0] if names else "AMD GPU"))
    if nodes:
        return tuple(nodes)
    told = output_of("rocm-smi", "--showproductname", "--csv")
    rows = [line.split(",") for line in told.splitlines() if line.startswith("card")]
    return tuple(Gpu("amd", row[1] if len(row) > 1 else "AMD GPU") for row in rows)


def _lines_of(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
