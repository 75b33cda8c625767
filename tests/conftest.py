"""What tests of several rooms share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_models import TinyModels


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Small GGUF models, each written once: `tiny_models(seed=0, noise=0.05) -> Path`."""
    return TinyModels(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Models that several tests share are loaded before any test's own cache is set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("EDGESPEC_DATA_DIR", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True)
def cache_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No test reads or writes the user's cache, or the record of pulled pairs."""
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "data"))
    folder = tmp_path / "cache"
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(folder))
    return folder


@pytest.fixture(scope="session", autouse=True)
def machine_at_rest() -> Iterator[None]:
    """Tests beside others find the machine busy; what they load counts as measured at rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgespec.measuring.busy", lambda: False)
        yield
