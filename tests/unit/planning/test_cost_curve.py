"""T(n): kept where it was measured, a line in between, refined by every round."""

from __future__ import annotations

import numpy as np
import pytest

from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.planning.cost import CostCurve
from edgespec.planning.planner import Auto

MEASURED = {1: 1.0, 2: 1.75, 4: 1.81, 8: 3.22}


def test_measured_widths_keep_their_own_value() -> None:
    cost = CostCurve(MEASURED)
    assert {n: cost.seconds(n) for n in MEASURED} == pytest.approx(MEASURED)
    assert cost.measured() == pytest.approx(MEASURED)


def test_widths_between_lie_on_a_line() -> None:
    cost = CostCurve(MEASURED)
    assert cost.seconds(3) == pytest.approx((1.75 + 1.81) / 2)
    assert cost.seconds(5) == pytest.approx(1.81 + (3.22 - 1.81) / 4)


def test_beyond_the_widest_no_discount_is_expected() -> None:
    assert CostCurve(MEASURED).seconds(16) == pytest.approx(2 * 3.22)
    assert CostCurve({4: 2.0}).seconds(1) == pytest.approx(2.0)


@pytest.mark.parametrize("seconds", [{}, {1: 0.0}, {1: 1.0, 2: -1.0}])
def test_a_curve_without_a_measurement_is_a_mistake(seconds: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="positive"):
        CostCurve(seconds)


def test_a_width_that_was_seen_gets_its_own_step() -> None:
    cost = CostCurve(MEASURED)
    for _ in range(300):
        for n, seconds in (*MEASURED.items(), (3, 2.37)):
            cost.observe(n, seconds)
    assert cost.seconds(3) == pytest.approx(2.37, rel=0.05)
    assert cost.seconds(4) == pytest.approx(1.81, rel=0.05)
    assert cost.seconds(3) > cost.seconds(4)
    assert 3 in cost.measured()


def test_a_drift_of_one_width_moves_all_and_keeps_the_shape() -> None:
    cost = CostCurve(MEASURED)
    before = cost.relative(4)
    for _ in range(60):
        for n in (1, 4):
            cost.observe(n, 1.5 * MEASURED[n])
    assert cost.seconds(8) == pytest.approx(1.5 * 3.22, rel=0.1)
    assert cost.relative(4) == pytest.approx(before, rel=0.05)


def test_one_outlier_changes_little_and_is_forgotten() -> None:
    cost = CostCurve(MEASURED)
    cost.observe(4, 1000.0)
    assert cost.seconds(4) < 1.12 * 1.81
    for _ in range(60):
        cost.observe(4, 1.81)
        cost.observe(1, 1.0)
    assert cost.seconds(4) == pytest.approx(1.81, rel=0.02)


def test_passes_without_a_time_teach_nothing() -> None:
    cost = CostCurve(MEASURED)
    cost.observe(4, 0.0)
    cost.observe(4, -1.0)
    assert cost.seconds(4) == pytest.approx(1.81)


def test_noise_around_the_truth_does_not_move_the_curve() -> None:
    cost, rng = CostCurve(MEASURED), np.random.default_rng(0)
    for _ in range(2000):
        n = int(rng.choice(list(MEASURED)))
        cost.observe(n, MEASURED[n] * float(np.exp(rng.normal(0, 0.1))))
    for n, seconds in MEASURED.items():
        assert cost.seconds(n) == pytest.approx(seconds, rel=0.15)


def test_a_longer_text_makes_every_row_dearer() -> None:
    cost = CostCurve({1: 0.010, 4: 0.020}, context=100, token_s=1e-6)
    assert cost.relative(4) == pytest.approx(2.0)
    cost.at(10_100)
    assert cost.seconds(1) == pytest.approx(0.020)
    assert cost.seconds(4) == pytest.approx(0.060)
    cost.at(100)
    assert cost.seconds(4) == pytest.approx(0.020)


def test_a_shorter_text_makes_rows_cheaper_but_never_free() -> None:
    cost = CostCurve({1: 0.010, 4: 0.020}, context=5000, token_s=1e-6)
    cost.at(1000)
    assert cost.seconds(1) == pytest.approx(0.006)
    cost.at(0)
    assert cost.seconds(4) == pytest.approx(0.010)


def test_what_was_measured_is_told_for_the_text_it_was_measured_behind() -> None:
    cost = CostCurve({1: 0.010, 4: 0.020}, context=100, token_s=1e-6)
    cost.at(10_100)
    assert cost.measured() == pytest.approx({1: 0.010, 4: 0.020})
    assert cost.context == 100
    for _ in range(300):
        cost.observe(1, 0.030)
        cost.observe(4, 0.080)
    long_text = cost.measured()
    cost.at(100)
    assert cost.measured() == long_text == pytest.approx({n: cost.seconds(n) for n in (1, 4)})
    assert long_text[4] > 0.022, "what was learned of the machine is in it"


def test_what_is_learned_of_a_width_does_not_depend_on_the_text_being_long() -> None:
    cost = CostCurve({1: 0.010, 4: 0.020}, context=0, token_s=1e-6)
    cost.at(5000)
    for _ in range(200):
        cost.observe(4, 0.050)
        cost.observe(1, 0.015)
    assert cost.seconds(4) == pytest.approx(0.050, rel=0.05)
    assert cost.seconds(1) == pytest.approx(0.015, rel=0.05)


def test_an_answer_begins_with_the_costs_of_its_own_text_not_of_the_last_one() -> None:
    cost = CostCurve({1: 1.0, 4: 2.0}, context=100, token_s=1e-3)
    cost.at(4000)
    prompt = np.zeros(100, dtype=np.int32)
    Auto([], cost).begin(Request(prompt, Sampling(0.0, seed=0), 1))
    assert cost.seconds(1) == pytest.approx(1.0)
