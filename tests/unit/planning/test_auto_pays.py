"""Auto on scripted machines: never much slower than plain, near the best fixed length."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from simulator import (
    T1,
    Cost,
    Guesses,
    Luck,
    curve,
    flat,
    linear,
    machine_for,
    random_text,
    run,
    run_auto,
    run_auto_ngram,
    run_fixed,
    usual,
)

from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource
from edgespec.proposers.draft_model import FAMILY_HOPE, TRAINED_HOPE

COSTS = [linear, usual, flat]
CHEAP, COMMON = 0.02 * T1, 0.1 * T1  # seconds of one guess of the draft model


def always(chance: float) -> Luck:
    return lambda place: chance


def steps(rows: int) -> float:
    """Q4_0 on two cores: three rows cost more than four."""
    real = {1: 1.0, 2: 1.75, 3: 2.37, 4: 1.81, 5: 2.6, 6: 2.9, 7: 3.1, 8: 3.22}
    return T1 * real.get(rows, 3.22 + 0.13 * (rows - 8))


STEPS = {n: steps(n) for n in (1, 2, 3, 4, 8, 16)}


@pytest.mark.parametrize("guess_s", [CHEAP, COMMON, 0.3 * T1])
@pytest.mark.parametrize("chance", [0.0, 0.15, 0.3, 0.5, 0.8])
def test_where_each_row_costs_a_pass_a_draft_model_is_never_even_tried(
    chance: float, guess_s: float
) -> None:
    told = run_auto(linear, always(chance), guess_s)
    assert not any(round_.guesses or round_.draft_s for round_ in told.rounds)
    assert told.relative == pytest.approx(1.0)


def small_target(rows: int) -> float:
    """A 135M model in bf16 on two cores."""
    return T1 * float(np.interp(rows, [1, 2, 4, 8, 16], [1.0, 1.57, 2.0, 2.7, 4.1]))


@pytest.mark.parametrize(
    ("hope", "tried"), [(FAMILY_HOPE, True), (TRAINED_HOPE, False)], ids=["family", "trained"]
)
def test_a_drafter_that_cannot_be_right_enough_here_costs_the_first_answer_nothing(
    hope: float, tried: bool
) -> None:
    costs = curve(small_target)
    machine = machine_for(small_target, tokens=200)
    drafter = Guesses(machine, always(0.35), 0.07 * T1)
    drafter.hope = hope
    told = run(machine, Auto([ModelSource(drafter, costs, DraftCost(0.07 * T1))], costs), 200)
    assert any(round_.draft_s > 0 for round_ in told.rounds) == tried
    assert tried or told.relative == pytest.approx(1.0)


def test_a_trained_drafter_is_tried_at_once_where_rows_are_cheap() -> None:
    costs, machine = curve(flat), machine_for(flat, tokens=200)
    drafter = Guesses(machine, always(0.5), 0.01 * T1)
    drafter.hope = TRAINED_HOPE
    told = run(machine, Auto([ModelSource(drafter, costs, DraftCost(0.01 * T1))], costs), 200)
    assert told.rounds[1].guesses
    assert told.relative < 0.7


@pytest.mark.parametrize("letters", [2, 4, 30, 1000])
def test_where_each_row_costs_a_pass_an_ngram_is_never_drafted(letters: int) -> None:
    told = run_auto_ngram(linear, random_text(1200, letters))
    assert not any(round_.guesses for round_ in told.rounds)
    assert "plain" in told.rounds[-1].plan


@pytest.mark.parametrize("sure", [True, False], ids=["sure", "unsure"])
@pytest.mark.parametrize("guess_s", [CHEAP, COMMON, 0.3 * T1])
@pytest.mark.parametrize("cost", COSTS)
def test_hostile_text_costs_at_most_a_few_percent(cost: Cost, guess_s: float, sure: bool) -> None:
    for chance in (0.0, 0.15, 0.3):
        assert run_auto(cost, always(chance), guess_s, sure=sure).relative <= 1.05


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("letters", [2, 4, 10, 30, 100, 1000])
def test_text_without_sense_costs_an_ngram_next_to_nothing(cost: Cost, letters: int) -> None:
    assert run_auto_ngram(cost, random_text(1200, letters)).relative <= 1.01


@pytest.mark.parametrize("sure", [True, False], ids=["sure", "unsure"])
@pytest.mark.parametrize("chance", [0.7, 0.9])
@pytest.mark.parametrize("cost", [usual, flat, steps])
def test_friendly_text_is_near_the_best_fixed_length(cost: Cost, chance: float, sure: bool) -> None:
    lengths = (0, 1, 2, 3, 4, 6, 8, 12, 16)
    best = min(run_fixed(cost, always(chance), CHEAP, k, 600).relative for k in lengths)
    told = run_auto(cost, always(chance), CHEAP, sure=sure)
    assert best < 0.8
    assert told.relative < 1.2 * best


@pytest.mark.parametrize("sure", [True, False], ids=["sure", "unsure"])
@pytest.mark.parametrize("cost", [usual, flat])
def test_stationary_text_is_within_a_few_percent_of_the_best_length_in_hindsight(
    cost: Cost, sure: bool
) -> None:
    """The best of eight fixed lengths, found by running them all; on average nothing is lost."""
    ratios = []
    for chance in (0.3, 0.5, 0.7, 0.8, 0.9):
        for guess_s in (CHEAP, COMMON, 0.3 * T1):
            lengths = (0, 1, 2, 3, 5, 8, 10, 15)
            best = min(run_fixed(cost, always(chance), guess_s, k, 1000).relative for k in lengths)
            told = run_auto(cost, always(chance), guess_s, tokens=1000, sure=sure)
            ratios.append(told.relative / best)
    assert sum(ratios) / len(ratios) < 1.05
    assert max(ratios) < 1.3


def test_text_that_changes_its_character_is_answered_faster_than_by_any_fixed_length() -> None:
    def moody(place: int) -> float:
        return 0.1 if 300 <= place < 700 or 1000 <= place < 1400 else 0.92

    for guess_s in (CHEAP, COMMON):
        fixed = [run_fixed(usual, moody, guess_s, k, 1600).relative for k in range(16)]
        assert run_auto(usual, moody, guess_s, tokens=1600).relative < min(fixed)


def test_where_width_is_free_drafts_are_long() -> None:
    told = run_auto(flat, always(0.95), CHEAP)
    assert told.drafted(100, 1000) > 10
    repeats = run_auto_ngram(flat, (random_text(60) * 30)[:1200])
    assert repeats.drafted(200, 1000) > 10
    assert repeats.relative < 0.2


@pytest.mark.parametrize("chance", [0.7, 0.8])
def test_a_cheap_width_behind_a_dear_one_is_found_by_a_model(chance: float) -> None:
    """T(3) > T(4): two guesses never pay, three do."""
    machine, cost = machine_for(steps), CostCurve(STEPS)
    source = ModelSource(Guesses(machine, always(chance), CHEAP), cost, DraftCost(CHEAP))
    told = run(machine, Auto([source], cost), 1000)
    lengths = Counter(len(round_.guesses) for round_ in told.rounds if round_.guesses)
    assert lengths.most_common(1)[0][0] == 3
    assert lengths[2] < 0.02 * len(told.rounds)
    assert told.relative < 0.85


def test_a_cheap_width_behind_a_dear_one_is_found_by_an_ngram() -> None:
    machine = machine_for(steps, (random_text(60) * 30)[:1300])
    cost = CostCurve(STEPS)
    told = run(machine, Auto([NGramSource(cost)], cost), 1000)
    repeating = [round_ for round_ in told.rounds if round_.index > 60]
    lengths = Counter(len(round_.guesses) for round_ in repeating)
    assert lengths[2] == 0
    assert sum(count for n, count in lengths.items() if n >= 3) > 0.9 * len(repeating)


@pytest.mark.parametrize("seed", range(6))
def test_bad_luck_at_the_start_does_not_park_a_good_model_for_ever(seed: int) -> None:
    """While it is parked, text that it has not read piles up; a longer draft pays for that."""
    machine, cost, guess_s = machine_for(usual), curve(usual), 0.3 * T1
    drafter = Guesses(machine, always(0.9), guess_s, seed=seed)
    told = run(machine, Auto([ModelSource(drafter, cost, DraftCost(guess_s))], cost), 600)
    assert told.relative < 0.8
    assert told.drafted(400, 600) > 1


def good_then_bad_then_good(place: int) -> float:
    return 0.05 if 400 <= place < 1000 else 0.9


@pytest.mark.parametrize("guess_s", [CHEAP, 0.05 * T1])
def test_a_model_is_parked_tried_again_and_comes_back(guess_s: float) -> None:
    told = run_auto(usual, good_then_bad_then_good, guess_s, tokens=1600)
    assert told.drafted(50, 400) > 4, "it drafts"
    assert told.drafted(460, 1000) < 0.3, "it is parked within 60 tokens"
    tried = [r for r in told.rounds if 500 <= r.index < 1000 and r.draft_s > 0]
    assert tried, "it is tried again"
    assert all(len(r.guesses) <= 3 for r in tried)
    assert told.drafted(1150, 1600) > 4, "it is back within 150 tokens"
    assert told.relative < 0.75


def test_a_shorter_draft_is_the_answer_to_less_luck_where_width_is_free() -> None:
    told = run_auto(flat, good_then_bad_then_good, CHEAP, tokens=1600)
    assert told.drafted(50, 400) > 8
    assert told.drafted(440, 1000) < 2.5
    assert told.drafted(1040, 1600) > 8


@pytest.mark.parametrize("cost", [usual, flat])
def test_an_ngram_is_back_at_once_where_the_text_repeats(cost: Cost) -> None:
    """Its guesses are scored in the shadow, so it never has to be tried."""
    text = [*random_text(400, seed=1), *random_text(20, seed=5) * 10, *random_text(400, seed=2)]
    told = run_auto_ngram(cost, [*text, *text[200:500], *random_text(100)], 1200)
    assert told.drafted(450, 580) > 5
    assert told.drafted(640, 980) < 1
    assert told.drafted(1050, 1180) > 5


def test_the_time_saved_up_for_trying_is_bounded() -> None:
    """A long answer in which nothing pays must not hoard time and then burn it."""
    told = run_auto(usual, always(0.0), CHEAP, tokens=6000)
    assert told.relative < 1.02
    late = [r for r in told.rounds if r.index > 5000]
    assert sum(bool(r.guesses) for r in late) < 0.2 * len(late)


def test_one_wide_draft_that_was_wrong_does_not_park_a_good_model() -> None:
    """Sixteen guesses at 0.28 passes each and their check cost seven passes at once."""
    seconds = dict(zip((1, 2, 4, 8, 16), (1.0, 1.44, 1.83, 2.38, 2.55), strict=True))
    bf16 = CostCurve({rows: T1 * passes for rows, passes in seconds.items()}).seconds
    speeds = list[float]()
    for seed in range(8):
        machine, cost, guess_s = machine_for(bf16), curve(bf16), 0.28 * T1
        drafter = Guesses(machine, always(0.9), guess_s, seed=seed)
        auto = Auto([ModelSource(drafter, cost, DraftCost(guess_s))], cost)
        for _ in range(5):
            machine.now = 0.0
            speeds.append(1 / run(machine, auto, 128).relative)
    assert np.median(speeds) > 1.5
    assert np.quantile(speeds, 0.1) > 1.15, "in nine answers of ten"
