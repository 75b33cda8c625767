"""How many threads a model gets where nobody says."""

from __future__ import annotations

import os

import psutil
import pytest

from edgespec.backends import physical_cores


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
