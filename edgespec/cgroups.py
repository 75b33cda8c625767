"""The control groups of Linux that this process belongs to, which containers are made of.

Source: kernel documentation, cgroup-v2.rst and cgroup-v1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Group:
    """One control group. unified: of version 2, whose files have other names."""

    folder: Path
    unified: bool


def membership() -> str:
    """The text of /proc/self/cgroup; empty where there is none."""
    try:
        return _MEMBERSHIP.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def groups(belongs_to: str, controller: str, root: Path) -> Iterator[Group]:
    """The groups that may limit this process, each with those around it; some may not be there.

    belongs_to: as membership(). controller: `memory` or `cpu`. root: where groups are mounted.
    """
    for line in belongs_to.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        top = root / controller if controllers else root
        group = top / name.strip("/")
        for folder in (group, *group.parents):
            yield Group(folder, unified=not controllers)
            if folder == top:
                break


def processors(belongs_to: str, root: Path) -> int | None:
    """How many processors' time the groups grant, rounded up; None if none limits it.

    belongs_to, root: as in groups().
    """
    granted = (_granted(group) for group in groups(belongs_to, "cpu", root))
    return min((count for count in granted if count is not None), default=None)


def _granted(group: Group) -> int | None:
    try:
        if group.unified:
            quota, period = (group.folder / "cpu.max").read_text().split()
        else:
            quota = (group.folder / "cpu.cfs_quota_us").read_text()
            period = (group.folder / "cpu.cfs_period_us").read_text()
        quota_us, period_us = int(quota), int(period)
    except (OSError, ValueError):  # no such group, or the limit is "max"
        return None
    return math.ceil(quota_us / period_us) if quota_us > 0 and period_us > 0 else None
