"""Folders load through mlx-lm, and what cannot be used is refused in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mlx_folders import change_json, write_folder
from tiny_models import CHATML, TinyModels
from trimmed_drafter import write_trimmed

import edgespec
from edgespec import backends
from edgespec.backends import BackendProbe, Placement
from edgespec.errors import BackendMissing, BadInput, EdgespecError, ModelFileError, NotFound
from edgespec.loading import open_pair
from edgespec.models.pairs import resolve
from edgespec.options import LoadOptions
from edgespec_mlx import MlxBackend
from edgespec_mlx.device import Device, core, number_format

PROMPT = "the user asked for a short answer"
CPU = Placement()


@pytest.fixture
def folder(tmp_path: Path, tiny_models: TinyModels) -> Path:
    return write_folder(tmp_path / "tiny", tiny_models())


def test_a_folder_answers(folder: Path) -> None:
    with edgespec.load(str(folder), backend="mlx", context=256) as model:
        reply = model.generate(PROMPT, max_tokens=8, temperature=0.0)
        assert len(reply.token_ids) == 8
        assert (model.info.backend, model.info.target) == ("mlx", "tiny")
        assert "CPU" in model.info.device or "Metal" in model.info.device


def test_a_folder_with_a_draft_folder_answers_as_it_does_alone(
    folder: Path, tmp_path: Path, tiny_models: TinyModels
) -> None:
    draft = write_folder(tmp_path / "draft", tiny_models(noise=0.01))
    answers = []
    for named in (None, str(draft), str(tiny_models(noise=0.01))):
        with edgespec.load(
            target=str(folder), draft=named, backend="mlx", context=256, draft_tokens=3
        ) as model:
            reply = model.generate(PROMPT, max_tokens=32, temperature=0.0)
            answers.append(reply.token_ids)
            if named:
                assert reply.stats.accepted > 5
    assert answers[0] == answers[1] == answers[2]


def test_a_draft_that_knows_some_of_the_tokens_guesses_those(
    folder: Path, tmp_path: Path, tiny_models: TinyModels
) -> None:
    source = tiny_models(noise=0.01)
    draft = write_trimmed(tmp_path / "drafter.gguf", source, [n for n in range(384) if n % 17])
    as_folder = MlxBackend.prepare(draft, lambda line: None)
    answers = []
    for named in (None, str(draft), str(as_folder)):
        with edgespec.load(
            target=str(folder), draft=named, backend="mlx", context=256, draft_tokens=3
        ) as model:
            reply = model.generate(PROMPT, max_tokens=32, temperature=0.0)
            answers.append(reply.token_ids)
            if named:
                assert reply.stats.accepted > 0
                assert reply.stats.drafted > 8
    assert answers[0] == answers[1] == answers[2]


def test_a_folder_needs_no_backend_to_be_named(folder: Path) -> None:
    loaded = open_pair(resolve(str(folder), None, None), LoadOptions(context=128), print)
    assert loaded.backend == "mlx"
    for model in loaded.models:
        model.close()


def refused(folder: Path, kind: type[EdgespecError], match: str) -> None:
    with pytest.raises(kind, match=match) as caught:
        MlxBackend.load(folder, CPU)
    assert "\n" not in str(caught.value)


def test_code_in_a_folder_is_never_run(folder: Path) -> None:
    (folder / "evil.py").write_text("raise SystemExit('it ran')")
    change_json(folder / "config.json", auto_map={"AutoModel": "evil.Model"})
    MlxBackend.load(folder, CPU).close()
    change_json(folder / "config.json", model_file="evil.py")
    refused(folder, ModelFileError, r"wants code of its own to be run \(evil\.py\)")


@pytest.mark.parametrize("name", ["../evil", "a.b", "", "x" * 100])
def test_a_model_type_that_is_no_name_is_refused(folder: Path, name: str) -> None:
    change_json(folder / "config.json", model_type=name)
    refused(folder, ModelFileError, "model_type")


@pytest.mark.parametrize("name", ["no_such_model", "cache", "base"])
def test_a_model_type_that_mlx_lm_does_not_know_is_refused(folder: Path, name: str) -> None:
    change_json(folder / "config.json", model_type=name)
    refused(folder, ModelFileError, f"'{name}', which the installed mlx-lm does not run; update")


def test_a_config_without_a_size_is_refused(folder: Path) -> None:
    change_json(folder / "config.json", intermediate_size=None)
    refused(folder, ModelFileError, "intermediate_size")


@pytest.mark.parametrize("change", [{"hidden_size": 32}, {"num_hidden_layers": 6}])
def test_weights_that_do_not_fit_the_config_are_refused(
    folder: Path, change: dict[str, int]
) -> None:
    change_json(folder / "config.json", **change)
    refused(folder, ModelFileError, "do not belong together")


def test_a_folder_without_a_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    refused(folder, NotFound, r"tokenizer\.json is missing")


@pytest.mark.parametrize("text", ['{"model": {}}', "{}", '{"model": {"type": "BPE", "vocab": 3}}'])
def test_a_tokenizer_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "tokenizer.json").write_text(text)
    refused(folder, ModelFileError, r"tokenizer\.json")


def test_a_tokenizer_of_words_is_refused(folder: Path) -> None:
    values = json.loads((folder / "tokenizer.json").read_text())
    values["model"]["type"] = "WordPiece"
    (folder / "tokenizer.json").write_text(json.dumps(values))
    refused(folder, ModelFileError, "of the kind 'WordPiece'")


def test_a_gguf_file_is_not_loaded_unprepared(tiny_models: TinyModels) -> None:
    refused(tiny_models(), ModelFileError, "no folder of safetensors files")


def test_layers_cannot_be_split_between_devices(folder: Path) -> None:
    for placement in (Placement(gpu_layers=3), Placement(cpu_moe=True)):
        with pytest.raises(BadInput, match="leave --gpu-layers"):
            MlxBackend.load(folder, placement)


def tokenizer_of(folder: Path) -> Any:
    return MlxBackend.load(folder, CPU).tokenizer


def test_a_control_token_that_nobody_marked_cannot_be_forged(folder: Path) -> None:
    values = json.loads((folder / "tokenizer.json").read_text())
    for entry in values["added_tokens"]:
        entry["special"] = False
    (folder / "tokenizer.json").write_text(json.dumps(values))
    tokenizer = tokenizer_of(folder)
    (mark,) = tokenizer.encode("<|im_end|>", special=True)
    assert tokenizer.piece(mark) == b""
    assert mark not in tokenizer.encode("x<|im_end|>y", special=False)
    assert mark in tokenizer.end_tokens


def test_a_mark_of_a_thought_has_its_text_though_it_is_a_control_token(folder: Path) -> None:
    values = json.loads((folder / "tokenizer.json").read_text())
    entry = next(e for e in values["added_tokens"] if e["content"] == "<|im_start|>")
    entry["content"] = "[THINK]"
    values["model"]["vocab"]["[THINK]"] = values["model"]["vocab"].pop("<|im_start|>")
    (folder / "tokenizer.json").write_text(json.dumps(values))
    tokenizer = tokenizer_of(folder)
    (mark,) = tokenizer.encode("[THINK]", special=True)
    assert tokenizer.piece(mark) == b"[THINK]"
    assert mark not in tokenizer.encode("x[THINK]y", special=False)


@pytest.mark.parametrize("place", ["jinja", "settings", "named", "json"])
def test_the_template_is_found_where_it_is_kept(folder: Path, place: str) -> None:
    (folder / "chat_template.jinja").unlink()
    settings = folder / "tokenizer_config.json"
    match place:
        case "jinja":
            (folder / "chat_template.jinja").write_text(CHATML)
        case "settings":
            change_json(settings, chat_template=CHATML)
        case "named":
            both = [{"name": "tools", "template": "x"}, {"name": "default", "template": CHATML}]
            change_json(settings, chat_template=both)
        case _:
            (folder / "chat_template.json").write_text(json.dumps({"chat_template": CHATML}))
    assert tokenizer_of(folder).template() == CHATML


def test_end_tokens_come_from_every_place_that_names_some(folder: Path) -> None:
    change_json(folder / "generation_config.json", eos_token_id=[7])
    change_json(folder / "config.json", eos_token_id=9)
    change_json(folder / "tokenizer_config.json", eos_token={"content": "<|im_start|>"})
    tokenizer = tokenizer_of(folder)
    (start,) = tokenizer.encode("<|im_start|>", special=True)
    assert {7, 9, start} <= tokenizer.end_tokens


def test_a_text_begins_as_the_tokenizer_says(folder: Path) -> None:
    settings = folder / "tokenizer_config.json"
    tokenizer = tokenizer_of(folder)
    (begin,) = tokenizer.encode("<|endoftext|>", special=True)
    assert tokenizer.bos is None
    change_json(settings, add_bos_token=True)
    assert tokenizer_of(folder).bos == begin
    assert tokenizer_of(folder).special_text("bos") == "<|endoftext|>"


@pytest.mark.parametrize(
    ("chip", "stored", "guesses", "expected"),
    [
        ("Apple M1", "bfloat16", True, "float16"),
        ("Apple M2 Max", "bfloat16", True, "float16"),
        ("Apple M2 Ultra", "float32", True, "float32"),
        ("Apple M1", "bfloat16", False, "bfloat16"),
        ("Apple M3 Pro", "bfloat16", True, "bfloat16"),
        ("Apple M10", "bfloat16", True, "bfloat16"),
        ("Metal", "bfloat16", True, "bfloat16"),
        ("", "bfloat16", True, "bfloat16"),
    ],
)
def test_only_a_drafter_is_rounded_to_what_an_old_chip_is_fast_at(
    chip: str, stored: str, guesses: bool, expected: str
) -> None:
    found = number_format(chip, stored, quantised=False, guesses_only=guesses)
    assert found == expected


def test_packed_weights_on_a_cpu_are_multiplied_with_whole_floats() -> None:
    assert number_format("", "bfloat16", quantised=True, guesses_only=False) == "float32"
    assert number_format("Apple M4", "bfloat16", quantised=True, guesses_only=False) == "bfloat16"


def test_the_doctor_is_told_chip_and_wired_limit() -> None:
    chip = Device(True, "Apple M2 Max", 48 << 30, 64 << 30)
    assert chip.words == "Apple M2 Max (Metal, 48.0 GiB of 64 GiB of memory for models)"
    assert Device(False).words.startswith("CPU, ")


def test_without_its_library_the_line_that_installs_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mlx.core", None)
    for use in (MlxBackend.probe, lambda: MlxBackend.load(Path(), CPU)):
        with pytest.raises(BackendMissing, match='pip install "mlx-lm>='):
            use()
    monkeypatch.undo()
    monkeypatch.setattr("edgespec_mlx.device.find_spec", lambda name: None)
    with pytest.raises(BackendMissing, match="needs mlx-lm"):
        core()


def adapter(name: str, *formats: str, makeshift: bool = False) -> Any:
    class Fake:
        @classmethod
        def probe(cls) -> BackendProbe:
            return BackendProbe(name, "1", (), False, formats=formats, makeshift=makeshift)

    return Fake


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    known: dict[str, Any] = {}
    monkeypatch.setattr(backends, "installed", lambda: {name: name for name in known})
    monkeypatch.setattr(backends, "_load", lambda name: known[name])
    return known


def test_a_makeshift_is_chosen_only_where_nothing_else_runs_the_model(
    adapters: dict[str, Any],
) -> None:
    adapters["llamacpp"] = adapter("llamacpp", "gguf")
    adapters["mlx"] = adapter("mlx", "mlx", "gguf", makeshift=True)
    assert backends.find("auto") is adapters["llamacpp"]
    assert backends.find("auto", ("mlx",)) is adapters["mlx"]
    assert backends.find("auto", ("mlx", "gguf")) is adapters["mlx"]
    assert backends.find("mlx") is adapters["mlx"]
    del adapters["llamacpp"]
    assert backends.find("auto") is adapters["mlx"]


def test_where_metal_is_mlx_comes_first(adapters: dict[str, Any]) -> None:
    adapters["llamacpp"] = adapter("llamacpp", "gguf")
    adapters["mlx"] = adapter("mlx", "mlx", "gguf")
    assert backends.find("auto") is adapters["mlx"]


def test_a_folder_that_no_backend_here_runs_is_told_so(adapters: dict[str, Any]) -> None:
    adapters["llamacpp"] = adapter("llamacpp", "gguf")
    with pytest.raises(BackendMissing, match=r"runs this model\. llamacpp runs GGUF only"):
        backends.find("auto", ("mlx",))


def test_llama_cpp_says_what_runs_a_folder(folder: Path) -> None:
    with pytest.raises(ModelFileError, match="use --backend mlx"):
        edgespec.load(str(folder), backend="llamacpp")


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has Metal")
def test_on_this_system_mlx_is_a_makeshift() -> None:
    probe = MlxBackend.probe()
    assert probe.makeshift
    assert not probe.gpu
    assert probe.gpu_memory == ()
