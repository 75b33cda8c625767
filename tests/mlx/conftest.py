"""Tiny models on MLX, each made once. Kernels are not compiled: exact, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tiny_mlx import MlxModels


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "metal: needs an Apple chip; skipped elsewhere")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("metal") is None:
        return
    core = pytest.importorskip("mlx.core", reason="mlx is not installed")
    if not core.metal.is_available():
        pytest.skip("needs Metal, which only Macs with Apple chips have; see docs/mac.md")


@pytest.fixture(scope="session", autouse=True)
def kernels_are_not_compiled() -> Iterator[None]:
    core = pytest.importorskip("mlx.core", reason="mlx is not installed")
    core.disable_compile()
    yield
    core.enable_compile()


@pytest.fixture(scope="session")
def mlx_models(kernels_are_not_compiled: None) -> MlxModels:
    """Models by family and shape: `mlx_models("gemma2", bits=4) -> MlxModel`."""
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    from tiny_mlx import MlxModels

    return MlxModels()
