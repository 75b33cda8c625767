"""How much of this machine is free: memory that may still be taken, and processors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_LOOK_S, _BUSY_PERCENT = 0.2, 30.0


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """What a GPU has free, as its backend reports it. unified: it is a part of main memory."""

    free_bytes: int
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Available:
    """What may still be taken. gpus: those that the backend will use."""

    main_bytes: int
    gpus: tuple[GpuMemory, ...] = ()


def available_memory() -> int:
    """Bytes of main memory, the least of what machine, process limit and container leave."""
    machine: int = psutil.virtual_memory().available
    try:
        membership = _MEMBERSHIP.read_text()
    except OSError:
        membership = ""
    limits = [machine, _process_room(), cgroup_room(membership, _CGROUPS)]
    return max(0, min(limit for limit in limits if limit is not None))


def _process_room() -> int | None:
    """What RLIMIT_AS leaves; None without such a limit."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return None
    used: int = psutil.Process().memory_info().vms
    return soft - used


def cgroup_room(membership: str, root: Path) -> int | None:
    """What the control groups leave, the narrowest on the way up; None if none limits memory.

    membership: the text of /proc/self/cgroup. root: where control groups are mounted.
    Source: kernel documentation, cgroup-v2.rst and cgroup-v1/memory.rst.
    """
    rooms: list[int] = []
    for line in membership.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if not controllers:
            top, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = root / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = top / name.strip("/")
        for folder in (group, *group.parents):
            room = _room(folder, names)
            if room is not None:
                rooms.append(room)
            if folder == top:
                break
    return min(rooms, default=None)


def _room(folder: Path, names: tuple[str, str, str]) -> int | None:
    """Limit less use; pages of files that were read and can be dropped do not count as use."""
    limit_name, used_name, droppable_name = names
    try:
        limit = int((folder / limit_name).read_text())
        used = int((folder / used_name).read_text())
        lines = (folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # no such group, or the limit is "max"
        return None
    stat = dict(line.split(" ", 1) for line in lines if " " in line)
    droppable = stat.get(droppable_name, "0")
    return limit - used + (int(droppable) if droppable.isdigit() else 0)


def busy() -> bool:
    """Whether other programs than this take a good part of this machine's processors just now."""
    started, own_s = perf_counter(), process_time()
    percent: float = psutil.cpu_percent(_LOOK_S)
    own = (process_time() - own_s) / (perf_counter() - started)
    return percent - 100 * own / (psutil.cpu_count() or 1) > _BUSY_PERCENT
