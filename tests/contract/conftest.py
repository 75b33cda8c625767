"""Tiny models in real llama.cpp, each loaded once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from llama_trials import Models
from tiny_models import TinyModels


@pytest.fixture(scope="session")
def llama(tiny_models: TinyModels) -> Iterator[Models]:
    """Loaded models by shape: `llama(noise=0.055) -> LlamaModel`."""
    pytest.importorskip("llama_cpp")
    models = Models(tiny_models)
    yield models
    models.close()


@pytest.fixture(autouse=True)
def no_session_outlives_its_test(llama: Models) -> Iterator[None]:
    yield
    llama.free_sessions()
