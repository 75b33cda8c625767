"""A drafter that is hardly ever right rests, and says why."""

from __future__ import annotations

import pytest
from proposing import asked, at, outcome

from edgespec.decoding.accept import Accepted
from edgespec.decoding.draft import Draft
from edgespec.decoding.proposer import UpTo
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.watchdog import MANY, Watchdog
from edgespec.testing import TableSession

V = 6


def small_model() -> SmallModel:
    return SmallModel(TableSession(V, seed=3), V)


def judged(model: SmallModel, rounds: int, right: int = 0) -> None:
    """Rounds whose first guess was wrong, but for the first few."""
    for number in range(rounds):
        accepted = Accepted((0,) if number < right else (), 1)
        model.observe(outcome(Draft.chain([1, 2], "draft"), accepted))


def test_a_drafter_that_is_always_wrong_rests_and_names_likely_causes() -> None:
    model = small_model()
    model.begin(asked([0]))
    judged(model, MANY - 1)
    assert model.propose(at([1, 2, 3]), UpTo(4))
    assert model.note == ""
    judged(model, 1)
    assert not model.propose(at([1, 2, 3]), UpTo(4))
    assert f"right in 0 of {MANY} rounds" in model.note
    for cause in ("number format", "layers", "model family"):
        assert cause in model.note


def test_a_drafter_that_is_right_once_in_ten_rounds_goes_on() -> None:
    model = small_model()
    for _ in range(10):
        judged(model, 20, right=2)
    assert model.propose(at([1, 2, 3]), UpTo(4))
    assert model.note == ""


def test_what_others_drafted_and_plain_rounds_do_not_count() -> None:
    model = small_model()
    for _ in range(3 * MANY):
        model.observe(outcome(Draft.chain([1], "ngram"), Accepted((), 1)))
        model.observe(outcome())
    assert model.propose(at([1, 2, 3]), UpTo(4))


def test_the_next_answer_gives_it_another_and_shorter_trial() -> None:
    model = small_model()
    judged(model, MANY)
    model.begin(asked([0]))
    assert model.propose(at([1, 2, 3]), UpTo(4))
    assert model.note == ""
    judged(model, MANY // 2)
    assert not model.propose(at([1, 2, 3]), UpTo(4))


def test_a_fault_that_is_mended_is_forgotten() -> None:
    watchdog = Watchdog()
    for _ in range(MANY):
        watchdog.observe(right=False)
    for _ in range(4):
        watchdog.begin()
        for _ in range(MANY):
            watchdog.observe(right=True)
    assert not watchdog.parked


def test_the_planner_passes_the_message_on_and_plans_without_the_drafter() -> None:
    model = small_model()
    cost = CostCurve({n: 1.0 + 0.01 * n for n in (1, 2, 4, 8, 16)}, 48, 0.0)
    source = ModelSource(model, cost, DraftCost(0.001))
    auto = Auto([source], cost)
    auto.begin(asked([0]))
    assert source.offer(at([1, 2, 3]), 8, 1.0) is not None
    judged(model, MANY)
    assert auto.note == model.note != ""
    assert source.offer(at([1, 2, 3]), 8, 1.0) is None
    assert not auto.propose(at([1, 2, 3]), UpTo(8))


@pytest.mark.parametrize("right", [True, False])
def test_a_watchdog_of_a_few_rounds_says_nothing(right: bool) -> None:
    watchdog = Watchdog()
    for _ in range(MANY - 1):
        watchdog.observe(right)
    assert watchdog.why("draft") == ""
