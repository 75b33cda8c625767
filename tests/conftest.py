"""What tests of several rooms share."""

from __future__ import annotations

import pytest
from tiny_models import TinyModels


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> TinyModels:
    """Small GGUF models, each written once: `tiny_models(seed=0, noise=0.05) -> Path`."""
    return TinyModels(tmp_path_factory.mktemp("tiny"))
