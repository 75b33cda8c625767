"""A table of every way of guessing on recorded answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recordings import T1, fresh, recorded, usual

from edgespec.bench.explore import arms, by_category, explore, total_seconds
from edgespec.planning.model_source import DraftCost

CHEAP = DraftCost(guess_s=0.1 * T1, read_s=0.01 * T1)
EASY = replace(recorded(fresh(60), [True] * 60), id="easy", category="code")
HARD = replace(recorded(fresh(30), [False] * 30), id="hard", category="poems")


def test_every_arm_and_bound_has_a_figure_in_every_category() -> None:
    table = by_category(explore([EASY, HARD], usual, CHEAP))
    names = {arm.name for arm in arms(model=True)}
    assert set(table) == names | {"foresight ngram", "foresight draft", "foresight both"}
    assert all(list(row) == ["code", "poems"] for row in table.values())
    assert table["draft:4"]["code"] > 1.5
    assert table["draft:4"]["poems"] < 0.7
    assert table["foresight draft"]["poems"] == pytest.approx(1.0)


def test_without_a_draft_model_no_arm_asks_for_one() -> None:
    assert not any(arm.needs_model for arm in arms(model=False))
    table = by_category(explore([recorded([7, 8, 9] * 20)], usual))
    assert "foresight both" not in table
    assert table["auto"] == table["ngram"]
    assert table["ngram"]["test"] > 1.5


def test_a_category_is_judged_by_the_time_of_all_its_answers() -> None:
    slow = replace(HARD, category="code")
    both = explore([EASY, slow], usual, CHEAP)
    plain_s, seconds = (59 + 29) * T1, sum(one.seconds["draft:4"] for one in both)
    assert by_category(both)["draft:4"]["code"] == pytest.approx(plain_s / seconds)


def test_no_arm_takes_less_time_than_the_bound() -> None:
    found = explore([EASY, HARD], usual, CHEAP)
    total = total_seconds(found)
    assert total["foresight both"] == min(total.values())
    fastest = min(found[0].arms, key=lambda name: found[0].arms[name].seconds)
    assert fastest.startswith("draft:")
    assert found[0].bound.both is not None
    assert 1.5 < found[0].arms[fastest].speedup < found[0].bound.both


def test_an_answer_of_one_token_has_nothing_to_win() -> None:
    one = replace(recorded([5], [True]), category="short")
    assert set(by_category(explore([one], usual, CHEAP))["auto"].values()) == {1.0}
