"""Hidden states on MLX: recorded without touching a model, and proven to be what they say."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_flatten
from tiny_mlx import ASKED_FOR, VOCAB, WIDTH, MlxModels, Tiny, module_of, session

from edgespec.decoding.draft import Draft
from edgespec.errors import BadInput
from edgespec.testing import read
from edgespec_mlx.tap import Tap, tappable_layers

TOKENS = mx.array([1, 2, 3, 4, 5])


@pytest.mark.parametrize("bits", [None, 4], ids=["f32", "4 bit"])
@pytest.mark.parametrize("family", [*ASKED_FOR, "gemma4_text", "qwen3_next", "mamba", "lfm2"])
def test_every_layer_of_most_families_can_be_tapped(
    mlx_models: MlxModels, family: str, bits: int | None
) -> None:
    model = mlx_models(family, bits=bits)
    layers = len(model._runner.module.layers)
    assert session(model).caps.hidden == tuple(range(layers))


def test_a_family_whose_layers_hand_on_something_else_says_so(mlx_models: MlxModels) -> None:
    """gemma3n's layers hand on several streams at once."""
    assert session(mlx_models("gemma3n")).caps.hidden is None


def test_the_head_makes_the_scores_of_the_last_hidden_state(mlx_models: MlxModels) -> None:
    model = mlx_models()
    target, module = session(model), model._runner.module
    model.watch(target, (0, 1))
    read(target, [1, 2, 3])
    scores = target.verify(Draft.chain([4, 5], "test"))
    assert {n: h.shape for n, h in scores.hidden.items()} == {n: (3, WIDTH) for n in (0, 1)}
    head = module.lm_head(module.model.norm(scores.hidden[1]))
    for node in (-1, 0, 1):
        assert np.array_equal(np.asarray(head[node + 1]), scores.logits(node))


def test_a_session_hears_of_its_own_passes_only(mlx_models: MlxModels) -> None:
    model = mlx_models("qwen2")
    one, other = session(model), session(model)
    model.watch(one, (0,))
    model.watch(other, (1,))
    read(one, [1, 2, 3])
    read(other, [7, 8])
    first = one.verify(Draft.chain([4], "test"))
    second = other.verify(Draft.chain([9, 10, 11], "test"))
    assert (list(first.hidden), first.hidden[0].shape) == ([0], (2, WIDTH))
    assert (list(second.hidden), second.hidden[1].shape) == ([1], (4, WIDTH))
    assert session(model).verify is not None


def test_a_layer_that_is_not_there_cannot_be_watched(mlx_models: MlxModels) -> None:
    with pytest.raises(BadInput, match=r"no hidden states of layers \[9\]"):
        mlx_models().watch(session(mlx_models()), (0, 9))


def test_a_tap_leaves_classes_names_and_weights_as_they_were() -> None:
    module = module_of(Tiny())
    before = [name for name, _ in tree_flatten(module.parameters())]
    kinds = [type(layer) for layer in module.layers]
    with Tap(module.layers) as tap:
        assert [name for name, _ in tree_flatten(module.parameters())] == before
        module(TOKENS[None])
    given, returned = tap.take()
    assert [type(layer) for layer in module.layers] == kinds
    assert sorted(given) == sorted(returned) == [0, 1]
    module(TOKENS[None])
    assert tap.take() == ({}, {})


class OneLayerLate(Tap):
    """Hands out each layer's hidden state under the next one's number."""

    def _recording(self, number: int, kind: Any) -> type:
        return super()._recording(number + 1, kind)

    def take(self) -> Any:
        given, returned = super().take()
        return {n - 1: x for n, x in given.items()}, returned


def test_a_tap_on_the_wrong_layer_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(Tiny("qwen3"))
    assert tappable_layers(module, WIDTH, TOKENS) == (0, 1)
    monkeypatch.setattr("edgespec_mlx.tap.Tap", OneLayerLate)
    assert tappable_layers(module, WIDTH, TOKENS) is None


class Scaled(Tap):
    """A tap that is not what it claims to be: it changes what it records."""

    def take(self) -> Any:
        given, returned = super().take()
        return given, {n: [2 * x for x in xs] for n, xs in returned.items()}


def test_hidden_states_that_are_changed_on_the_way_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgespec_mlx.tap.Tap", Scaled)
    assert tappable_layers(module_of(Tiny("qwen3")), WIDTH, TOKENS) is None


def test_a_hidden_size_that_the_config_gets_wrong_is_caught() -> None:
    assert tappable_layers(module_of(Tiny()), WIDTH + 1, TOKENS) is None
    assert VOCAB != WIDTH
