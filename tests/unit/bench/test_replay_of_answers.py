"""A replayed answer costs what the real loop would have spent on it."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from recordings import T1, fresh, level, recorded, steep, usual

from edgespec.bench.explore import arms
from edgespec.bench.recorded import NO_GUESS
from edgespec.bench.replay import (
    AnyCost,
    Arm,
    AutoArm,
    FixedArm,
    Replayer,
    replay,
)
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost
from edgespec.proposers.watchdog import MANY

PLAIN = FixedArm(("ngram",), 0)
FREE = DraftCost(guess_s=0.0, read_s=0.0)
CHEAP = DraftCost(guess_s=0.1 * T1, read_s=0.01 * T1)


def slow(_rows: int) -> float:
    """Beside such passes a second of guessing is little."""
    return 1000.0


def test_plain_decoding_takes_one_plain_pass_for_each_token_but_the_first() -> None:
    told = replay(recorded(fresh(50)), PLAIN, usual)
    assert told.seconds == pytest.approx(49 * T1) == told.plain_seconds
    assert (told.rounds, told.drafted, told.speedup) == (50, 0, pytest.approx(1.0))


def test_a_model_that_is_always_right_wins_all_its_guesses_each_round() -> None:
    told = replay(recorded(fresh(41), [True] * 41), FixedArm(("draft",), 4), usual, CHEAP)
    assert told.rounds == 1 + 8
    assert told.drafted == told.tested == told.accepted == 32
    # the prompt and a token, of which two ride along; later it has read its own right guesses
    read = 4 - 2
    assert told.seconds == pytest.approx(8 * usual(5) + 32 * CHEAP.guess_s + read * CHEAP.read_s)


def test_a_wrong_guess_ends_the_path_and_costs_its_row() -> None:
    right = [True, True, False, True, True, True]
    told = replay(recorded(fresh(6), right), FixedArm(("draft",), 4), steep, FREE)
    # places 1 to 4 in one draft: 1 is right, 2 is wrong; then 3 and 4, and 5 is the target's own
    assert (told.rounds, told.drafted, told.tested, told.accepted) == (3, 6, 4, 3)
    assert told.seconds == pytest.approx(steep(5) + steep(3))


def test_reading_text_that_the_model_has_not_seen_costs_time() -> None:
    answer = recorded(fresh(9), [True] * 9, prompt=fresh(300, first=1000))
    reads = DraftCost(guess_s=0.0, read_s=0.01)
    free = replay(answer, FixedArm(("draft",), 7), level, FREE)
    dear = replay(answer, FixedArm(("draft",), 7), level, reads)
    assert dear.seconds - free.seconds == pytest.approx((301 - 2) * 0.01)


def test_an_ngram_repeats_the_prompt_without_a_model() -> None:
    text = fresh(30)
    told = replay(recorded(text, prompt=text), FixedArm(("ngram",), 8), level)
    assert told.accepted > 20
    assert told.rounds < 8


def test_the_first_that_has_guesses_makes_them() -> None:
    both = FixedArm(("ngram", "draft"), 4)
    told = replay(recorded(fresh(21), [True] * 21), both, level, FREE)
    alone = replay(recorded(fresh(21), [True] * 21), FixedArm(("draft",), 4), level, FREE)
    assert told == alone
    repeating = recorded([7, 8, 9, 10] * 8, [False] * 32)
    assert replay(repeating, both, level, FREE).accepted > 15


def test_a_model_whose_context_is_full_leaves_the_rest_plain() -> None:
    answer = recorded(fresh(41), [True] * 41)
    assert answer.guesses is not None
    answer.guesses[21:] = NO_GUESS
    told = replay(answer, FixedArm(("draft",), 4), level, FREE)
    assert told.accepted == 16 + 0
    assert told.rounds == 1 + 4 + 20


def test_a_model_that_is_wrong_nearly_always_rests_as_the_real_one_does() -> None:
    told = replay(recorded(fresh(300), [False] * 300), FixedArm(("draft",), 2), level, FREE)
    assert (told.rounds, told.drafted, told.accepted) == (300, 2 * MANY, 0)


@pytest.mark.parametrize("arm", [FixedArm(("recycling",), 2), AutoArm("recycling")])
def test_the_time_that_trees_take_to_guess_is_on_the_clock_and_that_of_planning_is_not(
    arm: Arm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks at the clock finds that a second has passed since it was looked at last."""
    monkeypatch.setattr("edgespec.planning.tree_source.perf_counter", map(float, count()).__next__)
    ids, scores = np.array(fresh(12), np.int32), np.full((12, 1), -0.1, np.float32)
    answer = replace(recorded(fresh(12)), near=ids[:, None], scores=scores)
    trees = replay(answer, arm, slow)
    chains = replay(answer, FixedArm(("ngram",), 2), slow)
    learned = trees.rounds - 1
    guessed = learned - 1  # the last token leaves no room for a guess
    assert trees.seconds == pytest.approx(learned * slow(1) + learned + guessed)
    assert chains.seconds == pytest.approx((chains.rounds - 1) * slow(1))


def test_auto_guesses_where_it_pays_and_not_where_it_does_not() -> None:
    right, wrong = recorded(fresh(300), [True] * 300), recorded(fresh(300), [False] * 300)
    assert replay(right, AutoArm(), usual, CHEAP).speedup > 2
    assert replay(wrong, AutoArm(), usual, CHEAP).speedup > 0.95


def test_what_auto_learned_stays_for_the_next_answer() -> None:
    right = recorded(fresh(60), [True] * 60)
    once = replay(right, AutoArm(), usual, CHEAP)
    replayer = Replayer(AutoArm(), usual, CHEAP)
    many = [replayer.replay(right) for _ in range(4)]
    assert many[0] == once
    assert many[-1].seconds < once.seconds


LONG = fresh(4000)
COPY = recorded(LONG[100:130], prompt=LONG)


def measured() -> CostCurve:
    """As on a GPU: rows cost little, but the more the longer the text is."""
    seconds = {1: T1, 2: T1, 4: 1.1 * T1, 8: 1.2 * T1, 16: 1.5 * T1, 65: 3 * T1}
    return CostCurve(seconds, context=1000, token_s=1e-4 * T1)


def behind(tokens: int, rows: int) -> float:
    """Seconds of a pass by what was measured."""
    curve = measured()
    curve.at(tokens)
    return curve.seconds(rows)


def test_a_pass_behind_a_long_text_costs_what_it_was_measured_to_cost_there() -> None:
    told = replay(COPY, FixedArm(("ngram",), 12), measured())
    # of the copy two tokens must be there before it is one; the last pass has room for one guess
    passes = [(4001, 1), (4002, 13), (4015, 13), (4028, 2)]
    assert told.seconds == pytest.approx(sum(behind(*one) for one in passes))
    assert told.plain_seconds == pytest.approx(sum(behind(4000 + n, 1) for n in range(1, 30)))
    assert behind(4002, 13) > 2 * measured().seconds(13)


def test_a_curve_that_is_replayed_on_is_left_as_it_was() -> None:
    curve = measured()
    replay(COPY, AutoArm("ngram"), curve)
    assert (curve.measured(), curve.seconds(13)) == (measured().measured(), measured().seconds(13))


def test_the_planner_weighs_passes_behind_the_text_that_there_is() -> None:
    """Where a row costs more the longer the text is, guesses that pay behind little of it do not
    behind much."""
    curve = CostCurve({n: T1 * (1 + 0.01 * n) for n in (1, 2, 4, 8, 16, 65)}, 10, token_s=T1 / 1000)
    reply = [*range(40)] * 5
    near, far = (
        replay(recorded(reply, prompt=fresh(n)), AutoArm("ngram"), curve) for n in (10, 30_000)
    )
    assert near.drafted > 100
    assert near.speedup > 2
    assert (far.drafted, far.speedup) == (0, pytest.approx(1.0))


@pytest.mark.parametrize("cost", [level, CostCurve({n: T1 for n in (1, 2, 4, 8, 16, 65)})])
def test_auto_guesses_as_far_as_the_widest_pass_that_is_measured_at_a_start(cost: AnyCost) -> None:
    text = fresh(400)
    told = replay(recorded(text[50:350], prompt=text), AutoArm("ngram"), cost)
    assert told.rounds == 1 + -(-299 // 32), "31 guesses a round and the target's own token"


@pytest.mark.parametrize("arm", arms(model=True), ids=lambda arm: arm.name)
def test_every_arm_says_the_whole_answer(arm: Arm) -> None:
    reply = [*fresh(20), *[5, 6, 7] * 10, *fresh(20, first=500)]
    right = [place % 3 != 0 for place in range(len(reply))]
    told = replay(recorded(reply, right), arm, usual, CHEAP)
    assert told.plain_seconds == pytest.approx((len(reply) - 1) * T1)
    assert told.rounds + told.accepted == len(reply)
    assert told.accepted > 0
