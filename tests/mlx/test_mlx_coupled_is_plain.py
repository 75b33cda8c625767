"""On MLX, the text under the coupled rule is the plain text, whoever drafts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from answer_trials import (
    Chains,
    Oracle,
    Told,
    Trees,
    answer,
    ask,
    assert_same_text,
    never_vacuous,
    sampler,
    with_prediction,
    words,
)
from tiny_mlx import ASKED_FOR, EXACT, WITH_WINDOW, MlxModels, session

from edgespec.decoding.draft import ROOT, Draft, Row
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Request
from edgespec.proposers.combine import FirstOf, Fixed
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.ngram import NGram
from edgespec_mlx.model import MlxModel

SAMPLERS = [(t, p) for t in (0.0, 0.7, 1.3) for p in (False, True)]
NAMES = [f"T={t}{', penalised' if p else ''}" for t, p in SAMPLERS]
TO_THE_BIT = ("llama", "qwen2", "qwen3", "phi3")


def _compare(model: MlxModel, requests: Sequence[Request]) -> None:
    """Chains and trees against plain decoding; equal but for near ties, and never without guesses
    that were right and guesses that were wrong."""
    target, oracle, told = session(model), Oracle(session(model)), list[Told]()
    for number, request in enumerate(requests):
        plain = answer(target, request)
        assert len(plain.tokens) == request.max_tokens
        drafters: list[Proposer] = [Chains(plain.tokens, 1 + number, number)]
        drafters.append(Trees(plain.tokens, 4 + 3 * number, number))
        for drafter in drafters:
            fast = answer(target, request, drafter)
            assert_same_text(fast, plain, request, oracle)
            told.append(fast)
    never_vacuous({"chains and trees": told})


@pytest.mark.parametrize("bits", [None, 4], ids=["f32", "4 bit"])
@pytest.mark.parametrize("family", ASKED_FOR)
def test_chains_and_trees_change_nothing_whatever_the_sampler(
    mlx_models: MlxModels, family: str, bits: int | None
) -> None:
    requests = [
        ask(words(seed), sampler(temperature, seed, penalised=penalised))
        for seed, (temperature, penalised) in enumerate(SAMPLERS)
    ]
    _compare(mlx_models(family, bits=bits), requests)


@pytest.mark.parametrize("family", WITH_WINDOW)
def test_windows_shorter_than_the_text_change_nothing(mlx_models: MlxModels, family: str) -> None:
    requests = [ask(words(seed), sampler(0.7 * (seed % 2), seed)) for seed in range(4)]
    _compare(mlx_models(family, window=9), requests)


@pytest.mark.parametrize("family", ["qwen3_next", "mamba", "lfm2"])
def test_a_recurrent_target_says_the_same_with_chains(mlx_models: MlxModels, family: str) -> None:
    target, oracle = session(mlx_models(family)), Oracle(session(mlx_models(family)))
    accepted = 0
    for seed in range(4):
        request = ask(words(seed), sampler(0.7 * (seed % 2), seed))
        plain = answer(target, request)
        fast = answer(target, request, Chains(plain.tokens, 3 + 4 * seed, seed))
        assert_same_text(fast, plain, request, oracle)
        accepted += fast.accepted
    assert accepted > 0


@pytest.mark.parametrize(("temperature", "penalised"), SAMPLERS, ids=NAMES)
def test_on_a_llama_every_drafter_leaves_the_text_as_it_is_to_the_bit(
    mlx_models: MlxModels, temperature: float, penalised: bool
) -> None:
    """No near tie is excused: on the CPU rows round alike in passes of every width."""
    target = session(mlx_models())
    copies = [
        SmallModel(session(mlx_models(noise=n), replace(EXACT, rows=1, lazy=True)), 384)
        for n in (0.05, 0.2)
    ]
    runs: dict[str, list[Told]] = defaultdict(list)
    for seed in range(2):
        request = ask(words(seed), sampler(temperature, seed, penalised=penalised), 24)
        plain = answer(target, request)
        request = with_prediction(request, plain.tokens)
        drafters = {
            "n-gram": Fixed(NGram(), 4),
            "noisy copy": Fixed(copies[seed % 2], 5),
            "first of": Fixed(FirstOf(NGram(4), copies[0]), 8),
            "chain": Chains(plain.tokens, 16, seed),
            "tree": Trees(plain.tokens, 40, seed),
        }
        for name, drafter in drafters.items():
            fast = answer(target, request, drafter)
            assert (fast.tokens, fast.why) == (plain.tokens, plain.why), (name, seed)
            runs[name].append(fast)
    never_vacuous(runs)


@pytest.mark.parametrize("family", TO_THE_BIT)
def test_rows_round_alike_in_passes_of_every_width(mlx_models: MlxModels, family: str) -> None:
    target = session(mlx_models(family))
    tokens = np.array(words(1), dtype=np.int32)
    one = answer(target, ask(words(1), sampler(0.0, 0), 16))
    rows = {}
    for width in (1, 2, 3, 8, 16):
        list(target.prefill(tokens))
        taken: list[Row] = []
        while len(taken) < 16:
            line = one.tokens[len(taken) : len(taken) + width - 1]
            scores = target.verify(Draft.chain(line, "test"))
            taken += [scores.logits(node).copy() for node in range(ROOT, len(line))]
            target.commit(range(len(line)), one.tokens[min(len(taken), 16) - 1])
        rows[width] = np.stack(taken[:16])
    for width, those in rows.items():
        assert np.array_equal(those, rows[1]), width
