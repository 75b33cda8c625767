"""What is said of a drafter follows from what it guessed right."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from train_trials import counting

from edgespec.train.report import (
    ALL,
    advice,
    held_out,
    in_target_ids,
    judged,
    learned_from,
    table,
)

RECORDS = [
    replace(counting(n), category="code" if n % 2 else "list", temperature=0.8 * (n > 3))
    for n in range(8)
]


def test_a_drafter_that_is_always_right_has_all_its_guesses_accepted() -> None:
    rows = judged(RECORDS, [record.answer for record in RECORDS])
    best = {(r.source, r.warm, r.category): r.tally for r in rows}
    assert {category for _, _, category in best} == {ALL, "code", "list"}
    for warm in (False, True):
        for category in (ALL, "code", "list"):
            assert best["drafter", warm, category].mean == 4.0
            assert best["n-gram", warm, category].mean < 1.0
    wrong = judged(RECORDS, [record.answer + 1 for record in RECORDS])
    assert all(r.tally.mean == 0 for r in wrong if r.source == "drafter")
    assert best["drafter", False, ALL].rounds == 4 * 40 // 5


def test_the_table_has_a_line_for_each_way_and_a_place_for_each_kind() -> None:
    heading, *lines = table(judged(RECORDS, [record.answer for record in RECORDS]))
    assert heading[-3:] == ("A ROUND", "LIST", "CODE")
    assert [line[0] for line in lines] == [
        f"{source}, temperature {t}"
        for t in ("0", "0.8")
        for source in ("n-gram", "drafter", "n-gram, then drafter")
    ]
    assert {len(line) for line in lines} == {len(heading)}
    assert lines[1][1:] == ("1.00",) * 4 + ("4.00",) * 3


def test_answers_are_held_out_or_learned_from_up_to_a_bound() -> None:
    records = [counting(n, held=n % 2 == 0) for n in range(20)]
    assert [r.held for r in held_out(records, 100)] == [True] * 3
    assert [r.held for r in learned_from(records, 80)] == [False] * 2


@pytest.mark.parametrize(
    ("passes", "curve", "said"),
    [
        (6.0, [], "not known"),
        (1.5, [[3, 2, 3.4, 0.8]], "through the answers 1.5 times, .* more --time"),
        (5.9, [[3, 2, 3.4, 0.8]], "more answers, --tokens"),
        (5.9, [[3, 3.9, 4.0, 0.5]], "more of both"),
    ],
    ids=["nothing", "time", "data", "both"],
)
def test_passes_and_losses_tell_what_was_short(
    passes: float, curve: list[list[float]], said: str
) -> None:
    assert re.search(said, advice(passes, curve))


def test_guesses_are_told_in_the_targets_ids() -> None:
    ids = np.array([4, 9, 30], np.int32)
    assert in_target_ids(np.array([0, 2, 3, 31, 1]), ids).tolist() == [4, 30, -1, -1, 9]
