"""A fake hub and an empty cache for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_hub import FakeHub
from huggingface_hub import close_session, constants
from scene import TOKEN, Told

from edgespec.models import hub_errors
from edgespec.models.hub import Hub


@pytest.fixture
def fake_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    # telemetry would ask the real hub
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with FakeHub() as hub:
        yield hub
        close_session()


@pytest.fixture
def hub_cache(tmp_path: Path) -> Path:
    return tmp_path / "hub"


@pytest.fixture
def client(fake_hub: FakeHub, hub_cache: Path) -> Hub:
    return Hub(fake_hub.endpoint, hub_cache, TOKEN)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that would have been waited between tries."""
    waited: list[float] = []
    monkeypatch.setattr(hub_errors, "sleep", waited.append)
    return waited
