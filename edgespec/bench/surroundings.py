"""Where figures were measured: machine, versions, model files, and what else was going on."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from edgespec.api import Model
from edgespec.errors import EdgespecError
from edgespec.models.identity import files_of, label_of
from edgespec.models.shown import shown
from edgespec.models.store import cache_dir, write_atomically

_BLOCK = 1 << 22
_LIBRARIES = ("edgespec", "llama-cpp-python", "mlx", "mlx-lm", "numpy")
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "acpitz")


@dataclass(frozen=True, slots=True)
class Host:
    """The machine, as whoever starts the benchmark knows it. cores: physical."""

    system: str
    cpu: str
    cores: int | None
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file with weights. sha256: of all its bytes; None where it was not computed."""

    name: str
    bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a figure depends on beside the program. None is what the system does not tell."""

    host: Host
    usable_cores: int
    threads: int | None
    device: str
    backend: str
    versions: dict[str, str]
    files: tuple[ModelFile, ...]
    exactness: str
    command: str
    clock_mhz: float | None
    temperature_c: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def surroundings(
    model: Model, host: Host, threads: int | None, command: str, *, hashes: Hashes
) -> Surroundings:
    """What is so now, before anything is measured."""
    pair = model.loaded.pair
    paths = [path for path in (pair.target, pair.draft) if path is not None]
    return Surroundings(
        host=host,
        usable_cores=usable_cores(),
        threads=threads,
        device=shown(model.info.device),
        backend=model.info.backend,
        versions=_versions(),
        files=tuple(file for path in paths for file in model_files(path, hashes)),
        exactness=model.info.exactness,
        command=shown(command, most=2000),
        clock_mhz=_clock_mhz(),
        temperature_c=_temperature_c(),
    )


Hashes = Callable[[Path], str | None]


def model_files(model: Path, hashes: Hashes) -> tuple[ModelFile, ...]:
    """Every file with weights of a model. Raises: as files_of()."""
    # the files of all MLX folders are called alike
    place = f"{label_of(model.absolute())}/" if os.path.isdir(model) else ""
    return tuple(
        ModelFile(shown(f"{place}{file.name}"), file.stat().st_size, hashes(file))
        for file in files_of(model)
    )


def remembered_sha256(path: Path) -> str | None:
    """The hash of a file that was hashed before and has not changed since."""
    try:
        return _note_of(path).read_text(encoding="ascii").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def sha256(path: Path) -> str:
    """The hash of a file; some seconds for each GiB, once."""
    known = remembered_sha256(path)
    if known is not None:
        return known
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    try:
        write_atomically(_note_of(path), digest.hexdigest().encode())
    except EdgespecError:  # a cache that cannot be written costs the next benchmark, not this one
        return digest.hexdigest()
    return digest.hexdigest()


def load_average() -> float | None:
    """Processes that want to run, averaged over a minute."""
    try:
        return psutil.getloadavg()[0]
    except OSError:
        return None


def peak_memory_bytes() -> int:
    """The most memory this process has held at any time."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def usable_cores() -> int:
    """Logical cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _note_of(path: Path) -> Path:
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    return cache_dir() / "hashed" / hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:24]


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _clock_mhz() -> float | None:
    try:
        now = psutil.cpu_freq()
    except (OSError, NotImplementedError, AttributeError, RuntimeError):  # differs by system
        return None
    return now.current if now is not None and now.current else None


def _temperature_c() -> float | None:
    """The warmest of the sensors that belong to the processor."""
    if not hasattr(psutil, "sensors_temperatures"):  # some systems have none to ask
        return None
    sensors = psutil.sensors_temperatures()
    read = [entry.current for name in _SENSORS for entry in sensors.get(name, ())]
    return max(read, default=None)
