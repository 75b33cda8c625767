"""From records to figures: medians, ratios, sums, and nothing where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_fakes import CHAT, CODE, answered

from edgespec.bench.arms import Answered
from edgespec.bench.figures import Results, Rounds, Spread
from edgespec.bench.runner import Comparison, Outcome, Plan, Record
from edgespec.bench.tables import NOTHING, by_category, cost, positions, sameness, speedups
from edgespec.decoding.stats import Stats

STATS = Stats(
    0.0,
    completion_tokens=20,
    rounds=10,
    drafted=30,
    tested=20,
    accepted=10,
    tested_at=(10, 6, 4),
    accepted_at=(6, 3, 1),
    draft_s=0.1,
    verify_s=0.8,
    overhead_s=0.1,
)


def _outcome(*told: tuple[int, str, str, Answered], yardstick: str = "none") -> Outcome:
    """told: run, category, arm, answer; one prompt for each category."""
    arms = list(dict.fromkeys(arm for _, _, arm, _ in told))
    records = [Record(run, category, category, 0, arm, a) for run, category, arm, a in told]
    return Outcome(Plan((CHAT, CODE), yardstick=yardstick), arms, records)


def _speeds(*told: tuple[int, str, str, float | None], yardstick: str = "none") -> Results:
    rows = [(run, category, arm, answered(speed)) for run, category, arm, speed in told]
    return Results(_outcome(*rows, yardstick=yardstick))


def test_a_ratio_is_to_the_same_prompt_in_the_same_run() -> None:
    results = _speeds(
        (0, "chat", "none", 10.0), (0, "chat", "auto", 20.0),
        (1, "chat", "none", 40.0), (1, "chat", "auto", 40.0),
        (2, "chat", "none", 10.0), (2, "chat", "auto", 15.0),
    )  # fmt: skip
    assert results.figures("auto", "chat").ratio == Spread(1.5, 1.0, 2.0, 3)
    assert results.figures("auto", "chat").speed == Spread(20.0, 15.0, 40.0, 3)
    assert results.figures("none", "chat").ratio == Spread(1.0, 1.0, 1.0, 3)


def test_another_yardstick_gives_other_ratios() -> None:
    results = _speeds(
        (0, "chat", "none", 10.0), (0, "chat", "plain-loop", 20.0), yardstick="plain-loop"
    )  # fmt: skip
    assert results.ratio("none", "chat") == 0.5


def test_the_mean_over_categories_is_geometric() -> None:
    results = _speeds(
        (0, "chat", "none", 10.0), (0, "chat", "auto", 10.0),
        (0, "code", "none", 10.0), (0, "code", "auto", 40.0),
    )  # fmt: skip
    assert results.mean_ratio("auto") == pytest.approx(2.0)
    assert results.best("code") == "auto"
    assert results.best(None) == "auto"


def test_a_category_that_was_not_measured_leaves_no_mean() -> None:
    results = _speeds(
        (0, "chat", "none", 10.0), (0, "chat", "auto", 10.0), (0, "code", "none", 10.0)
    )  # fmt: skip
    assert results.mean_ratio("auto") is None
    assert results.figures("auto", "code").speed is None
    cell = speedups(results, {}).rows[1][2]
    assert cell == NOTHING


def test_an_answer_too_short_to_time_counts_for_nothing() -> None:
    results = _speeds(
        (0, "chat", "none", None), (0, "chat", "auto", 20.0),
        (1, "chat", "none", 10.0), (1, "chat", "auto", 20.0),
    )  # fmt: skip
    assert results.figures("auto", "chat").ratio == Spread(2.0, 2.0, 2.0, 1)
    assert results.figures("none", "chat").answers == 2


def test_rounds_are_summed_before_they_are_divided() -> None:
    other = replace(STATS, completion_tokens=40, rounds=10, tested_at=(10,), accepted_at=(10,))
    rounds = Rounds.of([STATS, other])
    assert rounds is not None
    assert rounds.tokens_per_round == 3.0
    assert rounds.tested_at == (20, 6, 4)
    assert rounds.accepted_at == (16, 3, 1)
    assert rounds.acceptance_rate == 0.5
    assert (rounds.draft_ms, rounds.verify_ms) == (pytest.approx(10.0), pytest.approx(80.0))
    assert rounds.shares == pytest.approx((0.1, 0.8, 0.1))


def test_arms_of_other_loops_have_no_rounds() -> None:
    assert _speeds((0, "chat", "plain-loop", 10.0)).figures("plain-loop").rounds is None


def test_gaps_of_all_answers_make_one_distribution() -> None:
    slow = replace(answered(1.0), gaps_s=(0.9,) * 98)
    results = Results(_outcome((0, "chat", "none", answered(1.0)), (1, "chat", "none", slow)))
    assert results.figures("none").gap_p50_s == pytest.approx(0.9)
    single = Results(_outcome((0, "chat", "none", replace(slow, gaps_s=()))))
    assert single.figures("none").gap_p50_s is None


def test_the_wait_for_a_first_token_or_sentence_is_that_of_a_cold_prompt() -> None:
    """In later turns of a conversation some arms find their cache warm, and others none."""
    cold, warm = (
        replace(answered(10.0), first_token_s=s, first_sentence_s=2 * s) for s in (1.0, 0.1)
    )
    outcome = _outcome((0, "chat", "auto", cold), (0, "chat", "auto", warm))
    outcome.records[1] = replace(outcome.records[1], turn=1)
    figures = Results(outcome).figures("auto")
    assert figures.first_token_s == Spread(1.0, 1.0, 1.0, 1)
    assert figures.first_sentence_s == Spread(2.0, 2.0, 2.0, 1)
    assert figures.speed == Spread(10.0, 10.0, 10.0, 2)


def test_the_plain_arm_is_unsteady_when_its_runs_differ() -> None:
    assert _speeds((0, "chat", "none", 10.0)).unsteadiness is None
    steady = _speeds((0, "chat", "none", 10.0), (1, "chat", "none", 11.0))
    assert not steady.unsteady
    busy = _speeds((0, "chat", "none", 10.0), (1, "chat", "none", 13.0))
    assert busy.unsteadiness == pytest.approx(3.0 / 11.5)
    assert busy.unsteady


def test_the_share_of_same_answers_and_the_margins_between_the_others() -> None:
    outcome = _outcome((0, "chat", "none", answered(1.0)), (0, "chat", "auto", answered(1.0)))
    (_, record) = outcome.records
    outcome.comparisons = [Comparison(record), Comparison(record, 4, 0.02), Comparison(record, 9)]
    told = Results(outcome).figures("auto").sameness
    assert told is not None
    assert (told.compared, told.same) == (3, 1)
    assert told.margins == Spread(0.02, 0.02, 0.02, 1)
    assert sameness(Results(outcome)).rows == (("auto", "1 of 3", "0.02 (0.02-0.02)"),)


def test_the_best_of_each_row_is_marked_and_more_columns_have_their_place() -> None:
    results = _speeds(
        (0, "chat", "none", 10.0), (0, "chat", "auto", 9.0), (0, "chat", "draft:4", 12.0),
        (0, "code", "none", 10.0), (0, "code", "auto", 9.0), (0, "code", "draft:4", 8.0),
    )  # fmt: skip
    table = speedups(results, {"with foresight": {"chat": 2.0}})
    assert table.head == ("category", "none, tokens/s", "auto", "draft:4", "with foresight")
    assert table.rows[0] == ("chat", "10.0", "0.90", "1.20", "2.00")
    assert table.rows[1][-1] == NOTHING
    assert table.best == {(0, 3)}, "on code, nothing beat the yardstick"


def test_positions_show_only_what_was_tested() -> None:
    answer = replace(answered(1.0), stats=STATS)
    table = positions(Results(_outcome((0, "chat", "draft:3", answer))))
    assert table.rows == (("draft:3", "60% of 10", "50% of 6", "25% of 4"),)


def test_widths_that_were_never_timed_have_no_cost() -> None:
    table = cost({1: 0.01, 4: 0.02}, 156, {1: 3, 7: 2})
    assert table.title == "What a verify pass costs after 156 tokens of text"
    assert table.rows == (
        ("1", "10.00", "1.00", "3"), ("4", "20.00", "2.00", "0"), ("7", "-", "-", "2")
    )  # fmt: skip


def test_a_figure_by_category_has_a_column_for_every_arm() -> None:
    results = _speeds((0, "chat", "none", 10.0), (0, "chat", "auto", 9.0))
    table = by_category(results, "speed", lambda figures: figures.speed)
    assert (table.head, table.rows) == (("category", "none", "auto"), (("chat", "10.00", "9.00"),))
