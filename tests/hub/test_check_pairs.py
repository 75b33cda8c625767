"""scripts/check_pairs.py: the catalogue held against a hub."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from fake_hub import COMMIT, FakeHub, Fault
from tiny_models import TinyModels

from edgespec.errors import NetworkError
from edgespec.models.catalogue import catalogue, read_catalogue
from edgespec.models.hub import Hub

SCRIPTS = Path(__file__).parents[2] / "scripts"
TOML = """# A comment that stays.

[[pair]]
name = "files"
title = "Files"
about = "GGUF files"

[pair.gguf]
target = { repo = "org/big-GGUF", quant = "Q4_K_M", stated_gb = 3 }
draft = { repo = "org/small-GGUF", file = "small-q8_0.gguf" }
evidence = [
  "https://example.org/files",
]
verified = false

[[pair]]
name = "folders"
title = "Folders"
about = "MLX folders"

[pair.mlx]
target = { repo = "org/big-mlx" }
draft = { repo = "org/small-mlx" }
evidence = [
  "https://example.org/folders",
]
verified = false
"""


def tokenizer(*texts: str, added: str = "<|end|>") -> bytes:
    vocab = {text: number for number, text in enumerate(texts)}
    tokens = [{"id": len(texts), "content": added}]
    return json.dumps({"model": {"vocab": vocab}, "added_tokens": tokens}).encode()


def mlx(tokens: bytes) -> dict[str, bytes]:
    return {"config.json": b"{}", "model.safetensors": b"w" * 100, "tokenizer.json": tokens}


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import check_pairs

    return check_pairs


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.toml"
    path.write_text(TOML)
    return path


@pytest.fixture
def stocked(fake_hub: FakeHub, tiny_models: TinyModels) -> FakeHub:
    """A hub on which both pairs are sound."""
    big, small = tiny_models().read_bytes(), tiny_models(layers=1, width=32).read_bytes()
    fake_hub.add("org/big-GGUF", {"big-Q4_K_M.gguf": big, "big-Q8_0.gguf": b"x"})
    fake_hub.add("org/small-GGUF", {"small-q8_0.gguf": small}, tags=("license:mit",))
    fake_hub.add("org/big-mlx", mlx(tokenizer("a", "b", "ab")))
    fake_hub.add("org/small-mlx", mlx(tokenizer("a", "b", "ab")))
    return fake_hub


Run = Callable[..., int]


@pytest.fixture
def run(script: ModuleType, client: Hub, file: Path, waits: list[float]) -> Run:
    return lambda *arguments: script.main(list(arguments), client, file)


def test_what_the_hub_has_is_pinned_and_kept(run: Run, stocked: FakeHub, file: Path) -> None:
    assert run("--write") == 0
    assert file.read_text().startswith("# A comment that stays.\n")
    files, folders = read_catalogue(file.read_text()).entries
    (build,) = files.builds
    assert build.verified
    assert [source.revision for source in build.sources] == [COMMIT, COMMIT]
    big = len(stocked.repos["org/big-GGUF"].files["big-Q4_K_M.gguf"])
    assert (build.target.size, build.target.stated_gb) == (big, None)
    assert (files.licence, files.context) == ("apache-2.0", 512)
    assert folders.builds[0].verified
    assert run("--write") == 0
    assert read_catalogue(file.read_text()).entries == (files, folders)


def test_weights_are_not_fetched(run: Run, stocked: FakeHub, hub_cache: Path) -> None:
    assert run() == 0
    fetched = {path.name for path in hub_cache.rglob("snapshots/*/*")}
    assert fetched == {"tokenizer.json"}


def test_without_write_the_file_stays(run: Run, stocked: FakeHub, file: Path) -> None:
    assert run("files") == 0
    assert file.read_text() == TOML


WRONG = [
    ("org/big-GGUF", {"big-Q8_0.gguf": b"x"}, "no quantisation 'Q4_K_M'; there are Q8_0"),
    ("org/small-GGUF", {"other.gguf": b"x"}, "'small-q8_0.gguf' is not there any more"),
    ("org/small-GGUF", {"small-q8_0.gguf": b"<html>" * 20}, "not a GGUF file"),
    ("org/small-mlx", mlx(tokenizer("a", "c", "ab")), "Id 1 is 'b' in the target but 'c'"),
    ("org/small-mlx", mlx(tokenizer("a", "b", "ab", added="x")), "Id 3 is '<|end|>'"),
    ("org/small-mlx", mlx(b"[]"), "no tokenizer with a vocabulary"),
    ("org/small-mlx", {"config.json": b"{}"}, "no model that edgespec can run"),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case[2][:20])
def test_what_is_wrong_is_told_and_that_pair_stays_unverified(
    run: Run,
    stocked: FakeHub,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    case: tuple[str, dict[str, bytes], str],
) -> None:
    repo, files, told = case
    stocked.add(repo, files)
    assert run("--write") == 1
    assert told in capsys.readouterr().out
    verified = {e.name: e.builds[0].verified for e in read_catalogue(file.read_text()).entries}
    wrong = "folders" if repo.endswith("mlx") else "files"
    assert verified == {name: name != wrong for name in ("files", "folders")}


def test_a_pair_that_stops_passing_is_no_longer_verified(
    run: Run, stocked: FakeHub, file: Path
) -> None:
    run("--write")
    stocked.add("org/big-GGUF", {"big-Q8_0.gguf": b"x"})
    assert run("--write") == 1
    files, folders = read_catalogue(file.read_text()).entries
    assert (files.builds[0].verified, folders.builds[0].verified) == (False, True)


def test_other_vocabularies_are_found(
    run: Run, stocked: FakeHub, tiny_models: TinyModels, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tiny_models(layers=1, width=32, vocab=300).read_bytes()
    stocked.add("org/small-GGUF", {"small-q8_0.gguf": other})
    assert run("files") == 1
    assert "FAILED  files gguf: " in capsys.readouterr().out


def test_a_repository_that_is_gone_is_told(
    run: Run, stocked: FakeHub, capsys: pytest.CaptureFixture[str]
) -> None:
    del stocked.repos["org/big-mlx"]
    assert run("folders") == 1
    assert "FAILED  folders mlx: " in capsys.readouterr().out


def test_silence_says_nothing_about_a_pair(run: Run, stocked: FakeHub, file: Path) -> None:
    run("--write")
    before = file.read_text()
    stocked.api_faults.extend([Fault(status=503)] * 50)
    with pytest.raises(NetworkError):
        run("--write")
    assert file.read_text() == before


def test_an_unknown_name_is_a_usage_error(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("nothing") == 2
    assert "The catalogue has no nothing." in capsys.readouterr().err


def test_the_shipped_catalogue_is_as_the_script_writes_it(script: ModuleType) -> None:
    text = script.FILE.read_text(encoding="utf-8")
    assert script.rendered(catalogue().entries, text) == text


def test_every_field_survives_being_written(script: ModuleType) -> None:
    entry = catalogue().entries[0]
    odd = replace(entry, title='A "title" \\ ü', context=None, licence="mit")
    assert read_catalogue(script.rendered([odd], TOML)).entries == (odd,)


def test_a_source_archive_that_has_these_tests_has_the_scripts_too() -> None:
    project = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text("utf-8"))
    packed = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"tests", SCRIPTS.name} <= set(packed)
