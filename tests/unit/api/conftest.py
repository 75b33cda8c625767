"""A tiny pair, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from api_trials import Load
from tiny_models import TinyModels

from edgespec.api import Model, Speculation, load


@pytest.fixture(scope="session")
def shared_pair(
    tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Model]:
    pytest.importorskip("llama_cpp")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        model = load(
            target=str(tiny_models(layers=2)),
            draft=str(tiny_models(layers=2, noise=0.03)),
            threads=1,
            context=512,
            kv_type="f32",
            flash_attention="off",
        )
    yield model
    model.close()


@pytest.fixture
def pair(shared_pair: Model) -> Model:
    """A target and a noisy copy of it, with the settings of a fresh load."""
    shared_pair.speculation = Speculation()
    return shared_pair


@pytest.fixture
def opened(tiny_models: TinyModels) -> Iterator[Load]:
    """Loads tiny models on one thread and closes them: `opened(layers=2, strict=True)`."""
    pytest.importorskip("llama_cpp")
    models: list[Model] = []

    def open_(target: str | None = None, **settings: Any) -> Model:
        target = target or str(tiny_models(layers=2))
        models.append(load(target=target, **{"threads": 1, "context": 256, **settings}))
        return models[-1]

    yield open_
    for model in models:
        model.close()
