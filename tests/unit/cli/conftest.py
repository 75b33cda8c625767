"""A command line with a scripted model behind it, away from the user's own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_fakes import FakeModel
from click.testing import CliRunner, Result

from edgespec.cli.root import edgespec

Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("EDGESPEC_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("edgespec.cli.doctor.gpus", tuple)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The hub's cache, empty, and no other folders of models; `edgespec rm` deletes there."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for module in ("found", "deleting"):
        monkeypatch.setattr(f"edgespec.models.{module}.hub_cache", lambda: tmp_path / "hub")
    return tmp_path / "hub"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> FakeModel:
    fake = FakeModel()
    monkeypatch.setattr("edgespec.api.load", fake.load)
    return fake


@pytest.fixture
def cli(model: FakeModel) -> Cli:
    """Runs a command in this process, the scripted model in place of a real one."""

    def run(*arguments: str, **extra: object) -> Result:
        return CliRunner().invoke(edgespec, list(arguments), **extra)  # type: ignore[arg-type]

    return run


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[str]]:
    """Starts a command as a process of its own; `script` names the model's script."""

    def popen(script: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("cli_fakes.py")), *arguments],
            encoding="utf-8",
            env={**os.environ, "FAKE_SCRIPT": script},
            **{**pipes, **options},
        )

    return popen
