"""The noise is uniform, independent in every part of its key, and cheap argmax is exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from edgespec.decoding.accept import Coupled
from edgespec.decoding.draft import Row
from edgespec.decoding.noise import Noise, reply_key
from edgespec.decoding.sampling import Sampling

WIDE = 151_936
NOISE = Noise(seed=11, reply=22)
UNLIKELY = 1e-4
GOLDEN_GUMBEL = [1.6990672886255533, 0.44352448531253125, 0.4327706589686354]
GOLDEN_UNIFORM = 0.5395243296977458
GOLDEN_KEY = 8389587798276868516

Uniform = NDArray[np.float64]


def _u(noise: Noise, index: int, ids: int | range) -> Uniform:
    """The uniform number behind each Gumbel number."""
    span = range(ids) if isinstance(ids, int) else ids
    gumbel = noise.gumbel(index, np.array(span, dtype=np.int32))
    return np.asarray(np.exp(-np.exp(-gumbel)))


def _uniform_p(u: Uniform, bins: int = 64) -> float:
    counts = np.histogram(u, bins, (0.0, 1.0))[0]
    return float(stats.chisquare(counts).pvalue)


def _independent_p(a: Uniform, b: Uniform, bins: int = 16) -> float:
    """p-value of the pairs falling evenly into a grid: finds more than straight correlation."""
    counts = np.histogram2d(a, b, bins, [(0, 1), (0, 1)])[0]
    return float(stats.chisquare(counts.ravel()).pvalue)


ALONG = {
    "ids": lambda: _u(NOISE, 5, WIDE),
    "far ids": lambda: _u(NOISE, 5, range(2_000_000_000, 2_000_000_000 + 50_000)),
    "indices": lambda: np.array([_u(NOISE, i, range(7, 8))[0] for i in range(20_000)]),
    "seeds": lambda: np.array([_u(Noise(s, 22), 5, range(7, 8))[0] for s in range(20_000)]),
    "replies": lambda: np.array([_u(Noise(11, r), 5, range(7, 8))[0] for r in range(20_000)]),
    "branches": lambda: np.array([_u(Noise(11, 22, b), 5, range(7, 8))[0] for b in range(20_000)]),
    "a stream": lambda: np.array([NOISE.uniform("coin", i) for i in range(20_000)]),
    "rounds of a stream": lambda: np.array([NOISE.uniform("coin", i, 3) for i in range(20_000)]),
}


@pytest.mark.parametrize("along", ALONG)
def test_noise_is_uniform_and_neighbours_are_independent(along: str) -> None:
    u = ALONG[along]()
    assert _uniform_p(u) > UNLIKELY
    for lag in (1, 2, 16):
        assert _independent_p(u[:-lag], u[lag:]) > UNLIKELY
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 4.5 / np.sqrt(len(u))


OTHER = {
    "next index": (NOISE, 6),
    "far index": (NOISE, 5 + 2**20),
    "next seed": (Noise(12, 22), 5),
    "next reply": (Noise(11, 23), 5),
    "next branch": (Noise(11, 22, 1), 5),
    "seed and reply exchanged": (Noise(22, 11), 5),
}


@pytest.mark.parametrize("other", OTHER)
def test_another_key_gives_independent_noise(other: str) -> None:
    noise, index = OTHER[other]
    a, b = _u(NOISE, 5, WIDE), _u(noise, index, WIDE)
    assert _independent_p(a, b) > UNLIKELY
    assert abs(np.corrcoef(a, b)[0, 1]) < 4.5 / np.sqrt(WIDE)
    assert not np.isin(a, b).any()  # not the same numbers in another order


def test_streams_are_independent_of_each_other_and_of_the_choice() -> None:
    names = ("coin", "draft", "rest", "own")
    streams = [np.array([NOISE.uniform(s, 1, i) for i in range(20_000)]) for s in names]
    streams.append(np.array([_u(NOISE, i, range(7, 8))[0] for i in range(20_000)]))
    for i, a in enumerate(streams):
        for b in streams[i + 1 :]:
            assert _independent_p(a, b) > UNLIKELY


def test_the_largest_noise_has_the_gumbel_tail() -> None:
    """The maximum of n Gumbel numbers, less log n, is Gumbel again: 32 bits would cut this off."""
    most = [NOISE.gumbel(i, np.arange(WIDE, dtype=np.int32)).max() for i in range(200)]
    assert stats.kstest(np.array(most) - np.log(WIDE), "gumbel_r").pvalue > UNLIKELY


def test_the_same_key_gives_the_same_noise_for_any_set_of_ids() -> None:
    whole = NOISE.gumbel(5, np.arange(1000, dtype=np.int32))
    some = np.array([999, 0, 17], dtype=np.int32)
    assert np.array_equal(Noise(11, 22).gumbel(5, some), whole[some])


def test_noise_is_the_same_on_every_machine() -> None:
    """A seed that was written down must give the same text in the next release."""
    gumbel = Noise(1, 2, 3).gumbel(4, np.array([0, 1, 151_935], dtype=np.int32))
    assert gumbel.tolist() == pytest.approx(GOLDEN_GUMBEL, rel=1e-12)
    assert Noise(1, 2, 3).uniform("coin", 4, 5) == pytest.approx(GOLDEN_UNIFORM, rel=1e-12)
    assert reply_key(np.array([1, 2, 151_935], dtype=np.int32)) == GOLDEN_KEY


def test_reply_keys_tell_prompts_apart_by_ids_and_order_alone() -> None:
    prompts = ([1, 2, 3], [1, 2], [2, 1], [1, 2, 0], [0, 1, 2], [258], [2, 1, 0])
    keys = {reply_key(np.array(prompt, dtype=np.int32)) for prompt in prompts}
    assert len(keys) == len(prompts)
    wide, strided = np.array([1, 9, 2, 9], dtype=np.int64), np.array([1, 9, 2, 9], dtype=np.int32)
    assert reply_key(wide[::2]) == reply_key(strided[::2]) == reply_key(np.array([1, 2], np.int32))


def _row(kind: str, vocab: int, rng: np.random.Generator) -> Row:
    row = rng.standard_normal(vocab, dtype=np.float32)
    match kind:
        case "peaked":
            row[rng.integers(vocab, size=min(vocab, 5))] += np.float32(20.0)
        case "steep":
            row *= np.float32(50.0)
        case "flat":
            row[:] = 0.0
        case "holes":
            row[rng.random(vocab) < 0.9] = -np.inf
            row[rng.integers(vocab)] = 0.0
        case "one left":
            row[:] = -np.inf
            row[rng.integers(vocab)] = -3.0
        case "steps":
            row = np.round(row)
        case "rising":
            row = np.linspace(-30, 0, vocab, dtype=np.float32)
    return row


KINDS = ("random", "peaked", "steep", "flat", "holes", "one left", "steps", "rising")
SIZES = (1, 2, 3, 511, 512, 513, 1024, 16_384, 16_385, WIDE)


@settings(max_examples=300, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    vocab=st.sampled_from(SIZES) | st.integers(1, 2000),
    seed=st.integers(0, 2**63),
    index=st.integers(0, 2**31),
)
def test_argmax_is_the_argmax_of_scores_plus_all_the_noise(
    kind: str, vocab: int, seed: int, index: int
) -> None:
    row = _row(kind, vocab, np.random.default_rng(seed))
    noise = Noise(seed, 3)
    slow = row.astype(np.float64) + noise.gumbel(index, np.arange(vocab, dtype=np.int32))
    assert noise.argmax(index, row) == int(slow.argmax())


@pytest.mark.parametrize("kind", KINDS)
def test_argmax_is_exact_for_the_largest_vocabulary_at_many_indices(kind: str) -> None:
    row = _row(kind, WIDE, np.random.default_rng(1))
    ids = np.arange(WIDE, dtype=np.int32)
    chosen = [NOISE.argmax(index, row) for index in range(25)]
    assert chosen == [int((row + NOISE.gumbel(index, ids)).argmax()) for index in range(25)]
    assert kind in ("peaked", "steep", "one left") or len(set(chosen)) > 10


def test_many_survivors_and_few_are_chosen_from_alike() -> None:
    """The rule takes another way from some number of survivors on; the choice must not change."""
    row = _row("random", WIDE, np.random.default_rng(2))
    few = Sampling(1.0, top_k=4096, top_p=1.0, min_p=0.0, seed=0)
    for sampling in (few, replace(few, top_k=4097), replace(few, top_k=100_000)):
        for index in range(10):
            tempered = sampling.tempered(row)
            ids = sampling.support(tempered).ids
            slow = tempered[ids] + NOISE.gumbel(index, ids)
            assert Coupled(sampling, NOISE).guess(row, (), index).token == ids[slow.argmax()]
