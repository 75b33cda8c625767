"""On real llama.cpp, whoever drafts, the text is the plain text but for near ties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pytest
from answer_trials import Oracle, Told, assert_same_text, heard, never_vacuous, still
from every_proposer import (
    SIBLINGS,
    Ground,
    Stage,
    branches,
    check_every_proposer,
    check_one_that_rests,
    check_trees,
    prompt_of,
)
from llama_trials import Models, session
from test_growing_trees_on_llama import two_in_one_context
from test_session_contract import PositionsByIndex, SeesEverything
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.backends import Placement
from edgespec.decoding.draft import Draft
from edgespec.decoding.loop import speculate
from edgespec.decoding.request import Request
from edgespec.decoding.session import Session
from edgespec.errors import BackendFailed
from edgespec.proposers.trimmed import TrimmedSession
from edgespec_llamacpp import LlamaCppBackend
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.session import LlamaSession

CONTEXT, NOISE = 512, 0.055
KEPT = np.flatnonzero(np.random.default_rng(4).random(384) < 0.8)


@pytest.fixture(scope="module")
def trimmed(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> LlamaModel:
    path: Path = tmp_path_factory.mktemp("trimmed") / "drafter.gguf"
    write_trimmed(path, tiny_models(layers=2, noise=NOISE), KEPT.tolist())
    return LlamaCppBackend.load(path, Placement())


@pytest.fixture
def ground(llama: Models, trimmed: LlamaModel) -> Ground:
    oracle = Oracle(session(llama(layers=2), CONTEXT))

    def same(fast: Told, plain: Told, request: Request) -> bool:
        return assert_same_text(fast, plain, request, oracle)

    def of(model: LlamaModel) -> Callable[[], Session]:
        return lambda: session(model, CONTEXT)

    def with_table() -> Session:
        return TrimmedSession(session(trimmed, CONTEXT), KEPT, len(KEPT), 384)

    copy, stranger = llama(layers=2, noise=NOISE), llama(layers=2, seed=9)
    return Ground(of(llama(layers=2)), of(copy), with_table, of(stranger), same)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_whoever_drafts_the_text_is_the_plain_text(ground: Ground, temperature: float) -> None:
    check_every_proposer(ground, temperature, least_same=0.95)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_model_that_is_sent_to_rest_leaves_the_text_as_it_is(
    ground: Ground, temperature: float
) -> None:
    check_one_that_rests(ground, temperature)


class AsOneChain(LlamaSession):
    """Positions by index and a causal mask: each node follows the one before it."""

    def _lay_out(self, tree: Draft, known: int, row: int) -> None:
        pass  # the batch is filled as a chain


REFUSED = r"llama\.cpp could not run the model"


@pytest.mark.parametrize("name", SIBLINGS)
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (PositionsByIndex, REFUSED),
        (SeesEverything, f"{REFUSED}|texts part"),
        (AsOneChain, "texts part"),
    ],
)
def test_a_tree_that_is_laid_out_wrongly_fails_the_same_check(
    ground: Ground, name: str, kind: type[LlamaSession], told: str
) -> None:
    """What does not fit together llama.cpp refuses; what does it computes, and other text comes."""

    def broken() -> Session:
        made = ground.target()
        made.__class__ = kind
        return made

    check_trees(ground, name)
    with pytest.raises((AssertionError, BackendFailed), match=told):
        check_trees(replace(ground, target=broken), name)


class KeepsNobodyElse(LlamaSession):
    """Drops losing leaves by the call that empties every other sequence of the context too."""

    def _keep_winner(self, path: Sequence[int], base: int) -> None:
        super()._keep_winner(path, base)
        self._lib.llama_memory_seq_keep(self._memory, self._slot)


def _check_by_turns(
    ground: Ground, both: tuple[LlamaSession, LlamaSession], name: str, temperature: float
) -> None:
    """Two answers, a round of one and a round of the other, are each the plain text."""
    stages = [Stage(ground, prompt_of(seed, 384), temperature) for seed in range(2)]
    runs = [
        speculate(target, stage.request, stage.proposer(name, target.caps), clock=still)
        for target, stage in zip(both, stages, strict=True)
    ]
    for stage, events in zip(stages, zip(*zip_longest(*runs), strict=True), strict=True):
        told = heard(event for event in events if event is not None)
        assert ground.same(told, stage.plain, stage.request)
        assert any(branches(told))
        never_vacuous({name: [told]})


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("name", ["n-gram tree", "model tree", "merged", "trees"])
def test_two_answers_in_one_cache_by_turns_are_each_the_plain_text(
    llama: Models, ground: Ground, name: str, temperature: float
) -> None:
    both = two_in_one_context(llama(layers=2))
    _check_by_turns(ground, both, name, temperature)
    both[1].close()
    both[0].close()


def test_a_session_that_empties_the_others_sequences_fails_the_same_check(
    llama: Models, ground: Ground
) -> None:
    both = two_in_one_context(llama(layers=2))
    both[1].__class__ = KeepsNobodyElse
    with pytest.raises((AssertionError, BackendFailed), match=f"{REFUSED}|texts part"):
        _check_by_turns(ground, both, "merged", 0.8)
    both[1].close()
    both[0].close()
