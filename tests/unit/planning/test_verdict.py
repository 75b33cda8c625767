"""The verdict says from which share of right guesses on guessing pays."""

from __future__ import annotations

import pytest
from simulator import T1, curve, flat, linear, usual

from edgespec.planning.cost import CostCurve
from edgespec.planning.verdict import at_length, doubt, pays_from, verdict, worth


def test_where_each_row_costs_a_pass_nothing_can_pay() -> None:
    assert pays_from(curve(linear)) is None
    assert worth(curve(linear), 1.0) == (1.0, 0)
    assert "can never pay" in " ".join(verdict(curve(linear), 0.01))


def test_where_rows_are_nearly_free_almost_any_luck_pays() -> None:
    share = pays_from(curve(flat))
    assert share is not None
    assert share < 0.02


def test_the_share_is_where_speed_begins_to_exceed_plain_decoding() -> None:
    for guess_s in (0.0, 0.1 * T1, 0.3 * T1):
        share = pays_from(curve(usual), guess_s)
        assert share is not None
        assert worth(curve(usual), share - 0.02, guess_s)[1] == 0
        assert worth(curve(usual), share + 0.02, guess_s)[1] > 0


def test_the_worth_of_a_draft_is_tokens_over_passes() -> None:
    speed, n = worth(curve(usual), 0.9, 0.3 * T1)
    tokens = sum(0.9**k for k in range(n + 1))
    assert speed == pytest.approx(tokens / (0.74 + 0.26 * (n + 1) + 0.3 * n))


def test_a_drafter_that_does_not_pay_is_said_to_be_in_the_way() -> None:
    told = list(verdict(curve(usual), 2.0 * T1))
    assert "can never pay" in told[2]
    assert "nothing faster" in told[3]


def test_one_guess_pays_and_several_pay() -> None:
    one = CostCurve({1: T1, 2: 1.5 * T1, 3: 9 * T1})
    assert "one guess a pass pays from 51% right" in list(verdict(one))[1]
    assert (
        " guesses a pass pay from " in list(verdict(CostCurve({1: T1, 2: 1.9 * T1, 8: 2 * T1})))[1]
    )


def test_what_was_measured_on_a_busy_machine_is_not_to_be_trusted() -> None:
    assert doubt(curve(usual), at_rest=True) == ""
    told = doubt(curve(usual), at_rest=False)
    assert told.startswith("not to be trusted: other programs kept this machine busy")


def test_two_rows_that_cost_less_than_one_are_not_to_be_trusted() -> None:
    assert "cheaper than a plain" in doubt(CostCurve({1: T1, 2: 0.9 * T1}), at_rest=True)
    assert doubt(CostCurve({1: T1, 2: 0.98 * T1}), at_rest=True) == ""


def test_a_text_that_makes_passes_dearer_is_told_at_its_full_length() -> None:
    growing = CostCurve({1: 0.010, 8: 0.020}, context=100, token_s=1e-6)
    told = at_length(growing, 4100)
    assert told == (
        "with 4100 tokens of text a plain pass takes 14.0 ms and one over 8 tokens 52.0 ms"
    )
    assert growing.seconds(1) == pytest.approx(0.010)
    assert at_length(curve(usual), 4100) == ""
