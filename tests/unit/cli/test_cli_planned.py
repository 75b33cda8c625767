"""`edgespec doctor PAIR`: whether a pair fits, without loading it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pair_fakes import pulled
from tiny_models import TinyModels

from edgespec import loading
from edgespec.backends import DeviceMemory
from edgespec.cli.planned import planned
from edgespec.errors import EdgespecError, NotFound
from edgespec.models.installed import mark_used, record, used_names
from edgespec.options import LoadOptions

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
    plan = planned((target, None, None), LoadOptions(context=1 << 20), ())
    assert not plan.fits
    assert plan.lines[-1].endswith("too little")
    assert "--context 512" in plan.help
    assert planned((target, None, None), LoadOptions(context=512), ()).fits


def test_a_gpu_is_a_memory_of_its_own(target: str) -> None:
    gpu = DeviceMemory(1 << 30, unified=False)
    lines = planned((target, None, None), LoadOptions(), (gpu,)).lines
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
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    for usual in (None, "nowhere"):
        monkeypatch.setattr("edgespec.cli.usual.usual_pair", lambda usual=usual: usual)
        result = cli("doctor", "--json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["plan"] is None


def test_a_pair_that_is_asked_about_is_not_used(cli: Cli, target: str) -> None:
    record(pulled("pair-a", Path(target)))
    record(pulled("pair-b", Path(target)))
    mark_used("pair-a")
    assert cli("doctor", "pair-b").exit_code == 0
    assert used_names() == ("pair-a",)


def test_the_plan_is_for_what_the_settings_ask_for(
    cli: Cli, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_TARGET", target)
    monkeypatch.setenv("EDGESPEC_CONTEXT", "65536")

    def cache_of(*words: str) -> str:
        (line, *_) = json.loads(cli("doctor", *words, "--json").stdout)["plan"]["lines"]
        return str(line).partition(" of weights, ")[2].partition(" of cache for 65536 tokens")[0]

    assert cache_of() == "64 MiB"
    monkeypatch.setenv("EDGESPEC_KV_TYPE", "f32")
    assert cache_of() == "128 MiB"
    assert cache_of("--kv-type", "q8_0") == "34 MiB"


def test_what_a_fit_changes_is_told_with_the_plan(
    cli: Cli, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "available_memory", lambda: 128 * MIB)
    monkeypatch.setenv("EDGESPEC_FIT", "1")
    plan = json.loads(cli("doctor", target, "--context", "1048576", "--json").stdout)["plan"]
    assert plan["fits"]
    assert plan["context"] < 1048576
    assert plan["lines"][-1].startswith(f"with --fit: a context of {plan['context']} tokens")


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--temperature", "1"], 2, "doctor asks the model nothing; leave --temperature out."),
        (["--target", "none.gguf"], 3, "none.gguf"),
        (["--draft", "none.gguf"], 3, "none.gguf"),
        (["demo", "--target", "x"], 2, "name a model; give one"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_flag_that_cannot_count_is_told(
    cli: Cli, arguments: list[str], code: int, told: str
) -> None:
    result = cli("doctor", *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr


def test_what_is_measured_is_what_the_settings_load(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[LoadOptions] = []

    def load(*_: object, options: LoadOptions, **__: object) -> None:
        seen.append(options)
        raise EdgespecError("That is enough.")

    monkeypatch.setattr("edgespec.api.load", load)
    monkeypatch.setenv("EDGESPEC_THREADS", "1")
    monkeypatch.setenv("EDGESPEC_BACKEND", "llamacpp")
    assert "That is enough." in cli("doctor", "demo", "--measure", "--context", "300").stderr
    assert seen == [LoadOptions(backend="llamacpp", threads=1, context=300)]


def test_nothing_is_loaded_unasked(cli: Cli, target: str) -> None:
    assert "Passes" not in cli("doctor", target).stdout
    assert json.loads(cli("doctor", target, "--json").stdout)["costs"] is None
