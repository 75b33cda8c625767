"""A loaded MLX model: what it offers, refuses and survives."""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from answer_trials import Chains, Oracle, Trees, answer, ask, assert_same_text, sampler, words
from tiny_mlx import CONTEXT, EXACT, MlxModels, Tiny, loaded, module_of, session

from edgespec.backends import LoadedModel, OffersPlainLoop, SessionOptions
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Stop
from edgespec.errors import BackendFailed, BadInput, CacheFull, OutOfMemory
from edgespec.testing import ContractCheck, check_session, read
from edgespec_mlx.model import MlxModel
from edgespec_mlx.session import MlxSession


def _row(target: MlxSession) -> Any:
    return target.verify(EMPTY).logits(ROOT).copy()


def test_it_is_a_loaded_model_with_a_loop_to_compare_with(mlx_models: MlxModels) -> None:
    model: LoadedModel = mlx_models()
    assert isinstance(model, OffersPlainLoop)
    assert (model.device, model.identity, model.tokenizer.vocab) == ("CPU", "tiny", 384)


def test_a_session_has_what_was_asked_for(mlx_models: MlxModels) -> None:
    caps = session(mlx_models()).caps
    assert (caps.vocab, caps.context, caps.rows, caps.tree) == (384, CONTEXT, 65, True)
    narrow = mlx_models().session(replace(EXACT, rows=1, lazy=True))
    assert (narrow.caps.rows, narrow.caps.tree) == (1, False)
    read(narrow, [1, 2, 3])
    with pytest.raises(AssertionError, match="more rows than the session has"):
        narrow.verify(Draft.chain([1], "test"))


def test_tokens_that_ride_with_the_next_pass_change_nothing(mlx_models: MlxModels) -> None:
    lazy, eager = mlx_models().session(replace(EXACT, lazy=True)), session(mlx_models())
    for tokens in ([1, 2, 3, 4, 5], words(1), [*words(1), 9, 9]):
        for target in (lazy, eager):
            read(target, tokens)
        assert np.abs(_row(lazy) - _row(eager)).max() < 1e-5
        for target in (lazy, eager):
            target.verify(Draft((1, 2, 3), (-1, -1, 1), ("t",) * 3, (None,) * 3))
            target.commit((1, 2), 4)
        assert np.abs(_row(lazy) - _row(eager)).max() < 1e-5


@pytest.mark.parametrize("rows", ["q5_0", "F16", ""])
def test_a_cache_type_that_is_none_is_refused(mlx_models: MlxModels, rows: str) -> None:
    with pytest.raises(BadInput, match=r"--kv-type is '.*'; it must be one of auto, f32, f16"):
        mlx_models().session(replace(EXACT, kv_type=rows))
    with pytest.raises(BadInput, match="--flash-attention is 'yes'"):
        mlx_models().session(replace(EXACT, flash_attention="yes"))


def test_a_cache_beyond_the_memory_is_told_before_anything_is_read(mlx_models: MlxModels) -> None:
    with pytest.raises(OutOfMemory, match=r"No cache of \d+ tokens for tiny: .*shorter --context"):
        mlx_models().session(SessionOptions(context=2**40))


@pytest.mark.parametrize(
    ("words_of_mlx", "kind", "told"),
    [
        ("[malloc] Unable to allocate 9 bytes.", OutOfMemory, "No memory is left for this pass"),
        ("[METAL] Insufficient Memory (00000008)", OutOfMemory, "Try a shorter --context"),
        ("[matmul] wrong shapes", BackendFailed, r"MLX could not run the model: \[matmul\]"),
    ],
)
def test_a_pass_that_fails_is_one_line_and_the_session_can_start_anew(
    mlx_models: MlxModels,
    monkeypatch: pytest.MonkeyPatch,
    words_of_mlx: str,
    kind: type[Exception],
    told: str,
) -> None:
    target = session(mlx_models())
    read(target, words(1))
    before = _row(target)

    def fails(*_: object) -> None:
        raise RuntimeError(words_of_mlx)

    with monkeypatch.context() as patch:
        patch.setattr("edgespec_mlx.scores.mx.eval", fails)
        with pytest.raises(kind, match=told):
            target.verify(EMPTY)
    assert read(target, words(1)) == 0
    assert np.array_equal(_row(target), before)


def test_scores_that_are_no_numbers_are_said_to_be_damage() -> None:
    module = module_of(Tiny())
    module.lm_head.weight = module.lm_head.weight * float("nan")
    target = session(loaded(module))
    read(target, [1, 2])
    with pytest.raises(BackendFailed, match=r"no numbers.*does not suit this chip"):
        target.verify(EMPTY)


def test_a_full_cache_is_said_before_the_pass(mlx_models: MlxModels) -> None:
    target, fresh = session(mlx_models()), session(mlx_models())
    tokens = np.random.default_rng(0).integers(0, 384, CONTEXT - 6).tolist()
    read(target, tokens)
    target.verify(Draft.chain(tokens[:6], "t"))
    with pytest.raises(CacheFull, match="does not fit"):
        target.verify(Draft.chain(tokens[:7], "t"))
    read(fresh, tokens)
    assert np.array_equal(_row(target), _row(fresh))


@pytest.mark.parametrize("length", [0, 5, 64])
def test_an_answer_ends_with_context_exactly_where_the_cache_does(
    mlx_models: MlxModels, length: int
) -> None:
    target = session(mlx_models(), replace(EXACT, context=80))
    request = ask(words(2), sampler(0.8, 0), max_tokens=1000)
    plain = answer(target, request)
    told = answer(target, request, Chains(plain.tokens, length, 0))
    assert (plain.why, len(plain.tokens)) == (Stop.CONTEXT, 56)
    assert (told.why, told.tokens) == (Stop.CONTEXT, plain.tokens)
    assert told.accepted > 0 or not length


def test_listening_may_stop_at_any_event_and_the_session_stays_whole(
    mlx_models: MlxModels,
) -> None:
    from edgespec.decoding.loop import speculate

    one, request = session(mlx_models()), ask(words(1), sampler(0.8, 1), max_tokens=30)
    plain = answer(one, request).tokens
    for stop in range(1, 9):
        events = speculate(one, request, Trees(plain, 12, stop))
        for _ in range(stop):
            next(events)
        events.close()
        assert answer(one, request, Trees(plain, 12, stop)).tokens == plain


def test_two_sessions_of_one_model_do_not_touch_each_other(mlx_models: MlxModels) -> None:
    from edgespec.decoding.loop import speculate

    a, b = session(mlx_models()), session(mlx_models())
    requests = [ask(words(n), sampler(0.8, n), max_tokens=30) for n in (1, 2)]
    alone = [answer(session(mlx_models()), request).tokens for request in requests]
    runs = [
        speculate(target, request, Trees(truth, 10, 0))
        for target, request, truth in zip((a, b), requests, alone, strict=True)
    ]
    said: list[list[int]] = [[], []]
    going = True
    while going:  # a round of one, a round of the other
        going = False
        for n, run in enumerate(runs):
            event = next(run, None)
            going = going or event is not None
            said[n] += [t.token for t in getattr(event, "tokens", ())]
    assert said == alone


def test_a_session_goes_on_in_another_thread(mlx_models: MlxModels) -> None:
    """A pass may have been begun in the first one."""
    target, told = session(mlx_models()), list[list[int]]()

    def some() -> None:
        said = []
        for _ in range(12):
            said.append(target.verify(EMPTY).top(ROOT))
            target.commit((), said[-1])
        told.append(said)

    read(target, words(1))
    some()
    other = threading.Thread(target=some)
    other.start()
    other.join()
    plain = answer(session(mlx_models()), ask(words(1), sampler(0.0, 0), max_tokens=24))
    assert [*told[0], *told[1]] == plain.tokens


def test_reset_forgets_everything(mlx_models: MlxModels) -> None:
    target = session(mlx_models())
    read(target, words(1))
    before = _row(target)
    target.reset()
    assert read(target, words(1)) == 0
    assert np.array_equal(_row(target), before)


def test_commit_without_verify_is_a_mistake_of_ours(mlx_models: MlxModels) -> None:
    target = session(mlx_models())
    read(target, [1, 2])
    with pytest.raises(AssertionError, match="without a verify"):
        target.commit((), 1)


def test_equal_scores_go_to_the_lowest_token() -> None:
    module = module_of(Tiny())
    rows = np.array(module.lm_head.weight)
    rows[[3, 200, 201]] = 5 * np.abs(rows).max()
    module.lm_head.weight = mx.array(np.concatenate([rows[:4], rows[4:]]))
    target = session(loaded(module))
    for prompt in ([1, 2], [5, 6], [7, 9, 11]):
        read(target, prompt)
        scores = target.verify(EMPTY)
        row = scores.logits(ROOT)
        assert row[3] == row[200] == row[201]
        assert scores.top(ROOT) == int(row.argmax())


def test_a_vocabulary_padded_in_the_weights_is_cut_to_its_tokens(mlx_models: MlxModels) -> None:
    from tiny_mlx import NoTokenizer

    from edgespec_mlx.model import ModelFacts

    module = module_of(Tiny())
    model = MlxModel(module, NoTokenizer(), ModelFacts("tiny", "tiny", "CPU", 512, 300, 128))
    target = session(model)
    read(target, [1, 2, 3])
    row = target.verify(EMPTY).logits(ROOT)
    assert row.shape == (300,)
    read(other := session(mlx_models()), [1, 2, 3])
    assert np.array_equal(row, _row(other)[:300])


def test_a_family_that_looks_into_its_caches_runs_plain() -> None:
    """Its own caches stay as the library made them, and nothing is drafted."""
    module = module_of(Tiny("llama"))
    kind = type(module.layers[0].self_attn)

    class Peeks(kind):  # type: ignore[misc, valid-type]
        def __call__(self, x: Any, mask: Any = None, cache: Any = None) -> Any:
            out = super().__call__(x, mask, cache)
            assert cache.keys is not None
            return out

    for layer in module.layers:
        layer.self_attn.__class__ = Peeks
    model = loaded(module)
    caps = session(model).caps
    assert (caps.tree, caps.rollback) == (False, 0)
    check_session(lambda: session(model), ContractCheck(tolerance=1e-4, rounds=10))


def test_a_family_without_rotary_embeddings_it_can_turn_gets_chains() -> None:
    """Such as positions that are computed inside attention."""
    module = module_of(Tiny("llama"))
    kind = type(module.layers[0].self_attn)

    class AddsPositions(kind):  # type: ignore[misc, valid-type]
        def __call__(self, x: Any, mask: Any = None, cache: Any = None) -> Any:
            at = cache.offset + mx.arange(x.shape[1])  # row numbers, as if there were no trees
            return super().__call__(x + 0.1 * at[None, :, None] % 3, mask, cache)

    for layer in module.layers:
        layer.self_attn.__class__ = AddsPositions
    model = loaded(module)
    assert (session(model).caps.tree, session(model).caps.rollback) == (False, None)
    check_session(lambda: session(model), ContractCheck(tolerance=1e-4))


def test_a_rotation_that_depends_on_the_width_of_a_pass_runs_plain() -> None:
    scaling = {"rope_type": "dynamic", "factor": 2.0}
    changes = (("rope_scaling", scaling), ("max_position_embeddings", 16))
    module = module_of(Tiny("llama", changes=changes))
    assert session(loaded(module)).caps.rollback == 0


def test_an_answer_that_outgrows_its_window_is_the_plain_answer(mlx_models: MlxModels) -> None:
    target, oracle = (session(mlx_models("gpt_oss", window=8)) for _ in range(2))
    request = ask(words(5), sampler(0.0, 0), max_tokens=60)
    plain = answer(target, request)
    fast = answer(target, request, Chains(plain.tokens, 6, 0))
    assert_same_text(fast, plain, request, Oracle(oracle))
    assert fast.accepted > 0


def test_weights_and_caches_are_gone_with_their_model_though_its_sessions_live() -> None:
    module = module_of(Tiny())
    weights = weakref.ref(module)
    model = loaded(module)
    del module
    target, loop = session(model), model.plain_loop(EXACT)
    model.watch(target, (1,))
    read(target, words(1))
    target.verify(EMPTY)
    assert len(list(loop.answer(np.array(words(1), dtype=np.int32), 3, ()))) == 3
    assert weights() is not None
    assert target._caches.arrays()
    model.close()
    assert weights() is None
    assert not target._caches.arrays()
    assert not loop._caches


def test_a_session_that_nobody_uses_is_not_kept_by_its_model(mlx_models: MlxModels) -> None:
    target = session(mlx_models())
    read(target, words(1))
    kept = weakref.ref(target)
    del target
    assert kept() is None
