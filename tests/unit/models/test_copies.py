"""Copies in another format are found by the file they were made of, and go with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from model_folders import gguf

from edgespec.errors import EdgespecError
from edgespec.models.copies import all_copies, copies_named, copies_of, place_of_copy
from edgespec.models.identity import fingerprint


def model(path: Path, seed: int = 0) -> Path:
    path.write_bytes(gguf(seed))
    return path


def copied(file: Path, name: str = "copy", version: int = 1) -> Path:
    """A copy of a file, of 100 bytes."""
    folder = place_of_copy(file, version) / name
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"x" * 100)
    return folder


def test_a_copy_is_found_by_its_file_whatever_its_version(tmp_path: Path) -> None:
    one, two = model(tmp_path / "one.gguf"), model(tmp_path / "two.gguf", seed=1)
    os.utime(two, ns=(1, 1))
    places = {copied(one).parent, copied(one, version=2).parent}
    copied(two, "other")
    assert {copy.place for copy in copies_of([one])} == places
    assert {copy.size for copy in copies_of([one])} == {100}
    assert copies_of([tmp_path / "gone.gguf", tmp_path]) == ()
    assert [copy.name for copy in all_copies()] == ["copy", "copy", "other"]
    assert [copy.name for copy in copies_named("OTHER")] == ["other"]


def test_a_copy_whose_file_has_changed_is_still_one_of_all(tmp_path: Path) -> None:
    file = model(tmp_path / "one.gguf")
    copied(file)
    os.utime(file, ns=(1, 1))
    assert copies_of([file]) == ()
    assert len(all_copies()) == 1


def test_what_a_kill_left_is_counted_and_deleted(tmp_path: Path) -> None:
    file = model(tmp_path / "one.gguf")
    unfinished = copied(file, "unfinished-abc")
    (copy,) = all_copies()
    assert (copy.name, copy.size) == (unfinished.parent.name, 100)
    copy.delete()
    assert not unfinished.parent.exists()
    copy.delete()
    assert all_copies() == ()


def test_a_copy_that_cannot_be_deleted_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(model(tmp_path / "one.gguf"))
    (copy,) = all_copies()

    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("edgespec.models.copies.shutil.rmtree", refuse)
    with pytest.raises(EdgespecError, match=r"cannot be deleted \(Permission denied\)"):
        copy.delete()


def test_a_split_model_whose_second_part_was_replaced_is_another_one(tmp_path: Path) -> None:
    first, second = (model(tmp_path / f"m-0000{n}-of-00002.gguf") for n in (1, 2))
    before = fingerprint(first)
    os.utime(second, ns=(1, 1))
    assert fingerprint(first) != before
    second.unlink()
    assert fingerprint(first) != before
