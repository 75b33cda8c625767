"""The bound: what nobody can beat, and what somebody who knows could reach."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from recordings import T1, beside, cheap, fresh, level, recorded, steep, usual

from edgespec.bench.explore import arms
from edgespec.bench.foresight import foresight, model_right, ngram_right
from edgespec.bench.recorded import Recorded
from edgespec.bench.replay import Arm, AutoArm, replay
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost

FREE = DraftCost(0.0, 0.0)
CHEAP = DraftCost(guess_s=0.1 * T1, read_s=0.0)


def mixed(seed: int, length: int = 60) -> Recorded:
    """A text that repeats itself now and then, and a model that is right two times of three."""
    rng = np.random.default_rng(seed)
    reply = rng.integers(0, 6, length).tolist()
    return recorded(reply, (rng.random(length) < 2 / 3).tolist(), prompt=[1, 2, 3, 4])


def test_without_anything_to_guess_the_bound_is_plain_decoding() -> None:
    bound = foresight(recorded(fresh(50), [False] * 50), usual, CHEAP)
    assert (bound.ngram, bound.draft, bound.both) == pytest.approx((1.0, 1.0, 1.0))


def test_without_a_model_only_the_ngram_is_bounded() -> None:
    bound = foresight(recorded([7, 8, 9] * 12), usual)
    assert bound.ngram > 2
    assert bound.draft is bound.both is None


def test_an_answer_of_one_token_leaves_nothing_to_win_for_anybody() -> None:
    bound = foresight(recorded([7], [True]), usual, CHEAP)
    assert (bound.ngram, bound.draft, bound.both) == (1.0, 1.0, 1.0)
    assert foresight(recorded([7]), usual).both is None


def test_where_rows_are_free_the_bound_is_set_by_the_right_guesses_alone() -> None:
    right = [True] * 33
    # after the first token 32 are left: 31 guesses and the target's own, in one pass
    assert foresight(recorded(fresh(33), right), level, FREE).draft == pytest.approx(32.0)


def test_where_each_row_costs_a_plain_pass_nothing_is_won() -> None:
    assert foresight(mixed(0), steep, FREE).both == pytest.approx(1.0)


def test_guesses_that_cost_more_than_they_win_are_left_out() -> None:
    dear = DraftCost(guess_s=2 * T1, read_s=0.0)
    assert foresight(recorded(fresh(50), [True] * 50), level, dear).draft == pytest.approx(1.0)


def test_a_dear_width_is_filled_up_to_a_cheap_one() -> None:
    def stepped(rows: int) -> float:
        return {1: T1, 2: 1.9 * T1, 3: 3 * T1}.get(rows, 1.5 * T1)

    bound = foresight(recorded(fresh(3), [True] * 3), stepped, FREE)
    assert bound.draft == pytest.approx(2 / 1.5)


def test_right_guesses_in_a_row_are_counted_from_each_place() -> None:
    answer = recorded(fresh(6), [True, True, False, True, True, True])
    assert model_right(answer) == [2, 1, 0, 3, 2, 1]


def test_an_ngram_is_counted_by_what_it_would_say_to_the_text_so_far() -> None:
    answer = recorded([5, 6, 7, 8, 5, 6, 7, 9], prompt=[1, 2])
    # after the second 5 it says 6 7 8, of which two are right; after 9, nothing
    assert ngram_right(answer) == [0, 0, 0, 0, 0, 2, 1, 0]


def test_an_ngram_may_carry_on_what_the_model_began() -> None:
    """Nothing like the first token came before, so that an n-gram alone has no guess behind it;
    behind the model's first guess it has all others."""
    text = fresh(8)
    answer = recorded([50, *text[1:]], [False, True, *[False] * 6], prompt=text)
    assert (ngram_right(answer)[1:3], model_right(answer)[1:3]) == ([0, 6], [1, 0])
    bound = foresight(answer, level, CHEAP)
    assert (bound.ngram, bound.draft) == pytest.approx((7 / 2, 7 / 6.1))
    assert bound.both == pytest.approx(7 / 1.1), "one pass and one guess of the model"


def test_auto_lets_an_ngram_carry_on_and_stays_below_the_bound() -> None:
    """Each time the text comes back to what it said before, the model alone knows it."""
    block, reply, right = fresh(16), list[int](), list[bool]()
    for turn in range(60):
        reply += [1000 + turn, *block]
        right += [False, True, *[False] * 15]
    answer = recorded(reply, right)
    bound = foresight(answer, level, CHEAP)
    assert bound.both is not None
    told = replay(answer, AutoArm(), level, CHEAP)
    assert told.rounds < 90, "less than two passes for each turn"
    assert told.speedup <= bound.both


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arm", arms(model=True), ids=lambda arm: arm.name)
def test_no_way_of_guessing_beats_the_bound(arm: Arm, seed: int) -> None:
    answer = mixed(seed)
    bound = foresight(answer, usual, CHEAP)
    assert bound.both is not None
    assert replay(answer, arm, usual, CHEAP).speedup <= bound.both + 1e-9


def test_a_sibling_that_is_right_counts_and_ends_the_row() -> None:
    answer = recorded(fresh(6), [True, True, False, True, False, False])
    answer = beside(answer, [False, False, True, False, False, True])
    assert model_right(answer, answer.noted) == [3, 2, 1, 1, 0, 1]
    assert model_right(answer) == [2, 1, 0, 1, 0, 0]


def test_siblings_raise_the_bound_of_auto_where_they_are_let_and_rows_are_cheap() -> None:
    answer = beside(recorded(fresh(60), [False] * 60), [True] * 60)
    chains = foresight(answer, cheap, CHEAP)
    found = foresight(answer, cheap, CHEAP, trees=True)
    assert found.both is not None
    assert chains.both is not None
    assert found.both > 1.3 * chains.both
    assert (found.ngram, found.draft) == (chains.ngram, chains.draft)
    assert foresight(answer, usual, CHEAP, trees=True) == foresight(answer, usual, CHEAP)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("arm", arms(model=True, trees=True), ids=lambda arm: arm.name)
def test_no_way_of_guessing_with_siblings_beats_the_bound(arm: Arm, seed: int) -> None:
    right = np.random.default_rng(seed).random(60) < 1 / 2
    answer = beside(mixed(seed), right.tolist())
    bound = foresight(answer, cheap, CHEAP, trees=True)
    assert bound.both is not None
    assert replay(answer, arm, cheap, CHEAP).speedup <= bound.both + 1e-9


@pytest.mark.parametrize("token_s", [0.0, 0.02 * T1])
@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_the_best_of_all_ways_to_cut_the_reply_into_rounds(
    seed: int, token_s: float
) -> None:
    answer = mixed(seed, length=11)
    cost = CostCurve({rows: usual(rows) for rows in range(1, 14)}, token_s=token_s)
    repeats, model = ngram_right(answer), model_right(answer)
    bound = foresight(answer, cost, CHEAP)
    assert bound.ngram == pytest.approx(by_trying_all(repeats, [0] * 11, cost))
    assert bound.draft == pytest.approx(by_trying_all([0] * 11, model, cost))
    assert bound.both == pytest.approx(by_trying_all(repeats, model, cost))


def by_trying_all(repeats: list[int], model: list[int], cost: CostCurve) -> float:
    """Every number of n-gram guesses, right ones or not, with every number of the model's behind
    or before them."""
    places = len(repeats)

    @cache
    def least(place: int) -> float:
        if place >= places:
            return 0.0
        found = []
        most = places - place - 1
        for free, dear in product(range(most + 1), repeat=2):
            if free + dear > most:
                continue
            behind, before = min(free, repeats[place]), min(dear, model[place])
            if behind == free:
                behind += min(dear, model[place + free])
            if before == dear:
                before += min(free, repeats[place + dear])
            seconds = pass_s(place, 1 + free + dear) + dear * CHEAP.guess_s
            found.append(seconds + least(place + max(behind, before) + 1))
        return min(found)

    def pass_s(place: int, rows: int) -> float:
        cost.at(4 + place)  # the prompt has four tokens
        return cost.seconds(rows)

    return sum(pass_s(place, 1) for place in range(1, places)) / least(1)
