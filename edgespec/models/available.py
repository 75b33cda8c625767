"""How much of this machine is free: memory that may still be taken, and processors."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import psutil

from edgespec import cgroups

# files of a control group with its limit and its use, and a line of memory.stat
_UNIFIED = ("memory.max", "memory.current", "inactive_file")
_OLDER = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_LOOK_S, _BUSY_PERCENT = 0.2, 30.0


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """What a GPU has free, as its backend reports it.

    unified: it is a part of main memory. partial: it may hold some of a model's layers only.
    """

    free_bytes: int
    unified: bool = False
    partial: bool = True


@dataclass(frozen=True, slots=True)
class Available:
    """What may still be taken. gpus: those that the backend will use."""

    main_bytes: int
    gpus: tuple[GpuMemory, ...] = ()


def available_memory() -> int:
    """Bytes of main memory, the least of what machine, process limit and container leave."""
    machine: int = psutil.virtual_memory().available
    limits = [machine, _process_room(), cgroup_room(cgroups.membership(), cgroups.ROOT)]
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
    """
    rooms = (_room(group) for group in cgroups.groups(membership, "memory", root))
    return min((room for room in rooms if room is not None), default=None)


def _room(group: cgroups.Group) -> int | None:
    """Limit less use; pages of files that were read and can be dropped do not count as use."""
    folder = group.folder
    limit_name, used_name, droppable_name = _UNIFIED if group.unified else _OLDER
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
