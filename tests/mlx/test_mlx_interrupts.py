"""Ctrl+C leaves no MLX session half done, wherever it comes."""

from __future__ import annotations

import numpy as np
import pytest
from interrupting import assert_whole_after_interrupts, interrupted_everywhere
from tiny_mlx import EXACT, MlxModels, session


@pytest.mark.parametrize("family", ["llama", "qwen3_next"])
def test_a_session_is_whole_wherever_it_is_interrupted(mlx_models: MlxModels, family: str) -> None:
    model = mlx_models(family)
    assert_whole_after_interrupts("edgespec_mlx/session.py", session(model), session(model))


def test_the_librarys_own_loop_is_whole_wherever_it_is_interrupted(mlx_models: MlxModels) -> None:
    loop = mlx_models().plain_loop(EXACT)
    prompt = np.random.default_rng(0).integers(0, 384, 150).astype(np.int32)

    def says() -> list[int]:
        return list(loop.answer(prompt, 5, ()))

    truth = says()
    for place in interrupted_everywhere("edgespec_mlx/", says, loop.forget):
        assert says() == truth, place
