"""A table of every way of guessing on recorded answers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recordings import T1, fresh, recorded, usual

from edgespec.bench.explore import (
    arms,
    by_category,
    explore,
    per_answer,
    total_seconds,
    winner,
)
from edgespec.bench.replay import DraftCost, PlainArm

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


def test_the_winner_takes_the_least_time_and_is_no_bound() -> None:
    assert winner(explore([EASY], usual, CHEAP)).startswith("draft:")
    assert winner(explore([HARD], usual, CHEAP, [PlainArm()])) == "plain"
    total = total_seconds(explore([EASY, HARD], usual, CHEAP))
    assert total["foresight both"] < total[winner(explore([EASY, HARD], usual, CHEAP))]


def test_an_answer_of_one_token_has_nothing_to_win() -> None:
    one = replace(recorded([5], [True]), category="short")
    assert set(by_category(explore([one], usual, CHEAP))["auto"].values()) == {1.0}


def test_the_table_has_a_line_for_each_answer_and_a_column_for_each_arm() -> None:
    header, easy, hard = per_answer(explore([EASY, HARD], usual, CHEAP))
    assert len(header) == len(easy) == len(hard)
    assert header.split()[:2] == ["answer", "auto"]
    assert easy.split()[0] == "easy"
    assert float(hard.split()[-1]) == 1.0
