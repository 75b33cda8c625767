"""How many threads a model gets where nobody says."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from edgespec import cgroups
from edgespec.backends import physical_cores


@pytest.fixture(autouse=True)
def control_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of version 2 that this process seems to belong to; no limit is set in it."""
    (tmp_path / "membership").write_text("0::/pod/app\n")
    monkeypatch.setattr(cgroups, "_MEMBERSHIP", tmp_path / "membership")
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    folder = tmp_path / "pod" / "app"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize(
    ("physical", "allowed", "threads"), [(8, 16, 8), (8, 2, 2), (1, 1, 1), (0, 4, 1)]
)
def test_a_model_gets_the_physical_cores_that_the_process_may_use(
    monkeypatch: pytest.MonkeyPatch, physical: int, allowed: int, threads: int
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: physical)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(allowed)), raising=False)
    assert physical_cores() == threads


def test_a_system_that_tells_nothing_of_permissions_gives_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 6)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert physical_cores() == 6


@pytest.mark.parametrize(
    ("limit", "threads"),
    [("200000 100000", 2), ("150000 100000", 2), ("5000 100000", 1), ("max 100000", 8), ("", 8)],
)
def test_a_container_gets_as_many_threads_as_it_is_granted_processors(
    monkeypatch: pytest.MonkeyPatch, control_groups: Path, limit: str, threads: int
) -> None:
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    (control_groups / "cpu.max").write_text(f"{limit}\n")
    assert physical_cores() == threads


def test_the_narrowest_grant_on_the_way_up_counts(control_groups: Path, tmp_path: Path) -> None:
    (control_groups / "cpu.max").write_text("800000 100000\n")
    (control_groups.parent / "cpu.max").write_text("300000 100000\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert cgroups.processors("0::/pod/app\n", tmp_path) == 3
    assert cgroups.processors("", tmp_path) is None


def test_grants_of_the_older_control_groups_count_too(tmp_path: Path) -> None:
    folder = tmp_path / "cpu"
    folder.mkdir()
    (folder / "cpu.cfs_period_us").write_text("100000\n")
    (folder / "cpu.cfs_quota_us").write_text("250000\n")
    membership = "5:memory:/docker/x\n4:cpu,cpuacct:/docker/x\n"  # mounted as the container sees it
    assert cgroups.processors(membership, tmp_path) == 3
    (folder / "cpu.cfs_quota_us").write_text("-1\n")
    assert cgroups.processors(membership, tmp_path) is None
