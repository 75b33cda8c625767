"""Folders that lie about a model are refused in a line, before any work is done for them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from test_folder_header import TOKENS, make, tokenizer

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.folder_header import read_folder
from edgespec.models.identity import fingerprint
from edgespec.models.pairs import resolve

pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "large", layers=4)


def refused(folder: Path, match: str) -> None:
    with pytest.raises((ModelFileError, NotFound), match=match) as caught:
        _ = read_folder(folder).tokens
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 10**9, "text_config": {}},
        {"text_config": {"num_hidden_layers": 10**9}},
        {"text_config": {"text_config": {"num_layers": 10**9}}},
        {"n_layer": 10**9},
        {"n_layers": 1e9},
        {"num_local_experts": 10**9},
        {"n_routed_experts": 10**9},
        {"moe_num_experts": 10**9},
        {"num_loops": float("inf")},
        {"layer_types": ["full_attention"] * 5000},
        {"hybrid_override_pattern": "M" * 5000},
    ],
)
def test_more_layers_or_experts_than_any_model_has_are_refused_under_every_name(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    refused(make(tmp_path / "many", **config), "more than 4096|a number up to 4096")


def test_sizes_that_sound_like_counts_of_layers_are_none(tmp_path: Path) -> None:
    many = {"vocab_size_per_layer_input": 262144, "hidden_size_per_layer_input": 8192}
    assert read_folder(make(tmp_path / "good", **many)).architecture == "llama"


def test_a_name_of_a_million_letters_is_not_searched(tmp_path: Path) -> None:
    config = {"num_" * 500_000: 10**9}
    assert read_folder(make(tmp_path / "long", **config)).architecture == "llama"


def test_a_vocabulary_larger_than_any_is_refused_and_not_made(tmp_path: Path) -> None:
    refused(make(tmp_path / "config", vocab_size=10**9), "vocab_size is 1000000000")
    folder = make(tmp_path / "tokens")
    values = tokenizer(*TOKENS)
    values["model"]["vocab"]["far away"] = 10**7
    (folder / "tokenizer.json").write_text(json.dumps(values))
    refused(folder, "far away makes no sense")


@pipes
@pytest.mark.parametrize("name", ["model-2.safetensors", "hf_quant_config.json"])
def test_a_pipe_that_a_loader_would_open_is_refused(folder: Path, name: str) -> None:
    os.mkfifo(folder / name)
    refused(folder, f"{name}: it is no file")


@pytest.mark.parametrize("text", ["[" * 100_000, "x" * (5 << 20), "{"])
def test_a_second_description_of_the_weights_is_checked_too(folder: Path, text: str) -> None:
    (folder / "hf_quant_config.json").write_text(text)
    refused(folder, r"hf_quant_config\.json")


@pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")
def test_a_link_that_leads_nowhere_is_no_part_of_a_model(folder: Path) -> None:
    before = fingerprint(folder)
    (folder / "notes.json").symlink_to(folder / "gone")
    assert fingerprint(folder) == before


@pipes
def test_a_folder_of_weights_says_that_its_config_is_missing(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(NotFound, match=r"config\.json is missing"):
        resolve(str(folder), None, None)
    os.mkfifo(folder / "config.json")
    with pytest.raises(ModelFileError, match=r"config\.json: it is no file"):
        resolve(str(folder), None, None)
