"""Plans for models that are kept as safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.available import Available
from edgespec.models.folder import needs_of_folder
from edgespec.models.memory import plan

CONFIG: dict[str, Any] = {
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 2048,
}
BF16 = {
    "model.embed_tokens.weight": ("BF16", [100, 64]),
    "model.layers.0.self_attn.q_proj.weight": ("BF16", [64, 64]),
    "model.layers.1.mlp.experts.0.up_proj.weight": ("BF16", [128, 64]),
    "lm_head.weight": ("BF16", [100, 64]),
}
SIZES = {"BF16": 2, "U32": 4, "F32": 4}


def write(file: Path, tensors: dict[str, tuple[str, list[int]]], **wrong: Any) -> None:
    entries: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    start = 0
    for name, (kind, shape) in tensors.items():
        end = start + SIZES[kind] * shape[0] * shape[1]
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, end]} | wrong
        start = end
    text = json.dumps(entries).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * start)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    first, second = dict(list(BF16.items())[:2]), dict(list(BF16.items())[2:])
    write(tmp_path / "model-00001-of-00002.safetensors", first)
    write(tmp_path / "model-00002-of-00002.safetensors", second)
    return tmp_path


def test_all_files_of_the_folder_count(folder: Path) -> None:
    needs = needs_of_folder(folder)
    assert needs.parameters == 2 * 6400 + 4096 + 8192
    assert needs.weight_bytes == 2 * needs.parameters
    assert (needs.input_bytes, needs.output_bytes) == (12800, 12800)
    assert [x.weight_bytes for x in needs.layers] == [8192, 16384]
    assert [x.expert_bytes for x in needs.layers] == [0, 16384]
    assert needs.trained_context == 2048


def test_the_plan_is_made_as_for_any_other_model(folder: Path) -> None:
    needs = needs_of_folder(folder)
    needed = plan(needs, needs, 1024, "f16")
    assert needed.shares(gpu=False)[0].cache == 2 * (2 * 2 * 2 * 16 * 1024 * 2)
    assert needed.fits(Available(1 << 30))


def test_quantised_weights_hold_more_parameters_than_numbers(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"quantization": {"bits": 4}}))
    name = "model.layers.0.mlp.up_proj"
    write(
        tmp_path / "model.safetensors",
        {f"{name}.weight": ("U32", [128, 8]), f"{name}.scales": ("BF16", [128, 1])},
    )
    assert needs_of_folder(tmp_path).parameters == 128 * 64


def test_the_language_part_of_a_larger_model_is_read(folder: Path) -> None:
    kinds = ["linear_attention", "full_attention"]
    text = CONFIG | {"head_dim": 32, "layer_types": kinds}
    (folder / "config.json").write_text(json.dumps({"text_config": text}))
    assert [x.keys for x in needs_of_folder(folder).layers] == [0, 64]


def test_what_is_missing_is_named(tmp_path: Path, folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(NotFound, match=r"config\.json is missing"):
        needs_of_folder(folder)
    (folder / "config.json").write_text("{}")
    for file in folder.glob("*.safetensors"):
        file.unlink()
    with pytest.raises(NotFound, match="no safetensors file"):
        needs_of_folder(folder)


@pytest.mark.parametrize(
    "text", ["[]", "no", '{"num_hidden_layers": -1}', '{"num_hidden_layers": 99999}', "[" * 99999]
)
def test_a_config_that_makes_no_sense_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"config\.json"):
        needs_of_folder(folder)


@pytest.mark.parametrize(
    "wrong",
    [
        {"data_offsets": [0, 1 << 40]},
        {"data_offsets": [10, 5]},
        {"data_offsets": "all"},
        {"shape": [-1, 2]},
        {"dtype": 3},
    ],
)
def test_a_header_that_lies_is_refused(folder: Path, wrong: dict[str, Any]) -> None:
    write(folder / "model-00001-of-00002.safetensors", BF16, **wrong)
    with pytest.raises(ModelFileError, match="makes no sense"):
        needs_of_folder(folder)


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, b"\x02" + b"\0" * 7 + b"[]", b"\2" * 9])
def test_a_file_that_is_no_safetensors_is_refused(folder: Path, content: bytes) -> None:
    (folder / "model-00001-of-00002.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match="download it again"):
        needs_of_folder(folder)
