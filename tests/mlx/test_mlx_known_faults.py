"""Faults that other MLX runtimes have or had, each as a claim that it is not here."""

from __future__ import annotations

from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest
from answer_trials import Chains, Oracle, Trees, answer, ask, assert_same_text, sampler
from tiny_mlx import EXACT, MlxModels, Tiny, loaded, module_of, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Stop
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import SmallModel
from edgespec.testing import read


def _prompt(length: int, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, 256, length)]


@pytest.mark.parametrize("prompt", [37, 90], ids=["shorter", "longer"])
@pytest.mark.parametrize("family", ["llama", "gemma3_text", "gpt_oss"])
def test_a_sliding_window_is_left_behind_and_the_text_stays_the_plain_text(
    mlx_models: MlxModels, family: str, prompt: int
) -> None:
    """Window 48, 60 tokens: a ring that has turned takes nothing back, and says nothing."""
    model = mlx_models(family, window=48)
    target, oracle = session(model), Oracle(session(model))
    request = ask(_prompt(prompt), sampler(0.0, 0), max_tokens=60)
    plain = answer(target, request)
    for drafter in (Chains(plain.tokens, 4, 1), Trees(plain.tokens, 16, 2)):
        fast = answer(target, request, drafter)
        assert_same_text(fast, plain, request, oracle)
        assert fast.accepted > 0
    assert list(model.plain_loop(EXACT).answer(request.prompt, 60, ())) == plain.tokens


def test_the_librarys_own_loop_has_that_fault() -> None:
    """What makes the test above worth its name."""
    from mlx_lm.generate import generate_step, speculative_generate_step

    module, draft = (module_of(Tiny("llama", window=48, noise=n)) for n in (0.0, 0.1))
    prompt = mx.array(_prompt(37))
    plain = [int(t) for t, _ in generate_step(prompt, module, max_tokens=60)]
    fast = [int(t) for t, _, _ in speculative_generate_step(prompt, module, draft, max_tokens=60)]
    assert fast != plain


def test_a_sliding_drafter_guesses_as_well_behind_its_window_as_before(
    mlx_models: MlxModels,
) -> None:
    """Where its cache is not taken back, a drafter's guesses go bad and nobody is told."""
    target = session(mlx_models("llama", window=16))
    own_copy = session(mlx_models("llama", window=16), replace(EXACT, rows=1, lazy=True))
    request = ask(_prompt(10), sampler(0.0, 0), max_tokens=120)
    told = answer(target, request, Fixed(SmallModel(own_copy, 384), 4))
    late = [r for r in told.rounds[2:-1] if r.index > 60]
    assert len(late) > 5
    assert all(r.accepted == len(r.guesses) == 4 for r in late), "a copy is always right"


def test_a_state_that_cannot_be_cut_skips_no_token(mlx_models: MlxModels) -> None:
    """Linear attention keeps a sum of all tokens; a rejected one must not stay in it."""
    target, fresh = session(mlx_models("qwen3_next")), session(mlx_models("qwen3_next"))
    committed = _prompt(20)
    read(target, committed)
    for number in range(30):
        target.verify(Draft.chain([number, number + 1, number + 2], "test"))
        keep = number % 3
        target.commit(range(keep), 100 + number)
        committed += [*range(number, number + keep), 100 + number]
    read(fresh, committed)
    rows = [s.verify(EMPTY).logits(ROOT).copy() for s in (target, fresh)]
    assert np.abs(rows[0] - rows[1]).max() < 1e-4


@pytest.mark.parametrize("length", [2, 8, 48])
def test_penalties_never_see_a_rejected_guess(mlx_models: MlxModels, length: int) -> None:
    target, oracle = session(mlx_models()), Oracle(session(mlx_models()))
    for penalised in (False, True):
        request = ask(_prompt(24), sampler(0.0, 1, penalised=penalised), max_tokens=40)
        plain = answer(target, request)
        fast = answer(target, request, Chains(plain.tokens, length, length))
        assert_same_text(fast, plain, request, oracle)
        assert 0 < fast.accepted < fast.drafted


def test_sampled_text_accepts_guesses_too(mlx_models: MlxModels) -> None:
    target = session(mlx_models())
    copy = session(mlx_models(noise=0.02), replace(EXACT, rows=1, lazy=True))
    accepted = drafted = 0
    for seed in range(6):
        request = ask(_prompt(24, seed), sampler(0.7, seed), max_tokens=30)
        told = answer(target, request, Fixed(SmallModel(copy, 384), 4))
        accepted, drafted = accepted + told.accepted, drafted + told.drafted
    assert accepted > 0.2 * drafted > 0


def test_a_drafter_with_a_shorter_context_stops_guessing_and_the_answer_goes_on(
    mlx_models: MlxModels,
) -> None:
    target = session(mlx_models())
    short = session(mlx_models(noise=0.02), replace(EXACT, context=64, rows=1, lazy=True))
    request = ask(_prompt(20), sampler(0.0, 0), max_tokens=180)
    plain = answer(target, request)
    fast = answer(target, request, Fixed(SmallModel(short, 384), 4))
    assert (fast.tokens, fast.why) == (plain.tokens, Stop.LENGTH)
    assert fast.drafted > 0
    assert not [r for r in fast.rounds if r.guesses and r.index > 64]


def test_a_drafter_of_damaged_weights_costs_plain_rounds_and_is_told_of_once(
    mlx_models: MlxModels,
) -> None:
    """Half floats that overflow on an old chip look like this: every score is no number."""
    module = module_of(Tiny())
    module.model.norm.weight = module.model.norm.weight * float("nan")
    damaged = loaded(module).session(replace(EXACT, rows=1, lazy=True))
    target = session(mlx_models())
    request = ask(_prompt(20), sampler(0.0, 0), max_tokens=30)
    plain = answer(target, request)
    told = answer(target, request, Fixed(SmallModel(damaged, 384), 4))
    assert told.tokens == plain.tokens
    assert told.accepted == 0
    assert len(told.notes) == 1
    assert "no numbers" in told.notes[0]


def test_a_tree_whose_nodes_stand_by_index_scores_otherwise(mlx_models: MlxModels) -> None:
    """Positions are base and depth; the order of siblings in the pass does not count."""
    target = session(mlx_models())
    read(target, _prompt(30))
    wide = Draft((5, 6, 7, 8, 9), (-1, -1, -1, -1, 3), ("t",) * 5, (None,) * 5)
    behind_others = target.verify(wide).logits(4).copy()
    alone = target.verify(Draft.chain([8, 9], "t"))
    assert np.abs(behind_others - alone.logits(1)).max() < 1e-4
    assert np.abs(behind_others - alone.logits(0)).max() > 0.1


def test_a_long_request_ends_where_it_should_and_not_where_a_ring_is_full(
    mlx_models: MlxModels,
) -> None:
    target = session(mlx_models("gpt_oss", window=16), replace(EXACT, context=560))
    request = ask(_prompt(24), sampler(0.0, 0), max_tokens=460)
    plain = list(
        mlx_models("gpt_oss", window=16)
        .plain_loop(replace(EXACT, context=560))
        .answer(request.prompt, 460, ())
    )
    told = answer(target, request, Chains(plain, 16, 3))
    assert (told.why, len(told.tokens)) == (Stop.LENGTH, 460)
    assert told.accepted > 40
