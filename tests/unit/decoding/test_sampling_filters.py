"""The filters keep exactly what sorting the whole row would keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Filters

from edgespec.decoding.draft import Row
from edgespec.decoding.sampling import Sampling

SAMPLED = 8192  # from here on a sample of the scores says where to look

KINDS = ("bell", "model", "steps", "equal", "two values", "holes", "rising", "one", "sawtooth")


def _row(kind: str, vocab: int, rng: np.random.Generator) -> Row:
    row = 3 * rng.standard_normal(vocab, dtype=np.float32)
    match kind:
        case "model":
            head = rng.permutation(vocab)[:40]
            row[head] += np.sort(rng.exponential(4.0, len(head)).astype(np.float32))
        case "steps":
            row = np.round(row)
        case "equal":
            row[:] = 7.5
        case "two values":
            row = (rng.random(vocab) < 0.3).astype(np.float32)
        case "holes":
            row[rng.random(vocab) < 0.7] = -np.inf
            row[rng.integers(vocab)] = 1.0
        case "rising":
            row = np.linspace(-20, 5, vocab, dtype=np.float32)
        case "one":
            row[rng.integers(vocab)] = 80.0
        case "sawtooth":  # in step with any regular sample
            row = (np.arange(vocab) % 64 == 0).astype(np.float32)
    return row


def _sampling(filters: Filters, temperature: float) -> Sampling:
    return Sampling(temperature, filters.top_k, filters.top_p, filters.min_p)


def _agrees(row: Row, filters: Filters, temperature: float) -> None:
    """The edge of the nucleus may fall either way where it is closer than single precision."""
    sampling = _sampling(filters, temperature)
    z = sampling.tempered(row)
    cut = sampling.cutoff(z)
    survivors = z[z >= cut]
    near = 2e-6
    wider = Filters(filters.top_k, min(1.0, filters.top_p * (1 + near)), filters.min_p)
    tighter = Filters(filters.top_k, filters.top_p * (1 - near), filters.min_p)
    assert wider.lowest(z) <= survivors.min() <= tighter.lowest(z)
    support = sampling.support(z)
    assert np.array_equal(support.ids, np.flatnonzero(z >= cut))
    weight = np.exp(survivors.astype(np.float64))
    assert np.allclose(support.p, weight / weight.sum(), rtol=1e-9, atol=0)
    assert support.p.sum() == pytest.approx(1.0, abs=1e-9)
    assert z[support.ids].max() == 0.0  # the best is always among them


filters_to_try = st.builds(
    Filters,
    top_k=st.just(0) | st.integers(1, 50) | st.integers(1, 30_000),
    top_p=st.just(1.0) | st.floats(1e-6, 1.0) | st.sampled_from([0.5, 0.9, 0.95, 0.999999]),
    min_p=st.just(0.0) | st.floats(1e-9, 1.0) | st.sampled_from([0.05, 0.5, 1.0]),
)
temperatures = st.sampled_from([1e-3, 0.2, 0.8, 1.0, 1.7, 20.0, 100.0])


@settings(max_examples=400, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    vocab=st.sampled_from([1, 2, 3, SAMPLED, SAMPLED + 1, 20_000]) | st.integers(1, 300),
    seed=st.integers(0, 2**32),
    filters=filters_to_try,
    temperature=temperatures,
)
def test_survivors_are_those_of_sorting_the_whole_row(
    kind: str, vocab: int, seed: int, filters: Filters, temperature: float
) -> None:
    _agrees(_row(kind, vocab, np.random.default_rng(seed)), filters, temperature)


@settings(max_examples=300, deadline=None)
@given(
    scores=st.lists(st.integers(-4, 4) | st.floats(-30, 30, width=32), min_size=1, max_size=12),
    filters=filters_to_try,
    temperature=temperatures,
)
@example([0.0, 0.0, 0.0, 0.0], Filters(top_k=2), 1.0)
@example([0.0, 0.0, 0.0, 0.0], Filters(top_p=0.5), 1.0)
def test_short_rows_with_many_equal_scores_too(
    scores: list[float], filters: Filters, temperature: float
) -> None:
    _agrees(np.array(scores, dtype=np.float32), filters, temperature)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("vocab", [SAMPLED, SAMPLED + 1, 151_936])
def test_long_rows_are_cut_where_sorting_cuts_them(kind: str, vocab: int) -> None:
    row = _row(kind, vocab, np.random.default_rng(4))
    for filters in (
        Filters(top_k=1),
        Filters(top_k=40),
        Filters(top_k=5000),
        Filters(top_p=0.3),
        Filters(top_p=0.95),
        Filters(top_p=0.9999),
        Filters(40, 0.95, 0.05),
        Filters(5000, 0.9),
    ):
        _agrees(row, filters, 0.8)


def _kept(scores: list[float], **filters: float) -> list[int]:
    off: dict[str, float] = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    sampling = Sampling(1.0, **{**off, **filters})  # type: ignore[arg-type]
    row = np.log(np.array(scores, dtype=np.float32))
    return sampling.support(sampling.tempered(row)).ids.tolist()


def test_equals_of_the_last_survivor_stay() -> None:
    assert _kept([0.4, 0.2, 0.2, 0.2], top_k=2) == [0, 1, 2, 3]
    assert _kept([0.4, 0.2, 0.2, 0.2], top_p=0.5) == [0, 1, 2, 3]
    assert _kept([0.4, 0.3, 0.2, 0.1], top_k=2) == [0, 1]


def test_top_p_is_taken_of_what_top_k_left() -> None:
    # of 0.4 and 0.3 the first alone is 57 %; of the whole row it is 40 %
    assert _kept([0.4, 0.3, 0.2, 0.1], top_p=0.55) == [0, 1]
    assert _kept([0.4, 0.3, 0.2, 0.1], top_k=2, top_p=0.55) == [0]


def test_min_p_is_relative_to_the_best() -> None:
    assert _kept([0.4, 0.3, 0.19, 0.11], min_p=0.5) == [0, 1]
    assert _kept([0.4, 0.3, 0.19, 0.11], min_p=0.4) == [0, 1, 2]
    assert _kept([0.4, 0.3, 0.19, 0.11], min_p=1.0) == [0]


def test_everything_off_keeps_every_token() -> None:
    off = Sampling(1.0, top_k=0, top_p=1.0, min_p=0.0)
    assert not off.filters
    assert _kept([0.4, 0.3, 0.2, 0.1]) == [0, 1, 2, 3]
    assert Sampling(top_k=0, top_p=1.0, min_p=0.05).filters
