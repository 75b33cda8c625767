"""`edgespec bench --explore`: what is replayed says what is measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from recordings import T1, fresh, recorded, usual
from tiny_models import TinyModels

from edgespec.bench.arms import speculation
from edgespec.bench.explore import explore
from edgespec.bench.predicting import MOST_ARMS, Predicted
from edgespec.cli.root import edgespec
from edgespec.planning.model_source import DraftCost

Bench = Callable[..., Result]
CHEAP = DraftCost(guess_s=0.1 * T1, read_s=0.0)
EASY = replace(recorded(fresh(60), [True] * 60), category="code")
HARD = replace(recorded(fresh(60), [False] * 60), category="poems")


def test_the_winners_are_measured_beside_none_and_auto() -> None:
    arms = Predicted(tuple(explore([EASY, HARD], usual, CHEAP))).arms
    assert arms[:2] == ("none", "auto")
    assert any(name.startswith("draft:") for name in arms[2:])
    assert len(arms) <= MOST_ARMS


@pytest.mark.parametrize("model", [True, False])
@pytest.mark.parametrize("trees", [True, False])
def test_whatever_wins_by_replaying_is_an_arm_that_can_be_measured(
    model: bool, trees: bool
) -> None:
    one = explore([EASY], usual, CHEAP if model else None, trees=trees)[0]
    for name in one.arms:
        others = {other: replace(told, seconds=9e9) for other, told in one.arms.items()}
        best = replace(one, arms=others | {name: replace(one.arms[name], seconds=1e-9)})
        handed_on = Predicted((best,)).arms
        assert name in handed_on
        for arm in handed_on:
            speculation(arm)


def test_without_a_draft_model_the_ngram_is_what_auto_measures() -> None:
    repeating = recorded([5, 6, 7] * 30)
    arms = Predicted(tuple(explore([repeating], usual))).arms
    assert "ngram" not in arms
    assert not any(name.startswith("draft") for name in arms)


def test_every_category_has_one_best_arm_in_the_table_and_it_is_no_bound() -> None:
    table = Predicted(tuple(explore([EASY, HARD], usual, CHEAP))).table()
    assert table.head == ("arm", "code", "poems")
    assert sorted(column for _, column in table.best) == [1, 2]
    assert not any(table.rows[row][0].startswith("foresight") for row, _ in table.best)


@pytest.fixture
def bench(tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    pytest.importorskip("llama_cpp")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "Tell me.", "category": "chat"}\n')
    pair = [
        "--target",
        str(tiny_models(layers=2)),
        "--draft",
        str(tiny_models(layers=2, noise=0.03)),
    ]

    def run(*arguments: str) -> Result:
        shared = ["--threads", "1", "--context", "256", "--tokens", "16", "--runs", "1"]
        command = ["bench", *pair, *shared, "--prompts", str(prompts), *arguments]
        return CliRunner().invoke(edgespec, command)

    return run


def test_bench_explores_and_puts_the_bound_beside_what_it_measures(bench: Bench) -> None:
    result = bench("--explore", "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert {"none", "auto"} <= set(told["arms"])
    assert len(told["arms"]) <= MOST_ARMS
    assert told["extra"]["foresight both"]["chat"] >= 0.99
    assert "auto, replayed" in told["extra"]


def test_people_see_the_replayed_table_first(bench: Bench) -> None:
    text = bench("--explore").stdout
    assert text.index("Replayed: speed") < text.index("Decode speed, times none")


@pytest.mark.parametrize(
    "other", [["--arms", "none"], ["--quick"], ["--temperature", "1"]], ids=lambda o: o[0]
)
def test_explore_does_not_go_with_what_it_decides(bench: Bench, other: list[str]) -> None:
    result = bench("--explore", *other)
    assert result.exit_code == 2
    assert f"leave {'--arms and --quick' if '--temperature' not in other else '--temperature'}" in (
        result.stderr
    )
