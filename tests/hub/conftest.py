"""A fake hub and an empty cache for every test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from fake_hub import FakeHub
from huggingface_hub import close_session, constants
from scene import DRAFT, TARGET, TOKEN, Pull, Told
from tiny_models import TinyModels

from edgespec.cli.root import edgespec
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


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def models(fake_hub: FakeHub, tiny_models: TinyModels) -> FakeHub:
    """A target in two quantisations, and a draft model that fits it."""
    target, draft = tiny_models(seed=1).read_bytes(), tiny_models(seed=1, layers=1).read_bytes()
    fake_hub.add(TARGET, {"big-Q4_K_M.gguf": target, "big-Q8_0.gguf": target + b"\0"})
    fake_hub.add(DRAFT, {"small-Q8_0.gguf": draft})
    return fake_hub


@pytest.fixture
def pull(client: Hub, monkeypatch: pytest.MonkeyPatch) -> Pull:
    """Runs the command in this process, with the fake hub and an empty cache."""
    monkeypatch.setattr(Hub, "from_environment", lambda: client)

    def run(*arguments: str, **extra: object) -> Result:
        return CliRunner().invoke(edgespec, ["pull", *arguments], **extra)  # type: ignore[arg-type]

    return run
