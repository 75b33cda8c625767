"""`edgespec config`: where settings live, and what holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Cli = Callable[..., Result]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "my.toml"
    monkeypatch.setenv("EDGESPEC_CONFIG", str(path))
    return path


def test_the_path_is_told_whether_or_not_the_file_exists(cli: Cli, tmp_path: Path) -> None:
    result = cli("config", "path")
    assert result.exit_code == 0
    assert result.stdout == f"{tmp_path / 'config' / 'edgespec' / 'config.toml'}\n"


def test_the_variable_moves_the_path(cli: Cli, config: Path) -> None:
    assert cli("config", "path").stdout == f"{config}\n"


def test_every_setting_tells_its_value_and_where_that_comes_from(
    cli: Cli, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.write_text('temperature = 0.2\ntop-k = 5\nseed = 1\nstop = ["a b", "c"]\n')
    monkeypatch.setenv("EDGESPEC_TOP_K", "7")
    told = json.loads(cli("config", "show", "--json", "--seed", "9").stdout)
    assert (told["path"], told["exists"]) == (str(config), True)
    settings = told["settings"]
    assert settings["temperature"] == {"value": 0.2, "source": "config.toml"}
    assert settings["top_k"] == {"value": 7, "source": "EDGESPEC_TOP_K"}
    assert settings["seed"] == {"value": 9, "source": "flag"}
    assert settings["stop"] == {"value": ["a b", "c"], "source": "config.toml"}
    assert settings["proposer"] == {"value": "auto", "source": "default"}
    assert settings["max_tokens"] == {"value": None, "source": "default"}


def test_no_setting_is_left_out(cli: Cli) -> None:
    shown = json.loads(cli("config", "show", "--json").stdout)["settings"]
    flags = cli("run", "--help").stdout
    for name in shown:
        assert f"--{name.replace('_', '-')}" in flags
    assert len(shown) > 20


def test_people_get_one_line_each(cli: Cli, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.write_text("strict = true\n")
    monkeypatch.setenv("EDGESPEC_SYSTEM", "be\x1b[2J brief\nnow")
    lines = cli("config", "show").stdout.splitlines()
    assert lines[0] == f"# {config}"
    rows = {line.split()[0]: line for line in lines[1:]}
    assert rows["strict"].split() == ["strict", "=", "true", "config.toml"]
    assert rows["seed"].split() == ["seed", "=", "(not", "set)", "default"]
    assert rows["system"].endswith("EDGESPEC_SYSTEM")
    assert "\x1b" not in rows["system"]


def test_a_file_that_is_not_there_is_no_error(cli: Cli) -> None:
    result = cli("config", "show")
    assert result.exit_code == 0
    assert "config.toml, which does not exist" in result.stdout.splitlines()[0]


def test_a_wrong_value_is_an_error_that_names_the_file(cli: Cli, config: Path) -> None:
    config.write_text('temperature = "warm"\n')
    result = cli("config", "show")
    assert (result.exit_code, result.stdout) == (2, "")
    assert str(config) in result.stderr
