"""Files that are no models, and what the reader says they are."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import zipfile
from pathlib import Path

import pytest
from gguf_bytes import Gguf, refused

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.gguf import read_header


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nothing\.gguf does not exist"):
        read_header(tmp_path / "nothing.gguf")


def test_a_folder_is_called_a_folder(tmp_path: Path) -> None:
    assert "is a folder" in refused(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    assert "a device or a pipe" in refused(tmp_path / "pipe.gguf")


def test_a_path_that_no_system_takes_is_a_clear_error() -> None:
    with pytest.raises(ModelFileError, match="cannot be read"):
        read_header(Path("a\0b.gguf"))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_file_without_permission_says_so(tmp_path: Path) -> None:
    path = Gguf().write(tmp_path / "m.gguf")
    path.chmod(0)
    assert "cannot be read (Permission denied)" in refused(path)


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.touch()
    assert "is empty; download it again" in refused(path)


def test_a_pytorch_zip_is_named_and_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", b"x" * 1000)
    message = refused(path)
    assert "PyTorch" in message
    assert "never opened" in message


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 98362432\n"
SAFETENSORS = struct.pack("<Q", 26) + b'{"__metadata__":{"a":"b"}}'


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (LFS, "Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>Sign in</body></html>", "a web page"),
        (b"\n  <html>no doctype</html>", "a web page"),
        (SAFETENSORS, "a safetensors file"),
        (pickle.dumps({"weights": [1.0]}), "a Python pickle"),
        (gzip.compress(b"GGUF"), "a gzip archive"),
        (b"tjgg" + b"\0" * 100, "before GGUF"),
        (b'{"error": "not found"}', "JSON"),
        (b"\0" * 4096, "only zeros"),
        (b"MZ what else", "something else"),
        (b"GGU", "something else"),
    ],
)
def test_what_a_file_looks_like_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    message = refused(path)
    assert "is not a GGUF file" in message
    assert says in message
