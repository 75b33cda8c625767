"""Where nothing is drafted the next pass begins before it is asked for, and nothing is lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from answer_trials import Chains, answer, ask, sampler, words
from tiny_mlx import EXACT, MlxModels, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Stop
from edgespec.testing import read
from edgespec_mlx.ahead import Patience
from edgespec_mlx.model import MlxModel
from edgespec_mlx.session import MlxSession

FAMILIES = ("llama", "gemma3_text", "qwen3_next")


class Counting(MlxSession):
    """Counts the passes that are queued, by width."""

    widths: list[int]

    def _run(self, tokens: Any, *rest: Any, **named: Any) -> Any:
        self.widths.append(tokens.size)
        return super()._run(tokens, *rest, **named)


def _counting(model: MlxModel) -> Counting:
    made: Any = session(model)
    made.__class__ = Counting
    made.widths = []
    counting: Counting = made
    return counting


def _greedy(target: MlxSession, count: int) -> list[int]:
    text = []
    for _ in range(count):
        text.append(target.verify(EMPTY).top(ROOT))
        target.commit((), text[-1])
    return text


@pytest.mark.parametrize("family", FAMILIES)
def test_passes_begun_early_change_no_token(mlx_models: MlxModels, family: str) -> None:
    model = mlx_models(family)
    target = _counting(model)
    read(target, words(3))
    early = _greedy(target, 40)
    assert target._ready is not None, "the next pass is under way"
    one_by_one = session(model)
    read(one_by_one, words(3))
    late = []
    for _ in range(40):  # who looks at rows gets no early pass
        late.append(int(one_by_one.verify(EMPTY).logits(ROOT).argmax()))
        one_by_one.commit((), late[-1])
        assert one_by_one._ready is None
    assert early == late


def test_a_plain_greedy_answer_queues_one_pass_a_token(mlx_models: MlxModels) -> None:
    target = _counting(mlx_models())
    told = answer(target, ask(words(3), sampler(0.0, 0), max_tokens=50))
    assert len(told.tokens) == 50
    assert set(target.widths) == {1}
    assert len(target.widths) <= 51, "at most one pass is wasted, the one behind the last token"


def test_a_sampled_answer_begins_no_pass_early(mlx_models: MlxModels) -> None:
    target = _counting(mlx_models())
    told = answer(target, ask(words(3), sampler(0.8, 0), max_tokens=50))
    assert len(target.widths) == len(told.tokens) == 50


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("then", ["another token", "a draft", "another prompt", "the same again"])
def test_a_pass_begun_in_vain_leaves_no_trace(
    mlx_models: MlxModels, family: str, then: str
) -> None:
    model = mlx_models(family)
    target = session(model)
    read(target, words(3))
    text = [*words(3), *_greedy(target, 20)]
    assert target._ready is not None
    if then == "another token":
        own = (target.verify(EMPTY).top(ROOT) + 1) % 384
        assert target._begun is not None
        target.commit((), own)
        text.append(own)
    elif then == "a draft":
        target.verify(Draft.chain([4, 5, 6], "test"))
        target.commit((0, 1), 7)
        text += [4, 5, 7]
    elif then == "another prompt":
        text = [*text[:30], 1, 2, 3]
        read(target, text)
    else:
        target.verify(EMPTY)
    fresh = session(model)
    read(fresh, text)
    again, right = (s.verify(EMPTY).logits(ROOT).copy() for s in (target, fresh))
    assert np.abs(again - right).max() < 1e-4


def test_a_pass_is_begun_early_only_where_the_context_has_room(mlx_models: MlxModels) -> None:
    target = session(mlx_models(), replace(EXACT, context=40))
    told = answer(target, ask(words(3), sampler(0.0, 0), max_tokens=99))
    assert (told.why, len(told.tokens)) == (Stop.CONTEXT, 40 - len(words(3)))
    assert max(target._caches.lengths()) <= 40


def test_when_a_drafter_offers_nothing_there_is_no_wide_pass(mlx_models: MlxModels) -> None:
    target = _counting(mlx_models())
    request = ask(words(3), sampler(0.0, 0), max_tokens=30)
    told = answer(target, request, Chains([], 0, 0))
    assert told.drafted == 0
    assert set(target.widths) == {1}


def test_patience_doubles_with_each_pass_in_vain_and_long_rows_win_it_back() -> None:
    patience = Patience()

    def needed() -> int:
        patience.broken()
        count = 0
        while not patience.enough:
            patience.one_more()
            count += 1
        return count

    assert needed() == 4
    waits: list[int] = []
    for _ in range(6):
        patience.in_vain()
        waits.append(needed())
    assert waits == [8, 16, 32, 64, 64, 64]
    for _ in range(256):
        patience.one_more()
    assert needed() < 64


def _timed_like_a_measurement(target: MlxSession, prompt: Sequence[int]) -> None:
    for _ in range(12):
        read(target, prompt)
        target.verify(EMPTY).top(ROOT)
        target.commit((), prompt[0])


def test_measuring_passes_never_meets_one_begun_early(mlx_models: MlxModels) -> None:
    target = _counting(mlx_models())
    _timed_like_a_measurement(target, words(3))
    assert len(target.widths) == 12


@pytest.mark.parametrize("family", FAMILIES)
def test_the_librarys_own_loop_says_the_same(mlx_models: MlxModels, family: str) -> None:
    model = mlx_models(family)
    told = answer(session(model), ask(words(3), sampler(0.0, 0), max_tokens=40))
    loop = model.plain_loop(EXACT)
    prompt = np.array(words(3), dtype=np.int32)
    assert list(loop.answer(prompt, 40, ())) == told.tokens
    longer = np.array([*words(3), *told.tokens, 5], dtype=np.int32)
    second = list(loop.answer(longer, 10, ()))
    loop.forget()
    assert list(loop.answer(longer, 10, ())) == second, "what was reused changed nothing"
    assert list(loop.answer(prompt, 40, ())) == told.tokens, "and so for a shorter prompt"
    end = told.tokens[3]
    assert list(loop.answer(prompt, 40, {end}))[-1] == end
