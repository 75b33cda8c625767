"""Where no terminal is, progress is a few lines for what takes long, and none for the rest."""

from __future__ import annotations

import pytest

from edgespec.cli.pull_progress import Lines
from edgespec.models.hub import RemoteFile
from edgespec.models.sizes import size_text


def told(size: int, piece: int, capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines, file = Lines(), RemoteFile("m.gguf", size, "a" * 64, "a" * 64)
    for done in range(piece, size + 1, piece):
        lines.progress(file, done)
    lines.progress(file, size)
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize("size", [0, 1_000_000, 50_000_000])
def test_a_small_file_is_not_told(size: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(size, max(1, size // 50), capsys) == []


def test_a_large_file_is_told_once_for_every_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(60_000_000, 1_000, capsys)
    assert lines == [f"m.gguf: {n}% of 60 MB" for n in range(10, 101, 10)]


def test_sizes_have_the_unit_that_leaves_something_of_them() -> None:
    sizes = (None, 0, 1, 999, 23_000, 1_000_000, 999_400_000, 999_600_000, 5_640_000_000)
    assert [size_text(size) for size in sizes] == [
        "size unknown", "0 MB", "1 kB", "1 kB", "23 kB", "1 MB", "999 MB", "1.0 GB", "5.6 GB",
    ]  # fmt: skip
