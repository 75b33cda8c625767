"""Caches on MLX: what is kept, packed, dropped and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import mlx.core as mx
import numpy as np
import pytest
from tiny_mlx import ASKED_FOR, EXACT, MlxModels, Tiny, loaded, module_of, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.errors import BadInput
from edgespec.testing import ContractCheck, check_session, read
from edgespec_mlx.cache import Caches, KvCache, WindowCache
from edgespec_mlx.rows import MakeRows, PackedRows, PlainRows, RowsReadPacked
from edgespec_mlx.session import MlxSession
from edgespec_mlx.trees import TreeLayout

PACKED = ("q8_0", "q4_0")


def _keys(*tokens: int) -> mx.array:
    """Rows that tell which token they belong to: [1, 2, n, 32]."""
    row = mx.array(tokens, dtype=mx.float32)[None, None, :, None]
    return mx.broadcast_to(row, (1, 2, len(tokens), 32))


def _held(cache: KvCache) -> list[int]:
    keys, values = cache.keys_and_values()
    assert mx.array_equal(keys, values)
    return [round(x) for x in keys[0, 1, :, 5].tolist()]


def _add(cache: KvCache, *tokens: int) -> None:
    cache.update_and_fetch(_keys(*tokens), _keys(*tokens))


KINDS: list[MakeRows] = [
    PlainRows,
    lambda: PlainRows(mx.float16),
    lambda: PackedRows(8),
]


@pytest.mark.parametrize("make", KINDS, ids=["as computed", "f16", "packed"])
def test_the_rows_of_a_chosen_branch_are_kept_in_its_order(make: MakeRows) -> None:
    cache = KvCache(make)
    _add(cache, 1, 2, 3)
    cache.lay_out(TreeLayout(3, [-1, 0, 0, 1, 2]))
    _add(cache, 10, 11, 12, 13, 14)
    cache.lay_out(None)
    assert cache.gather(4, [1, 3])
    _add(cache, 4)
    assert _held(cache) == [1, 2, 3, 10, 12, 14, 4]


@pytest.mark.parametrize("make", KINDS, ids=["as computed", "f16", "packed"])
def test_a_cache_grows_past_its_first_rows_and_loses_none(make: MakeRows) -> None:
    cache = KvCache(make)
    for start in range(0, 600, 40):
        _add(cache, *(t % 100 for t in range(start, start + 40)))
    assert _held(cache) == [t % 100 for t in range(600)]
    cache.cut(10)
    _add(cache, 7)
    assert _held(cache) == [*range(10), 7]


def test_a_window_gives_what_it_sees_and_drops_what_is_far_behind() -> None:
    cache = WindowCache(PlainRows, window=4, spare=300)
    for token in range(1000):
        _add(cache, token)
    assert _held(cache) == [996, 997, 998, 999]
    assert cache._keys.arrays()[0].shape[2] < 900
    assert not cache.cut(100), "that far it cannot go back"
    assert cache.cut(950)
    _add(cache, 7)
    assert _held(cache) == [947, 948, 949, 7]
    assert cache.cut(0)
    _add(cache, 8)
    assert _held(cache) == [8]


def test_a_session_reads_again_what_a_window_has_dropped(
    mlx_models: MlxModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WindowCache.__init__, "__defaults__", (40,))
    model = mlx_models("gemma3_text", window=8)
    wide = replace(EXACT, context=1024)
    used, tokens = session(model, wide), np.random.default_rng(3).integers(0, 384, 600).tolist()
    read(used, tokens)
    assert read(used, [*tokens[:590], 1, 2]) == 590
    assert read(used, [*tokens[:50], 1, 2]) == 0
    fresh = session(model, wide)
    read(fresh, [*tokens[:50], 1, 2])
    assert np.abs(_row(used) - _row(fresh)).max() < 1e-4


def _row(target: MlxSession) -> Row:
    return target.verify(EMPTY).logits(ROOT).copy()


@pytest.mark.parametrize(
    ("family", "kv_type"),
    [
        *((family, "q8_0") for family in [*ASKED_FOR, "gemma3n", "gemma4_text", "qwen3_next"]),
        *((family, "q4_0") for family in ("llama", "gemma2", "gpt_oss")),
    ],
)
def test_a_packed_cache_keeps_the_contract(
    mlx_models: MlxModels, family: str, kv_type: str
) -> None:
    """gemma2 and gpt_oss have attention of their own, which wants its rows unpacked."""
    options = replace(EXACT, kv_type=kv_type)
    model = mlx_models(family)
    assert session(model, options).caps.tree == (family != "qwen3_next")
    check_session(lambda: session(model, options), ContractCheck(tolerance=1e-4, rounds=10))


def _rows_of(target: MlxSession) -> MakeRows | type:
    leaf = target._caches._leaves[-1]
    assert isinstance(leaf, KvCache)
    return type(leaf._keys)


@pytest.mark.parametrize(("family", "kind"), [("llama", RowsReadPacked), ("gemma2", PackedRows)])
def test_packed_rows_are_read_as_they_are_where_attention_can(
    mlx_models: MlxModels, family: str, kind: type
) -> None:
    assert _rows_of(session(mlx_models(family), replace(EXACT, kv_type="q8_0"))) is kind


@pytest.mark.parametrize("kv_type", ["f32", "f16", "bf16", *PACKED])
def test_a_smaller_cache_type_costs_memory_by_its_size(mlx_models: MlxModels, kv_type: str) -> None:
    tokens = list(range(100))
    sizes = {}
    for name in ("f32", kv_type):
        target = session(mlx_models(), replace(EXACT, kv_type=name))
        read(target, tokens)
        sizes[name] = sum(array.nbytes for array in target._caches.arrays())
        assert target._caches.bytes_for(256) == sizes[name]
    # 32 packed elements have a scale and an offset, here in f32
    bits = {"f32": 32, "f16": 16, "bf16": 16, "q8_0": 8 + 2, "q4_0": 4 + 2}
    assert sizes[kv_type] * 32 == sizes["f32"] * bits[kv_type]


@pytest.mark.parametrize(("kv_type", "most"), [("f16", 0.02), ("bf16", 0.2), ("q8_0", 0.2)])
def test_scores_with_a_smaller_cache_type_stay_close(
    mlx_models: MlxModels, kv_type: str, most: float
) -> None:
    rows = []
    for name in ("auto", kv_type):
        target = session(mlx_models(), replace(EXACT, kv_type=name))
        read(target, list(range(60)))
        rows.append(_row(target))
    difference = np.abs(rows[0] - rows[1]).max() / rows[0].std()
    assert 0 < difference < most


def test_heads_that_cannot_be_packed_are_refused_in_one_line() -> None:
    module = module_of(Tiny("qwen3", changes=(("head_dim", 24),)))
    with pytest.raises(BadInput, match=r"cannot keep its cache as q8_0.*multiple of 32"):
        session(loaded(module), replace(EXACT, kv_type="q8_0"))


def test_layers_that_share_a_cache_get_what_its_owner_was_given(mlx_models: MlxModels) -> None:
    """gemma3n and gemma4 have fewer caches than layers."""
    for family in ("gemma3n", "gemma4_text"):
        target = session(mlx_models(family))
        module = target._runner.module
        assert len(target._caches.given) < len(module.layers)
        assert len(target._caches._leaves) == len(target._caches.given)


class _Lists:
    """A model whose only purpose is to ask for caches in lists."""

    def __init__(self, *kept: object) -> None:
        self._kept = kept

    def make_cache(self) -> list[object]:
        from mlx_lm.models.cache import CacheList

        return [CacheList(*self._kept)]


def test_caches_in_lists_are_replaced_inside_their_list() -> None:
    from mlx_lm.models.cache import ArraysCache, KVCache, RotatingKVCache

    caches = Caches.own(_Lists(KVCache(), RotatingKVCache(16), ArraysCache(2)), PlainRows)
    first, second, third = (caches.given[0][n] for n in range(3))
    assert (type(first), type(second)) == (KvCache, WindowCache)
    assert isinstance(third, ArraysCache)
    assert (caches.cut_anywhere, caches.go_back) == (False, True)
    assert Caches.own(_Lists(KVCache(), KVCache()), PlainRows).cut_anywhere


def test_a_window_that_keeps_its_first_tokens_is_left_to_the_library() -> None:
    from mlx_lm.models.cache import RotatingKVCache

    caches = Caches.own(_Lists(RotatingKVCache(16, keep=4)), PlainRows)
    assert (caches.cut_anywhere, caches.go_back) == (False, False)


def _same_as_library(family: str, window: int | None, tokens: Sequence[int]) -> float:
    from mlx_lm.models.cache import make_prompt_cache

    module = module_of(Tiny(family, window=window))
    stock = make_prompt_cache(module)
    for token in tokens[:-1]:
        module(mx.array([[token]]), cache=stock)
    theirs = np.asarray(module(mx.array([[tokens[-1]]]), cache=stock)[0, -1])
    target = session(loaded(module))
    read(target, tokens)
    return float(np.abs(theirs - _row(target)).max())


@pytest.mark.parametrize(
    ("family", "window"),
    [("llama", None), ("llama", 8), ("gemma3_text", 8), ("gpt_oss", 8), ("gemma4_text", 8)],
)
def test_scores_are_those_of_the_librarys_own_caches(family: str, window: int | None) -> None:
    tokens = np.random.default_rng(1).integers(0, 384, 50).tolist()
    assert _same_as_library(family, window, tokens) < 1e-4


def test_a_draft_model_may_have_a_turned_window_and_still_guesses(mlx_models: MlxModels) -> None:
    """A ring that cannot turn back would leave rejected guesses in the drafter's cache."""
    drafter = session(mlx_models("gemma3_text", window=8), replace(EXACT, rows=1, lazy=True))
    text = np.random.default_rng(2).integers(0, 384, 100).tolist()
    for end in range(60, 90):
        read(drafter, text[:end])
        for guess in (1, 2, 3, 4):
            drafter.verify(EMPTY)
            drafter.commit((), guess)
    fresh = session(mlx_models("gemma3_text", window=8))
    read(drafter, text)
    read(fresh, text)
    assert np.abs(_row(drafter) - _row(fresh)).max() < 1e-4


@pytest.mark.parametrize("family", ["llama", "qwen3_next"])
def test_a_pass_interrupted_half_way_leaves_nothing_that_is_half_done(
    mlx_models: MlxModels, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    """Ctrl+C may come when some layers have added their rows and others have not."""
    model = mlx_models(family)
    target, tokens = session(model), list(range(30))
    read(target, tokens)
    before = _row(target)
    last = model._runner.module.layers[-1]
    forward: Callable[..., object] = type(last).__call__

    def stops(*_: object, **__: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(last), "__call__", stops)
    with pytest.raises(KeyboardInterrupt):
        target.verify(Draft.chain([5, 6], "test"))
    monkeypatch.setattr(type(last), "__call__", forward)
    assert read(target, tokens) == 0, "it is read anew"
    assert np.array_equal(_row(target), before)


@pytest.mark.parametrize("family", ["qwen3_next", "mamba"])
def test_a_recurrent_drafter_goes_back_to_the_end_of_its_latest_prompt(
    mlx_models: MlxModels, family: str
) -> None:
    """Its own guesses are behind it; reading the whole text for each draft would be dear."""
    drafter = session(mlx_models(family), replace(EXACT, rows=1, lazy=True))
    text = list(range(100, 130))
    read(drafter, text)
    for accepted in range(1, 6):
        for guess in (1, 2, 3, 4):
            drafter.verify(EMPTY)
            drafter.commit((), guess)
        held = len(text) - 1 - len(drafter._owed)
        text += [*range(1, 1 + accepted % 4), 200 + accepted]
        assert read(drafter, text) >= held - 8
    fresh = session(mlx_models(family))
    read(fresh, text)
    assert np.abs(_row(drafter) - _row(fresh)).max() < 1e-4
