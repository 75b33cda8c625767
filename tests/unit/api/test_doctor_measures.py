"""`edgespec doctor PAIR --measure`: the cost curve of a loaded pair, and what pays."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tiny_models import TinyModels

from edgespec.cli.root import edgespec


def _doctor(*words: str) -> Result:
    return CliRunner().invoke(edgespec, ["doctor", *words])


def test_measuring_tells_the_curve_and_what_pays(tiny_models: TinyModels, tmp_path: Path) -> None:
    for noise, name in ((0.0, "target"), (0.05, "draft")):
        layers = 2 if name == "target" else 1
        shutil.copy(tiny_models(noise=noise, layers=layers), tmp_path / f"{name}.gguf")
    result = _doctor(str(tmp_path), "--measure")
    assert result.exit_code == 0
    assert re.search(r"Passes    '.*' \(--rule coupled\): (bit-exact|same up to)", result.stdout)
    assert re.search(
        r"a plain pass takes [\d.]+ ms; in such passes, one over 2 tokens", result.stdout
    )
    assert "guesses from the text: " in result.stdout
    assert "a draft model with " in result.stdout
    costs = json.loads(_doctor(str(tmp_path), "--measure", "--json").stdout)["costs"]
    assert set(costs["seconds"]) == {"1", "2", "4", "8", "16", "65"}
    assert costs["guess_s"] > 0


def test_a_busy_machine_is_told_before_anything_else(
    tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llama_cpp")
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("edgespec.measuring.busy", lambda: True)
    data = json.loads(_doctor(str(tiny_models(layers=2)), "--measure", "--json").stdout)["costs"]
    assert data["doubt"].startswith("not to be trusted: other programs")
    assert data["verdict"][0] == data["doubt"]
