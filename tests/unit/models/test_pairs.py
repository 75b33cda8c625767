"""From what the user names to files."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf, Tensor, vocabulary
from tiny_models import TinyModels

from edgespec.errors import BadInput, IncompatiblePair, ModelFileError, NotFound
from edgespec.models import pairs
from edgespec.models.pairs import resolve
from edgespec.models.split import parts_of, read_model


@pytest.fixture
def folder(tmp_path: Path, tiny_models: TinyModels) -> Path:
    """A large model, a small one with the same vocabulary and a smaller one with another."""
    shutil.copy(tiny_models(), tmp_path / "large.gguf")
    shutil.copy(tiny_models(layers=1, width=32), tmp_path / "small.gguf")
    shutil.copy(tiny_models(layers=1, width=32, vocab=300), tmp_path / "other.gguf")
    return tmp_path


def test_a_target_alone_has_no_draft(folder: Path) -> None:
    pair = resolve(None, str(folder / "large.gguf"), None)
    assert (pair.target, pair.draft) == (folder / "large.gguf", None)
    assert pair.name == "tiny llama 0"


def test_a_target_and_a_draft_are_checked_against_each_other(folder: Path) -> None:
    target = str(folder / "large.gguf")
    assert resolve(None, target, str(folder / "small.gguf")).draft == folder / "small.gguf"
    with pytest.raises(IncompatiblePair):
        resolve(None, target, str(folder / "other.gguf"))


def test_a_folder_gives_its_largest_model_and_the_smallest_draft_that_fits(folder: Path) -> None:
    pair = resolve(str(folder), None, None)
    assert (pair.target, pair.draft) == (folder / "large.gguf", folder / "small.gguf")
    assert pair.notes == (
        "target: large.gguf, the largest model in the folder",
        "not a draft: other.gguf, whose vocabulary differs",
        "draft: small.gguf, the smallest that fits the target",
    )


def test_draft_none_turns_a_folders_draft_off(folder: Path) -> None:
    assert resolve(str(folder), None, "none").draft is None


def test_a_folder_may_be_given_as_target(folder: Path) -> None:
    assert resolve(None, str(folder), None).draft == folder / "small.gguf"


def test_a_file_may_be_given_as_pair(folder: Path) -> None:
    assert resolve(str(folder / "large.gguf"), None, None).target == folder / "large.gguf"


def test_a_folder_without_models_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"holds no GGUF model; give a GGUF file with --target"):
        resolve(str(tmp_path), None, None)


def test_a_broken_small_file_in_a_folder_is_noted(folder: Path) -> None:
    (folder / "broken.gguf").write_bytes(b"<html>")
    notes = resolve(str(folder), None, None).notes
    assert any("left out:" in note and "a web page" in note for note in notes)


def test_a_broken_file_that_would_be_the_target_is_not_passed_over(folder: Path) -> None:
    whole = (folder / "large.gguf").read_bytes()
    (folder / "large.gguf").write_bytes(whole[:-100])
    with pytest.raises(ModelFileError, match="cut short"):
        resolve(str(folder), None, None)


def test_projectors_and_vocabularies_are_no_models(folder: Path) -> None:
    big = (Tensor(dims=(1 << 16, 16)),)
    weights = b"\0" * (1 << 22)
    projector = MODEL | {"general.type": "mmproj"}
    Gguf(projector, tensors=big, data=weights).write(folder / "mmproj.gguf")
    Gguf(tensors=(), data=weights).write(folder / "vocab.gguf")
    assert resolve(str(folder), None, None).target == folder / "large.gguf"
    with pytest.raises(BadInput, match="of the kind 'mmproj'"):
        resolve(None, str(folder / "mmproj.gguf"), None)
    with pytest.raises(BadInput, match="holds no weights"):
        resolve(None, str(folder / "vocab.gguf"), None)


@pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")
def test_the_same_file_twice_is_a_mistake_even_through_a_link(folder: Path) -> None:
    target = str(folder / "large.gguf")
    (folder / "link").symlink_to(target)
    for draft in (target, str(folder / "link")):
        with pytest.raises(BadInput, match="both target and draft"):
            resolve(None, target, draft)


def test_a_pair_and_a_target_are_one_too_many() -> None:
    with pytest.raises(BadInput, match="Both the pair 'demo' and --target"):
        resolve("demo", "x.gguf", None)


def test_an_unknown_pair_is_not_found_and_the_way_on_is_named() -> None:
    with pytest.raises(NotFound, match=r"'edgespec pairs' lists them all, or give a GGUF file"):
        resolve("qwen9", None, None)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "a\x1b[2J"])
def test_what_no_model_can_be_called_is_a_mistake(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        resolve(name, None, None)
    assert str(caught.value).isprintable()


def test_the_folder_of_nobody_is_not_found() -> None:
    with pytest.raises(NotFound, match="does not exist"):
        resolve("~nobody-here/x", None, None)


@pytest.mark.parametrize(("target", "draft"), [("no.gguf", None), (None, "no.gguf")])
def test_a_missing_file_is_not_found(target: str | None, draft: str | None) -> None:
    with pytest.raises(NotFound, match=r"no\.gguf does not exist"):
        resolve(None, target, draft)


def test_nothing_named_means_the_demo() -> None:
    pair = resolve(None, None, None)
    assert pair == resolve("demo", None, None)
    assert pair.name == "demo"
    assert pair.target.suffix == ".gguf"


def test_a_demo_that_is_not_installed_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pairs, "find_demo", lambda: None)
    for name in ("demo", None):
        with pytest.raises(NotFound) as caught:
            resolve(name, None, None)
        assert "edgespec doctor" in str(caught.value)


def test_a_models_name_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    path = Gguf(MODEL | {"general.name": "nice\x1b[2J\u202e"}).write(tmp_path / "m.gguf")
    assert resolve(None, str(path), None).name == "nice\\x1b[2J\\u202e"


def write_split(folder: Path, total: int = 3) -> list[Path]:
    """The first part carries the metadata, each part some tensors."""
    first = vocabulary(["a", "b", "ab", "<|end|>"], split__no=0, split__count=total)
    parts = [folder / f"m-{i + 1:05d}-of-{total:05d}.gguf" for i in range(total)]
    first.write(parts[0])
    for i in range(1, total):
        later = Gguf({"split.no": i, "split.count": total}, [Tensor(f"blk.{i}.weight")])
        later.write(parts[i])
    return parts


def test_the_first_part_stands_for_a_split_model(tmp_path: Path) -> None:
    parts = write_split(tmp_path)
    assert parts_of(parts[1]) == tuple(parts)
    for named in (str(tmp_path), str(parts[0]), str(parts[2])):
        assert resolve(named, None, None).target == parts[0]
    whole = read_model(parts[1])
    assert whole.parameter_count == 3 * 256
    assert whole.file_size == sum(part.stat().st_size for part in parts)


def test_a_missing_part_is_named(tmp_path: Path) -> None:
    parts = write_split(tmp_path)
    parts[1].unlink()
    for named in (str(tmp_path), str(parts[0])):
        with pytest.raises(NotFound, match=r"one of 3 parts, and m-00002-of-00003\.gguf is not"):
            resolve(named, None, None)


def test_a_damaged_part_is_found(tmp_path: Path) -> None:
    parts = write_split(tmp_path)
    replace(Gguf({"split.no": 1}), data=b"").write(parts[1])
    with pytest.raises(ModelFileError, match="m-00002-of-00003"):
        resolve(str(parts[0]), None, None)


def test_a_name_that_only_looks_split_stands_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "m-00004-of-00003.gguf"
    assert parts_of(path) == (path,)
