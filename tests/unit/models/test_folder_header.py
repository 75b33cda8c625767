"""Models in folders: what their files say, and which of them are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from gguf_bytes import vocabulary
from test_fit_folder import BF16, CONFIG, write

from edgespec.errors import BadInput, IncompatiblePair, ModelFileError, NotFound
from edgespec.models.compat import check_vocabularies
from edgespec.models.folder_header import read_folder
from edgespec.models.identity import fingerprint
from edgespec.models.model_header import header_of
from edgespec.models.pairs import resolve
from edgespec.models.split import read_model
from edgespec.models.vocabulary import TokenType

TOKENS = ["a", "b", "ab", "<|end|>"]


def tokenizer(*tokens: str, **more: Any) -> dict[str, Any]:
    """A tokenizer.json whose last token is added."""
    *own, added = tokens
    return {
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "vocab": {text: n for n, text in enumerate(own)}},
        "added_tokens": [{"id": len(own), "content": added, "special": False}],
        **more,
    }


def make(folder: Path, layers: int = 2, tokens: list[str] | None = None, **config: Any) -> Path:
    folder.mkdir(parents=True)
    values = CONFIG | {"model_type": "llama", "num_hidden_layers": layers, "vocab_size": 8} | config
    (folder / "config.json").write_text(json.dumps(values))
    tensors = dict(BF16)
    for n in range(2, layers):
        tensors[f"model.layers.{n}.mlp.up_proj.weight"] = ("BF16", [128, 64])
    write(folder / "model.safetensors", tensors)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(*(tokens or TOKENS))))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make(tmp_path / "large", layers=4)


def test_a_folder_is_described_like_a_file(folder: Path) -> None:
    header = header_of(folder)
    assert (header.name, header.kind, header.format) == ("large", "model", "mlx")
    assert (header.architecture, header.context_length) == ("llama", 2048)
    assert header.has_weights
    assert header.file_size == (folder / "model.safetensors").stat().st_size
    assert header.needs().width == 64


def test_its_vocabulary_is_padded_to_what_the_model_scores(folder: Path) -> None:
    header = read_folder(folder)
    assert list(header.tokens[:5]) == [b"a", b"b", b"ab", b"<|end|>", b"[PAD4]"]
    assert header.vocabulary_size == 8
    assert header.token_types.tolist() == [1, 1, 1, TokenType.CONTROL, *[TokenType.UNUSED] * 4]
    assert header.tokenizer == "gpt2"


def test_a_tokenizer_without_bytes_as_letters_is_sentencepiece(folder: Path) -> None:
    values = tokenizer(*TOKENS) | {"decoder": {"type": "ByteFallback"}}
    (folder / "tokenizer.json").write_text(json.dumps(values))
    assert read_folder(folder).tokenizer == "llama"
    values["model"] = {"type": "Unigram", "vocab": [["a", 0.0], ["b", -1.0], ["ab", -2.0]]}
    (folder / "tokenizer.json").write_text(json.dumps(values))
    assert list(read_folder(folder).tokens[:3]) == [b"a", b"b", b"ab"]


def test_recommended_sampling_is_read_and_nonsense_left_out(folder: Path) -> None:
    advice = {"temperature": 0.6, "top_k": 20, "top_p": 7, "repetition_penalty": 1.1, "min_p": "x"}
    (folder / "generation_config.json").write_text(json.dumps(advice))
    assert read_folder(folder).sampler == {"temperature": 0.6, "top_k": 20, "repeat_penalty": 1.1}
    (folder / "generation_config.json").write_text(json.dumps(advice | {"do_sample": False}))
    assert read_folder(folder).sampler == {}


def test_special_tokens_come_from_both_configs(tmp_path: Path) -> None:
    folder = make(tmp_path / "m", bos_token_id=1, eos_token_id=[3, 2])
    assert read_folder(folder).special_token("bos") == 1
    assert read_folder(folder).special_token("eos") == 3
    assert read_folder(folder).special_token("eot") is None
    (folder / "generation_config.json").write_text('{"eos_token_id": 2}')
    assert read_folder(folder).special_token("eos") == 2


def test_a_folder_pairs_with_a_folder_and_with_a_file(folder: Path, tmp_path: Path) -> None:
    small = make(tmp_path / "small", layers=2)
    pair = resolve(None, str(folder), str(small))
    assert (pair.name, pair.target, pair.draft) == ("large", folder, small)
    file = vocabulary(TOKENS).write(tmp_path / "small.gguf")
    assert check_vocabularies(read_folder(folder), read_model(file)).shared == 4
    assert resolve(None, str(folder), str(file)).draft == file
    assert resolve(None, str(file), str(small)).draft == small


def test_ids_that_mean_something_else_are_refused(folder: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", tokens=["b", "a", "ab", "<|end|>"])
    with pytest.raises(IncompatiblePair, match="id 0 is 'a' in the target but 'b' in the draft"):
        resolve(None, str(folder), str(other))


def test_a_folder_twice_is_a_mistake(folder: Path) -> None:
    with pytest.raises(BadInput, match="both target and draft"):
        resolve(None, str(folder), str(folder))


def test_folders_in_a_folder_pair_up(tmp_path: Path) -> None:
    make(tmp_path / "shelf" / "large", layers=4)
    make(tmp_path / "shelf" / "small", layers=2)
    pair = resolve(str(tmp_path / "shelf"), None, None)
    assert pair.target.name == "large"
    assert pair.draft is not None
    assert pair.draft.name == "small"


def test_a_head_that_guesses_for_another_model_is_no_model(tmp_path: Path) -> None:
    head = make(tmp_path / "head", model_type="qwen3_5_mtp")
    with pytest.raises(BadInput, match="of the kind 'mtp', not a language model by itself"):
        resolve(str(head), None, None)


def test_a_fingerprint_changes_with_the_files(folder: Path) -> None:
    before = fingerprint(folder)
    assert fingerprint(folder) == before
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    assert fingerprint(folder) != before


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth"])
def test_pickles_are_never_opened_and_the_line_that_converts_them_is_told(
    folder: Path, name: str
) -> None:
    (folder / "model.safetensors").rename(folder / name)
    with pytest.raises(ModelFileError, match=r"never opened.*save_pretrained") as caught:
        resolve(str(folder), None, None)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_adapter_is_no_model(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelFileError, match=r"an adapter, not a model; .*mlx_lm\.fuse"):
        resolve(str(folder), None, None)


def test_code_that_a_config_names_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"wants code of its own to be run \(evil\.py\)"):
        read_folder(make(tmp_path / "m", model_file="evil.py"))


@pytest.mark.parametrize("value", [None, 3, ""])
def test_a_config_without_a_model_type_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(ModelFileError, match="names no model_type"):
        read_folder(make(tmp_path / "m", model_type=value))


def index(folder: Path, *names: str) -> None:
    entries = {f"weight {n}": name for n, name in enumerate(names)}
    text = json.dumps({"weight_map": entries})
    (folder / "model.safetensors.index.json").write_text(text)


def test_a_shard_that_is_missing_is_named(folder: Path) -> None:
    index(folder, "model.safetensors", "model-00002-of-00002.safetensors")
    with pytest.raises(NotFound, match=r"lacks model-00002-of-00002\.safetensors, which its index"):
        read_folder(folder)


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/x.safetensors", "a\\b.safetensors", "x.bin"]
)
def test_an_index_cannot_lead_out_of_the_folder(folder: Path, name: str) -> None:
    index(folder, name)
    with pytest.raises(ModelFileError, match="no safetensors file there"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["[]", "{", '{"weight_map": {}}', '{"weight_map": 3}'])
def test_an_index_that_makes_no_sense_is_refused(folder: Path, text: str) -> None:
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ModelFileError, match=r"index\.json"):
        read_folder(folder)


@pytest.mark.parametrize("entry", [("BF16", [100, 65]), ("Q9", [100, 64]), ("F32", [100, 64])])
def test_a_tensor_whose_bytes_are_not_those_of_its_shape_is_refused(
    folder: Path, entry: tuple[str, list[int]]
) -> None:
    kind, shape = entry
    write(folder / "model.safetensors", BF16, dtype=kind, shape=shape)
    with pytest.raises(ModelFileError, match="makes no sense"):
        read_folder(folder)


@pytest.mark.parametrize(
    "values",
    [
        [],
        {"model": 3},
        {"model": {"vocab": 3}},
        {"model": {"vocab": {"a": -1}}},
        {"model": {"vocab": {"a": 1 << 40}}},
        {"model": {"vocab": [[]]}},
        {"model": {"vocab": {}}, "added_tokens": [{"id": "x", "content": "y"}]},
    ],
)
def test_a_tokenizer_that_makes_no_sense_is_refused(folder: Path, values: object) -> None:
    (folder / "tokenizer.json").write_text(json.dumps(values))
    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        _ = read_folder(folder).tokens


def test_a_folder_without_a_tokenizer_is_paired_on_trust(folder: Path, tmp_path: Path) -> None:
    small = make(tmp_path / "small")
    (small / "tokenizer.json").unlink()
    assert "on trust" in resolve(None, str(folder), str(small)).notes[0]


def test_a_snapshot_of_the_hub_is_called_by_its_repository(tmp_path: Path) -> None:
    snapshot = make(tmp_path / "models--org--Model-4bit" / "snapshots" / ("a" * 40))
    assert read_folder(snapshot).name == "org/Model-4bit"
    assert resolve(str(snapshot), None, None).name == "org/Model-4bit"


def test_a_folder_named_by_a_dot_is_called_by_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert read_folder(Path()).name == "large"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_what_is_no_file_is_not_waited_for(folder: Path, name: str) -> None:
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises((ModelFileError, NotFound)) as caught:
        _ = read_folder(folder).tokens
    assert "\n" not in str(caught.value)


def test_a_file_that_the_index_leaves_out_is_checked_as_well(folder: Path) -> None:
    index(folder, "model.safetensors")
    (folder / "model-more.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(ModelFileError, match=r"model-more\.safetensors"):
        read_folder(folder)
