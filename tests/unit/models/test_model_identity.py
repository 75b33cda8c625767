"""A model file's short name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf

from edgespec.errors import ModelFileError, NotFound
from edgespec.models.identity import fingerprint


def test_it_is_stable_and_moves_with_the_file(tmp_path: Path) -> None:
    path = Gguf().write(tmp_path / "a.gguf")
    first = fingerprint(path)
    assert fingerprint(path) == first
    assert len(first) == 16
    assert fingerprint(path.rename(tmp_path / "b.gguf")) == first


def test_header_size_and_time_each_change_it(tmp_path: Path) -> None:
    def of(gguf: Gguf, mtime_ns: int) -> str:
        path = gguf.write(tmp_path / "m.gguf")
        os.utime(path, ns=(mtime_ns, mtime_ns))
        return fingerprint(path)

    longer = Gguf(data=Gguf().data + b"\0" * 32)
    renamed = Gguf(MODEL | {"general.name": "Test 2B"})
    names = {of(Gguf(), 10**9), of(Gguf(), 2 * 10**9), of(longer, 10**9), of(renamed, 10**9)}
    assert len(names) == 4
    assert of(Gguf(), 10**9) in names


def test_what_is_no_model_has_no_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"no")
    with pytest.raises(ModelFileError):
        fingerprint(tmp_path / "m.gguf")
    with pytest.raises(NotFound):
        fingerprint(tmp_path / "other.gguf")
