"""`edgespec tune` without a file replays what was really said here, where that is enough."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tiny_models import TinyModels

from edgespec.cli.root import edgespec
from edgespec.history import History, State
from edgespec.history.place import history_path

Tune = Callable[..., Result]
SAYING = "the model wrote one word after the other, then "


@pytest.fixture(autouse=True)
def away_from_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def tune(tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch) -> Tune:
    """Replays with a tiny model; where it falls back on edgespec's prompts, those are none."""
    monkeypatch.setattr("edgespec.bench.prompts.shipped", tuple)
    target = str(tiny_models(layers=2))

    def run(*arguments: str) -> Result:
        shared = ["tune", "--target", target, "--threads", "1", "--context", "256", "--dry-run"]
        return CliRunner().invoke(edgespec, [*shared, *arguments])

    return run


def talk(conversations: int) -> None:
    """Conversations with one answer each."""
    with closing(History.open()) as history:
        for number in range(conversations):
            conversation = history.new()
            conversation.say(f"Say {number}.")
            begun = conversation.begin_answer("m", 1)
            conversation.finish(begun.id, SAYING * 3, (), State.WHOLE, {})


def test_the_last_conversations_stand_in_for_a_file(tune: Tune) -> None:
    talk(12)
    result = tune("--json")
    assert result.exit_code == 0, result.stderr
    assert "note: your last conversations are replayed; --file takes others" in result.stderr
    assert json.loads(result.stdout)["basis"] == "12 answers to your last conversations"
    fewer = json.loads(tune("--json", "--answers", "2").stdout)
    assert fewer["basis"] == "2 answers to your last conversations"


def test_a_few_answers_are_too_few(tune: Tune) -> None:
    talk(11)
    result = tune("--json")
    assert "the prompts that come with edgespec stand in" in result.stderr
    assert "No answer to tune on" in result.stderr


def test_where_there_is_no_history_none_is_made(tune: Tune) -> None:
    assert "the prompts that come with edgespec stand in" in tune("--json").stderr
    assert not history_path().exists()


def test_a_history_that_cannot_be_used_is_told_of_and_stops_nothing(tune: Tune) -> None:
    talk(12)
    with closing(sqlite3.connect(history_path())) as connection:
        connection.execute("PRAGMA user_version = 99")
    told = tune("--json").stderr
    assert "written by a newer edgespec" in told
    assert "the prompts that come with edgespec stand in" in told
