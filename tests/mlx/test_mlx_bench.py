"""`edgespec bench` measures models in folders, and tells what they consist of."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from mlx_folders import write_folder
from tiny_models import TinyModels

from edgespec.cli.root import edgespec

ASKED = ("--backend", "mlx", "--context", "256", "--runs", "1", "--tokens", "8", "--json")


@pytest.mark.parametrize("quick", [False, True], ids=["whole", "quick"])
def test_a_folder_is_told_by_its_files_with_weights(
    tmp_path: Path, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch, quick: bool
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("edgespec.bench.quick.seconds_since_start", lambda: 0.0)
    target = write_folder(tmp_path / "target", tiny_models())
    draft = write_folder(tmp_path / "draft", tiny_models(noise=0.01))
    prompts = tmp_path / "p.jsonl"
    prompts.write_text(json.dumps({"id": "a", "category": "code", "turns": ["def main"]}))
    words = ["bench", "--target", str(target), "--draft", str(draft), "--prompts", str(prompts)]
    result = CliRunner().invoke(edgespec, [*words, *ASKED, *(["--quick"] if quick else [])])
    assert result.exit_code == 0, result.stderr
    files = json.loads(result.stdout)["surroundings"]["files"]
    assert [file["name"] for file in files] == [
        "target/model.safetensors",
        "draft/model.safetensors",
    ]
    for folder, file in zip((target, draft), files, strict=True):
        content = (folder / "model.safetensors").read_bytes()
        assert file["bytes"] == len(content)
        digest = hashlib.sha256(content).hexdigest()
        assert file["sha256"] == (None if quick else digest)
