"""`edgespec train` says what is wrong before it spends a minute."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from safetensors.numpy import save_file
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.cli import train as command
from edgespec.cli.root import edgespec
from edgespec.models.installed import InstalledModel, InstalledPair, record
from edgespec.models.pairs import resolve
from edgespec.models.trained import GGUF_NAME, folder_of, install, name_from


def _train(*arguments: str) -> Result:
    return CliRunner().invoke(edgespec, ["train", *arguments])


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: object())


@pytest.fixture
def target(tiny_models: TinyModels) -> str:
    return str(tiny_models(layers=2))


def test_without_torch_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "torch" else object())
    result = _train("--target", target)
    assert result.exit_code == 1
    assert result.stderr.startswith("edgespec: Training needs torch. Install with: ")


@pytest.mark.usefixtures("all_there")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name the PAIR"),
        (["demo", "--proposer", "ngram"], "leave --proposer out"),
        (["demo", "--time", "0"], "--time"),
        (["demo", "--tokens", "3"], "--tokens"),
        (["--target", "{target}", "--out", "demo"], "the name of another pair"),
        (["--target", "{target}", "--out", "../up"], "no name for a pair"),
        (["--target", "{target}", "--out", "Ab"], "small letters"),
        (["--target", "{target}", "--out", "a.gguf"], "no name for a pair"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else None,
)
def test_what_cannot_work_is_a_usage_error(target: str, arguments: list[str], said: str) -> None:
    result = _train(*(argument.replace("{target}", target) for argument in arguments))
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.usefixtures("all_there")
def test_a_text_that_is_not_there_is_not_found(target: str) -> None:
    result = _train("--target", target, "--data", "none.txt")
    assert result.exit_code == 3
    assert "none.txt" in result.stderr


@pytest.mark.usefixtures("all_there")
def test_a_pulled_pair_keeps_its_name(target: str) -> None:
    model = InstalledModel("a/b", "c0ffee", (Path(target),), 1)
    record(InstalledPair("pulled", "gguf", model, None, 0.0))
    result = _train("--target", target, "--out", "pulled")
    assert result.exit_code == 2
    assert "'pulled' was pulled to this machine" in result.stderr


@pytest.mark.usefixtures("all_there")
def test_a_drafter_of_another_target_of_the_same_name_is_kept(target: str, tmp_path: Path) -> None:
    """As two quantisations of one model are called the same."""
    name = name_from(resolve(None, target, "none").name)
    drafter = folder_of(name) / GGUF_NAME
    drafter.parent.mkdir(parents=True)
    drafter.write_bytes(b"of the first")
    install(name, Path(target))
    other = tmp_path / "other.gguf"
    other.write_bytes(Path(target).read_bytes())
    result = _train("--target", str(other))
    assert result.exit_code == 2
    assert "choose another name with --out" in result.stderr
    assert drafter.read_bytes() == b"of the first"


@pytest.mark.usefixtures("all_there")
def test_a_drafter_gets_no_drafter(target: str, tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    path = write_trimmed(tmp_path / "d.gguf", Path(target), list(range(0, 384, 2)))
    result = _train("--target", str(path))
    assert result.exit_code == 2
    assert "is a drafter itself" in result.stderr


@pytest.mark.usefixtures("all_there")
def test_a_model_that_takes_more_than_the_memory_is_refused(target: str) -> None:
    pytest.importorskip("llama_cpp")
    result = _train("--target", target, "--memory", "0.001")
    assert result.exit_code == 1
    assert "alone takes more than the 0.0 GiB of --memory" in result.stderr


@pytest.mark.usefixtures("all_there")
def test_a_folder_is_no_target_to_gather_from(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 4}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **sizes, **heads}))
    tables = {"model.embed_tokens.weight": np.zeros((4, 8), np.float16)}
    save_file(tables, folder / "model.safetensors")
    result = _train("--target", str(tmp_path / "model"))
    assert result.exit_code == 2
    assert "model is no GGUF file" in result.stderr


def test_help_shows_what_train_uses_and_no_other_flag() -> None:
    told = _train("--help").stdout
    assert "--threads" in told
    assert "--proposer" not in told
    assert "--temperature" not in told
