"""What MLX says of a Mac's memory, told on any machine."""

from __future__ import annotations

import pytest

from edgespec_mlx import MlxBackend, backend
from edgespec_mlx.device import Device


def test_the_gpu_of_a_mac_takes_models_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    chip = Device(True, "Apple M2", wired_bytes=8 << 30, memory_bytes=16 << 30)
    monkeypatch.setattr(backend, "device", lambda: chip)
    monkeypatch.setattr(backend, "free_bytes", lambda here: 5 << 30)
    (memory,) = MlxBackend.probe().gpu_memory
    assert (memory.free_bytes, memory.unified, memory.partial) == (5 << 30, True, False)
