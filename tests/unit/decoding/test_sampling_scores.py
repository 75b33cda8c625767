"""Penalties, temperature, and settings or scores that cannot work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import penalised
from trials import Copy, answer, ask, unfiltered

from edgespec.decoding.accept import Coupled, Place, Rejection
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.decoding.noise import Noise
from edgespec.decoding.sampling import Sampling, best_tokens
from edgespec.errors import BackendFailed, BadInput
from edgespec.testing import TableScores, TableSession

VOCAB = 12
samplings = st.builds(
    Sampling,
    repeat_penalty=st.sampled_from([1.0, 0.5, 1.3, 3.0]),
    presence_penalty=st.floats(-3, 3),
    frequency_penalty=st.floats(-3, 3),
    penalty_window=st.integers(0, 20),
    logit_bias=st.dictionaries(st.integers(0, VOCAB - 1), st.floats(-50, 50), max_size=3),
)


@settings(max_examples=300, deadline=None)
@given(
    sampling=samplings,
    scores=st.lists(st.floats(-20, 20, width=32), min_size=VOCAB, max_size=VOCAB),
    recent=st.lists(st.integers(0, VOCAB - 1), max_size=30),
)
def test_penalties_are_those_of_the_token_by_token_reference(
    sampling: Sampling, scores: list[float], recent: Sequence[int]
) -> None:
    row = np.array(scores, dtype=np.float32)
    before = row.copy()
    shaped = sampling.shaped(row, recent)
    assert shaped == pytest.approx(penalised(row, recent, sampling), rel=1e-5, abs=1e-4)
    assert np.array_equal(row, before)  # the row belongs to the backend
    assert shaped is row or not sampling.raw


def test_a_repeat_penalty_lowers_both_high_and_low_scores() -> None:
    row = np.array([2.0, -2.0, 1.0], dtype=np.float32)
    shaped = Sampling(repeat_penalty=2.0).shaped(row, [0, 1, 0])
    assert shaped.tolist() == [1.0, -4.0, 1.0]


def test_frequency_counts_and_presence_does_not() -> None:
    row = np.zeros(3, dtype=np.float32)
    assert Sampling(presence_penalty=1.0).shaped(row, [0, 0, 1]).tolist() == [-1.0, -1.0, 0.0]
    assert Sampling(frequency_penalty=1.0).shaped(row, [0, 0, 1]).tolist() == [-2.0, -1.0, 0.0]


def test_penalties_forget_what_left_the_window() -> None:
    row = np.zeros(3, dtype=np.float32)
    sampling = Sampling(presence_penalty=1.0, penalty_window=2)
    assert sampling.shaped(row, [0, 1, 1]).tolist() == [0.0, -1.0, 0.0]


def test_penalties_need_only_the_tokens_that_the_window_names() -> None:
    assert Sampling().window == 0
    assert Sampling(repeat_penalty=1.1, penalty_window=9).window == 9
    assert Sampling(repeat_penalty=1.1, penalty_window=0).window == 0


def test_a_bias_counts_without_a_penalty_window() -> None:
    row = np.zeros(3, dtype=np.float32)
    sampling = Sampling(penalty_window=0, logit_bias={1: 5.0, 99: 5.0})
    assert sampling.shaped(row, [0, 0]).tolist() == [0.0, 5.0, 0.0]


def test_temperature_divides_the_distance_to_the_best() -> None:
    row = np.array([1.0, 3.0, -np.inf], dtype=np.float32)
    assert Sampling(0.5).tempered(row).tolist() == [-4.0, 0.0, -np.inf]
    assert row.tolist() == [1.0, 3.0, -np.inf]


@pytest.mark.parametrize("temperature", [1e-45, 1e-38, 1e-30, 1e-6])
@pytest.mark.parametrize("rule", [Coupled, Rejection])
def test_a_temperature_next_to_zero_chooses_the_best(
    temperature: float, rule: type[Coupled | Rejection]
) -> None:
    row = np.array([1.0, 30.0, -500.0, 29.0], dtype=np.float32)
    for sampling in (Sampling(temperature), unfiltered(temperature)):
        assert rule(sampling, Noise(1, 2)).guess(row, (), 0).token == 1


def test_the_hottest_temperature_still_prefers_the_best() -> None:
    row = np.array([0.0, 100.0], dtype=np.float32)
    sampling = unfiltered(100.0)
    p = sampling.support(sampling.tempered(row)).p
    assert p == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)], rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("rule", [Coupled, Rejection])
def test_scores_that_are_no_numbers_are_a_backend_failure(
    bad: float, temperature: float, rule: type[Coupled | Rejection]
) -> None:
    scores = TableScores({ROOT: np.array([0.0, bad, 1.0], dtype=np.float32)})
    sampling = Sampling(temperature, repeat_penalty=1.1)  # penalties, so that the row is looked at
    with pytest.raises(BackendFailed, match="damaged"):
        rule(sampling, Noise(1, 2)).decide(Place(EMPTY, scores, ROOT, (2,), 0))


@pytest.mark.parametrize("rule", [Coupled, Rejection])
def test_confidence_is_the_share_of_the_unfiltered_distribution(
    rule: type[Coupled | Rejection],
) -> None:
    row = np.log(np.array([0.1, 0.7, 0.2], dtype=np.float32)) + 5
    guessed = rule(Sampling(0.0), Noise(1, 2)).guess(row, (), 0)
    assert (guessed.token, guessed.confidence) == (1, pytest.approx(0.7))


def test_confidence_is_zero_where_only_a_bias_made_the_choice() -> None:
    row = np.array([0.0, 500.0], dtype=np.float32)
    guessed = Coupled(Sampling(0.0, logit_bias={0: 1000.0}), Noise(1, 2)).guess(row, (), 0)
    assert (guessed.token, guessed.confidence) == (0, pytest.approx(0.0))


def test_a_row_of_nothing_but_minus_infinity_is_a_backend_failure() -> None:
    with pytest.raises(BackendFailed, match="best score"):
        Sampling().tempered(np.full(4, -np.inf, dtype=np.float32))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", float("inf")),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("min_p", -0.01),
        ("min_p", 1.5),
        ("repeat_penalty", 0.0),
        ("repeat_penalty", float("nan")),
        ("presence_penalty", 101.0),
        ("frequency_penalty", float("-inf")),
        ("penalty_window", -1),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(BadInput, match=rf"^{name} is {value:g}; it must be"):
        Sampling(**{name: value})


def test_a_bias_that_cannot_work_names_its_token() -> None:
    with pytest.raises(BadInput, match="logit_bias of token 7 is nan"):
        Sampling(logit_bias={7: float("nan")})


def test_the_edges_of_every_range_are_allowed() -> None:
    Sampling(0.0, top_k=0, top_p=1.0, min_p=0.0, penalty_window=0)
    Sampling(100.0, top_k=2**31, top_p=1e-9, min_p=1.0, repeat_penalty=100.0)


def test_a_rejected_guess_never_counts_for_a_penalty() -> None:
    """With a huge presence penalty no token comes twice, however often it was guessed."""
    sampling = Sampling(1.0, top_k=0, top_p=1.0, min_p=0.0, presence_penalty=100.0, seed=3)
    request = ask(sampling, max_tokens=8, prompt=(1, 2))
    told = answer(TableSession(10, 1), request, Copy(TableSession(10, 1, noise=3.0), 4))
    assert sorted([*told.tokens, 1, 2]) == list(range(10))
    assert 0 < told.accepted < told.drafted


@pytest.mark.parametrize("bias", [{"5": -100.0}, {2.5: 1.0}, [5], [(5, 1.0)], "5"], ids=repr)
def test_a_bias_that_names_no_tokens_is_refused_before_the_answer(bias: Any) -> None:
    with pytest.raises(BadInput, match="logit_bias"):
        Sampling(logit_bias=bias)


@pytest.mark.parametrize("k", [1, 3, 8, 50])
def test_the_best_tokens_are_those_of_a_stable_sort(k: int) -> None:
    row = np.array([1, 5, 5, 2, 0, 5, -3, 2], dtype=np.float32)
    assert best_tokens(row, k).tolist() == [1, 2, 5, 3, 7, 0, 4, 6][:k]
