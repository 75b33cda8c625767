"""Folders whose parts do not fit are refused in one line, whatever mlx-lm trips over."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlx_folders import change_json, write_folder
from tiny_models import TinyModels

import edgespec
from edgespec.backends import Placement
from edgespec.errors import EdgespecError, ModelFileError
from edgespec.models.folder_header import read_folder
from edgespec_mlx import MlxBackend
from edgespec_mlx.weights import check_first_pass, load_weights, plainly_named

CPU = Placement()


@pytest.fixture
def folder(tmp_path: Path, tiny_models: TinyModels) -> Path:
    return write_folder(tmp_path / "tiny", tiny_models())


def refused(folder: Path, match: str) -> None:
    with pytest.raises(EdgespecError, match=match) as caught:
        MlxBackend.load(folder, CPU)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"num_attention_heads": 0},
        {"num_attention_heads": 10**9},
        {"hidden_size": 0},
        {"rms_norm_eps": "small"},
        {"rope_theta": "wide"},
        {"rope_scaling": "much"},
        {"rope_scaling": {"type": "linear", "factor": 0}},
        {"rope_scaling": {"type": "llama3"}},
        {"layer_types": 5},
        {"quantization": "4bit"},
        {"quantization_config": {"quant_method": "awq"}},
    ],
    ids=str,
)
def test_whatever_a_models_code_trips_over_is_told_in_one_line(
    folder: Path, change: dict[str, Any]
) -> None:
    change_json(folder / "config.json", **change)
    refused(folder, "does not make a 'llama' model: .* do not belong together")


def rewrite_header(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a safetensors header and leave what is behind it."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    entries = json.loads(content[8 : 8 + length])
    change(entries)
    text = json.dumps(entries).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def test_weights_that_are_no_floats_are_told_before_a_session_is_opened(folder: Path) -> None:
    def integers(entries: dict[str, Any]) -> None:
        for name, entry in entries.items():
            if name != "__metadata__":
                entry["dtype"] = "I32"

    rewrite_header(folder / "model.safetensors", integers)
    refused(folder, "int32")


def test_a_tensor_whose_name_paints_is_shown_as_text(folder: Path) -> None:
    def painted(entries: dict[str, Any]) -> None:
        entries["../\x1b[31mred"] = entries["model.norm.weight"]

    rewrite_header(folder / "model.safetensors", painted)
    refused(folder, r"not in model: \.\./")


def test_a_template_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    os.mkfifo(folder / "chat_template.jinja")
    model = MlxBackend.load(folder, CPU)
    assert model.tokenizer.template() is None
    model.close()


@pytest.mark.parametrize("name", ["tiny [v2]", "tiny*", "what?"])
def test_a_folder_may_be_called_by_a_pattern(folder: Path, tmp_path: Path, name: str) -> None:
    odd = folder.rename(tmp_path / name)
    with edgespec.load(str(odd), backend="mlx", context=128, tuned=False) as model:
        assert model.generate("the user", max_tokens=3, temperature=0.0).token_ids


def test_a_folder_with_a_usual_name_is_opened_under_it(folder: Path) -> None:
    with plainly_named(folder) as same:
        assert same == folder


def test_a_model_that_scores_fewer_tokens_than_its_files_tell_of_is_refused(folder: Path) -> None:
    header = read_folder(folder)
    module = load_weights(header, guesses_only=False).module
    check_first_pass(module, header, 384)
    with pytest.raises(ModelFileError, match="it scores 384 tokens where its files tell of 385"):
        check_first_pass(module, header, 385)


def test_a_family_that_mlx_lm_lacks_is_told_from_a_config_that_is_wrong(folder: Path) -> None:
    change_json(folder / "config.json", model_type="no_such_model")
    with pytest.raises(ModelFileError, match="the installed mlx-lm does not run; update"):
        MlxBackend.load(folder, CPU)
    change_json(folder / "config.json", model_type="llama", rope_scaling=[1])
    with pytest.raises(ModelFileError, match="do not belong together"):
        MlxBackend.load(folder, CPU)


def change_tokenizer(folder: Path, **changes: Any) -> None:
    change_json(folder / "tokenizer.json", **changes)


def replacing(*texts: str) -> dict[str, Any]:
    """A normalizer of rules that put these texts in place of each letter."""
    rules = [{"type": "Replace", "pattern": {"Regex": "."}, "content": text} for text in texts]
    return {"type": "Sequence", "normalizers": rules}


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "no tokenizer"),
        (
            {"model": {"type": "Unigram", "vocab": [["q", -1.0]], "unk_id": None}},
            "no tokenizer",
        ),
        ({"model": {"type": "BPE", "vocab": {}, "merges": []}}, "reads every text as nothing"),
        ({"normalizer": replacing(*["ten letter"] * 9)}, "times as long"),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replacing("ten letter" * 30)]}},
            "times as long",
        ),
    ],
)
def test_a_tokenizer_that_would_fail_over_the_first_text_is_refused(
    folder: Path, changes: dict[str, Any], match: str
) -> None:
    change_tokenizer(folder, added_tokens=[], **changes)
    refused(folder, f"tokenizer.json: it.*{match}")


def test_rules_that_spell_spaces_are_no_bomb(folder: Path) -> None:
    usual = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
    change_tokenizer(folder, normalizer={"type": "Sequence", "normalizers": [usual] * 12})
    MlxBackend.load(folder, CPU).close()


def test_a_rule_that_gets_lost_in_a_text_is_told_and_not_a_panic(folder: Path) -> None:
    endless = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated"}
    change_tokenizer(folder, pre_tokenizer={**endless, "invert": False})
    model = MlxBackend.load(folder, CPU)
    with pytest.raises(ModelFileError, match="retry-limit") as caught:
        model.tokenizer.encode("x" * 60, special=False)
    assert "\n" not in str(caught.value)
    model.close()
