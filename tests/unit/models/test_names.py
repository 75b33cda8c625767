"""Names of models, and which files of a repository they mean."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from edgespec.errors import BadInput, NotFound
from edgespec.models.catalogue import Source
from edgespec.models.names import (
    Local,
    Named,
    Remote,
    choose,
    files_of,
    format_of,
    is_sidecar,
    parse,
    quant_of,
)


@dataclass(frozen=True)
class File:
    name: str


def listing(*names: str) -> list[File]:
    return [File(name) for name in names]


def names(files: tuple[File, ...]) -> list[str]:
    return [file.name for file in files]


REPO = listing(
    "README.md",
    "config.json",
    "imatrix_unsloth.gguf",
    "M-IQ4_XS.gguf",
    "M-Q4_K_M.gguf",
    "M-Q4_K_S.gguf",
    "M-Q8_0.gguf",
    "M-UD-Q4_K_XL.gguf",
    "mmproj-F16.gguf",
    "mtp-M-Q4_K_M.gguf",
    "BF16/M-BF16-00001-of-00002.gguf",
    "BF16/M-BF16-00002-of-00002.gguf",
    "UD-Q4_K_XL/eagle3-M-Q4_K_M.gguf",
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("qwen2.5-coder-7b", Named("qwen2.5-coder-7b")),
        ("Qwen3-8B", Named("qwen3-8b")),
        ("llama3.2:3b", Named("llama3.2:3b")),
        ("bartowski/X-GGUF", Remote("bartowski/X-GGUF")),
        ("bartowski/X-GGUF:q4_k_m", Remote("bartowski/X-GGUF", "q4_k_m")),
        ("hf.co/bartowski/X-GGUF:Q8_0", Remote("bartowski/X-GGUF", "Q8_0")),
        ("https://huggingface.co/bartowski/X-GGUF", Remote("bartowski/X-GGUF")),
        ("https://huggingface.co/bartowski/X-GGUF/", Remote("bartowski/X-GGUF")),
        ("https://huggingface.co/bartowski/X-GGUF/tree/main", Remote("bartowski/X-GGUF")),
        (
            "https://huggingface.co/bartowski/X-GGUF/blob/main/X-Q4_K_M.gguf",
            Remote("bartowski/X-GGUF", "X-Q4_K_M"),
        ),
        (
            "hf.co/a/b/resolve/main/BF16/M-BF16-00001-of-00002.gguf?download=true",
            Remote("a/b", "M-BF16-00001-of-00002"),
        ),
        ("user/repo/blob/main/x.gguf", Local(Path("user/repo/blob/main/x.gguf"))),
        ("hf://a/b", Remote("a/b")),
        ("models/x.gguf", Local(Path("models/x.gguf"))),
        ("./folder", Local(Path("folder"))),
        ("/no/such/file", Local(Path("/no/such/file"))),
    ],
)
def test_a_name_is_understood_by_its_form(text: str, wanted: object) -> None:
    assert parse(text) == wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://huggingface.co/a/b/blob/v2/M-Q4_0.gguf", "write a/b:M-Q4_0, and name a branch"),
        ("https://huggingface.co/a/b/blob/main/M%20x-Q4_0.gguf", "write a/b:Q4_0, and"),
        ("https://huggingface.co/a/b/blob/main/config.json", "write a/b, and"),
        ("hf.co/a/models/x.gguf", "is not a model's name; write user/repo, user/repo:quant"),
    ],
)
def test_an_address_that_cannot_be_followed_comes_with_a_name_that_can(
    text: str, told: str
) -> None:
    with pytest.raises(BadInput, match=re.escape(told)):
        parse(text)


def test_an_address_that_is_a_folder_here_is_that_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hf.co" / "a").mkdir(parents=True)
    assert parse("hf.co/a") == Local(Path("hf.co/a"))


def test_what_exists_here_is_meant_before_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse("user/repo") == Remote("user/repo")
    (tmp_path / "user" / "repo").mkdir(parents=True)
    assert parse("user/repo") == Local(Path("user/repo"))


HOSTILE = [
    "",
    "   ",
    "a/../b",
    "a/..",
    "a--b/c",
    "a/b/c",
    "a/b:c:d",
    "a/b:",
    "a/b:../x",
    "user/re po",
    "user/repo:Q4 K",
    "x" * 10_000,
    "a/" + "b" * 10_000,
    "a\0b",
    "a/b\0",
    "qwen\x1b[2J",
    "user/\x1b]52;c;aGk=\x07repo",
    "usеr/repo",  # noqa: RUF001 - a Cyrillic letter
    "ｑwen3-8b",  # noqa: RUF001 - a full-width letter
    "user/repo\u202egguf",
    "qwen3\n8b",
    "https://evil.example/a/b",
    "https://huggingface.co/x.gguf\\y",
    "https://huggingface.co/a/b/blob/main/\x1b[2J.gguf",
    "file:///etc/passwd",
    "-rf",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_a_hostile_name_is_refused_in_one_line_that_cannot_speak_to_a_terminal(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["..", "../../etc/passwd", "~nobody-here/x", "a\\b", "x.gguf"])
def test_what_looks_like_a_path_is_never_sent_to_a_hub(text: str) -> None:
    assert isinstance(parse(text), Local)


def test_a_quantisation_is_found_whatever_its_case() -> None:
    assert names(choose(REPO, "q4_k_s")) == ["M-Q4_K_S.gguf"]
    assert names(choose(REPO, "iq4_xs")) == ["M-IQ4_XS.gguf"]


def test_the_name_of_a_file_stands_for_that_file_alone() -> None:
    repo = listing("M-32B-Q4_K_M.gguf", "M-7B-Q4_K_M-b.gguf", "M-7B-Q4_K_M.gguf")
    assert names(choose(repo, "Q4_K_M")) == ["M-32B-Q4_K_M.gguf"]
    assert names(choose(repo, "M-7B-Q4_K_M")) == ["M-7B-Q4_K_M.gguf"]
    assert names(choose(REPO, "M-BF16-00001-of-00002")) == names(choose(REPO, "bf16"))


def test_a_quantisation_is_not_found_in_the_middle_of_a_word() -> None:
    with pytest.raises(NotFound):
        choose(listing("M-IQ4_NL.gguf"), "Q4_NL")
    assert names(choose(REPO, "Q4_K_XL")) == ["M-UD-Q4_K_XL.gguf"]


def test_without_one_the_usual_quantisation_is_taken() -> None:
    assert names(choose(REPO)) == ["M-Q4_K_M.gguf"]
    assert names(choose(listing("M-Q2_K.gguf", "M-Q8_0.gguf"))) == ["M-Q8_0.gguf"]
    assert names(choose(listing("M-Q6_K.gguf", "M-Q2_K.gguf"))) == ["M-Q2_K.gguf"]


def test_a_quantisation_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(NotFound, match="no quantisation 'Q5_K_M'; there are BF16, IQ4_XS, Q4_K_M"):
        choose(REPO, "Q5_K_M")
    with pytest.raises(NotFound) as caught:
        choose(REPO, "x\x1b[2J")
    assert str(caught.value).isprintable()


def test_all_parts_of_a_split_model_come_in_order() -> None:
    assert names(choose(REPO, "bf16")) == [
        "BF16/M-BF16-00001-of-00002.gguf",
        "BF16/M-BF16-00002-of-00002.gguf",
    ]


def test_a_missing_part_is_named() -> None:
    with pytest.raises(NotFound, match=r"one of 3 parts, and 'M-Q8_0-00002-of-00003\.gguf' is mis"):
        choose(listing("M-Q8_0-00001-of-00003.gguf", "M-Q8_0-00003-of-00003.gguf"))


@pytest.mark.parametrize(
    "name",
    [
        "mmproj-F16.gguf",
        "x/mmproj-model-f16.gguf",
        "model-mmproj-f16.gguf",
        "mtp-M-Q4_K_M.gguf",
        "EAGLE3-M.gguf",
        "dflash-draft.gguf",
        "dspark-x.gguf",
        "imatrix.gguf",
    ],
)
def test_a_sidecar_is_never_the_model(name: str) -> None:
    assert is_sidecar(name)
    with pytest.raises(NotFound):
        choose(listing(name))
    assert names(choose(listing(name, "zz-model.gguf"))) == ["zz-model.gguf"]


def test_an_mlx_repository_is_one_model() -> None:
    repo = listing(
        ".gitattributes",
        "README.md",
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "onnx/model.safetensors",
        "pytorch_model.bin",
        "modeling.py",
        "tokenizer.json",
        "chat_template.jinja",
    )
    assert format_of(repo) == "mlx"
    assert names(choose(repo)) == [
        "chat_template.jinja",
        "config.json",
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
        "tokenizer.json",
    ]
    with pytest.raises(NotFound, match="an MLX repository is one model"):
        choose(repo, "Q4_K_M")


def test_a_repository_that_is_no_model_is_said_so() -> None:
    for repo in ([], listing("pytorch_model.bin"), listing("model.safetensors")):
        assert format_of(repo) is None
        with pytest.raises(NotFound, match="no model that edgespec can run"):
            choose(repo)


def test_the_catalogue_names_a_file_or_a_quantisation() -> None:
    assert names(files_of(Source("a/b", file="M-Q8_0.gguf"), REPO)) == ["M-Q8_0.gguf"]
    assert names(files_of(Source("a/b", quant="UD-Q4_K_XL"), REPO)) == ["M-UD-Q4_K_XL.gguf"]
    with pytest.raises(NotFound, match=r"'gone\.gguf' is not there any more"):
        files_of(Source("a/b", file="gone.gguf"), REPO)


@pytest.mark.parametrize(
    ("name", "quant"),
    [
        ("M-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-coder-7b-q8_0.gguf", "Q8_0"),
        ("M.Q5_K_S.gguf", "Q5_K_S"),
        ("BF16/M-BF16-00001-of-00002.gguf", "BF16"),
        ("M-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("M-UD-IQ2_XXS.gguf", "UD-IQ2_XXS"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("model.gguf", ""),
        ("qwen3-8b.gguf", ""),
    ],
)
def test_a_files_name_tells_its_quantisation(name: str, quant: str) -> None:
    assert quant_of(name) == quant
