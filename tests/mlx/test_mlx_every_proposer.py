"""On MLX, to the bit: whoever drafts, the text is the plain text."""

from __future__ import annotations

from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest
from every_proposer import (
    Ground,
    check_every_proposer,
    check_one_that_rests,
    check_trees,
    to_the_bit,
)
from test_mlx_session_contract import ByIndex, SeesSiblings
from tiny_mlx import EXACT, VOCAB, MlxModels, Tiny, loaded, module_of, session

from edgespec.decoding.session import Session
from edgespec.proposers.trimmed import TrimmedSession
from edgespec_mlx.model import MlxModel
from edgespec_mlx.trees import TreeLayout

NOISE, OPTIONS = 0.05, replace(EXACT, context=512)
KEPT = np.flatnonzero(np.random.default_rng(4).random(VOCAB) < 0.8).astype(np.int32)


@pytest.fixture(scope="module")
def trimmed(kernels_are_not_compiled: None) -> MlxModel:
    """A noisy copy with the tokens in KEPT alone; a last row stands for all others."""
    module = module_of(Tiny(noise=NOISE))
    for part in (module.model.embed_tokens, module.lm_head):
        part.weight = mx.concatenate([part.weight[mx.array(KEPT)], part.weight.mean(0)[None]])
    return loaded(module)


@pytest.fixture
def ground(mlx_models: MlxModels, trimmed: MlxModel) -> Ground:
    def with_table() -> Session:
        return TrimmedSession(session(trimmed, OPTIONS), KEPT, len(KEPT), VOCAB)

    return Ground(
        target=lambda: session(mlx_models(), OPTIONS),
        copy=lambda: session(mlx_models(noise=NOISE), OPTIONS),
        trimmed=with_table,
        stranger=lambda: session(mlx_models(seed=8), OPTIONS),
        same=to_the_bit,
    )


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_whoever_drafts_the_text_is_the_plain_text(ground: Ground, temperature: float) -> None:
    check_every_proposer(ground, temperature)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_model_that_is_sent_to_rest_leaves_the_text_as_it_is(
    ground: Ground, temperature: float
) -> None:
    check_one_that_rests(ground, temperature)


@pytest.mark.parametrize("name", ["n-gram tree", "merged", "trees"])
def test_a_tree_that_is_laid_out_wrongly_fails_the_same_check(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    check_trees(ground, name)  # and the model is known to read trees rightly
    for layout in (ByIndex, SeesSiblings):
        monkeypatch.setattr("edgespec_mlx.session.TreeLayout", layout)
        with pytest.raises(AssertionError, match="texts part"):
            check_trees(ground, name)
    monkeypatch.setattr("edgespec_mlx.session.TreeLayout", TreeLayout)
