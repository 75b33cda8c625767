"""`edgespec doctor PAIR`: whether a pair fits, without loading it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result
from tiny_models import TinyModels

from edgespec import loading
from edgespec.backends import DeviceMemory
from edgespec.cli.planned import planned, planned_usually
from edgespec.errors import NotFound

Cli = Callable[..., Result]
MIB = 1 << 20


@pytest.fixture
def target(tiny_models: TinyModels) -> str:
    return str(tiny_models(width=128))


def test_a_pair_that_fits_is_told_by_model_and_by_memory(cli: Cli, target: str) -> None:
    result = cli("doctor", target)
    assert result.exit_code == 0
    assert "with a context of 512 tokens" in result.stdout
    assert "  target: 3 MiB of weights, 0 MiB of cache for 512 tokens, " in result.stdout
    assert "  main memory: " in result.stdout


def test_a_pair_that_does_not_fit_comes_with_what_helps(
    target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "available_memory", lambda: 64 * MIB)
    plan = planned(target, 1 << 20, ())
    assert not plan.fits
    assert plan.lines[-1].endswith("too little")
    assert "--context 512" in plan.help
    assert planned(target, 512, ()).fits


def test_a_gpu_is_a_memory_of_its_own(target: str) -> None:
    lines = planned(target, None, (DeviceMemory(1 << 30, unified=False),)).lines
    assert [line.split(":")[0] for line in lines[-2:]] == ["main memory", "GPU memory"]


def test_json_has_the_plan(cli: Cli, target: str) -> None:
    plan = json.loads(cli("doctor", target, "--context", "1024", "--json").stdout)["plan"]
    assert (plan["context"], plan["fits"], plan["help"]) == (1024, True, "")
    assert len(plan["lines"]) == 2


def test_a_pair_that_is_not_there_is_an_error(cli: Cli) -> None:
    result = cli("doctor", "nowhere")
    assert result.exit_code == NotFound.exit_code
    assert "nowhere" in result.stderr


def test_nothing_is_planned_where_no_pair_is_here_or_it_is_damaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgespec.cli.usual.usual_pair", lambda: None)
    assert planned_usually(None, ()) is None
    monkeypatch.setattr("edgespec.cli.usual.usual_pair", lambda: "nowhere")
    assert planned_usually(None, ()) is None


def test_nothing_is_loaded_unasked(cli: Cli, target: str) -> None:
    assert "Passes" not in cli("doctor", target).stdout
    assert json.loads(cli("doctor", target, "--json").stdout)["costs"] is None
