"""A conversation as a file: whole or not at all, and in nobody's way."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
from pathlib import Path

import pytest
from history_fakes import answer

from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.history import History
from edgespec.tui.shelf import Shelf


@pytest.fixture
def number(history: History) -> int:
    conversation = history.new()
    conversation.say("Grüße\u202e")
    answer(conversation, "Hello")
    return conversation.id


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def _full(_handle: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("replaces", [False, True])
@pytest.mark.parametrize("name", ["a.md", "b.JSON"])
def test_a_file_is_the_users_alone_and_gives_a_terminal_no_orders(
    history: History, number: int, tmp_path: Path, name: str, replaces: bool
) -> None:
    file = tmp_path / name
    history.export(number, file, replaces=replaces)
    text = file.read_text("utf-8")
    assert "\u202e" not in text
    if name.endswith(".md"):
        assert "Grüße" in text
    else:
        assert json.loads(text)["messages"][0]["content"] == "Grüße\u202e"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_replaced_only_where_that_is_wanted(
    history: History, number: int, tmp_path: Path
) -> None:
    file = tmp_path / "a.md"
    file.write_text("mine")
    with pytest.raises(FileExistsError):
        history.export(number, file)
    assert file.read_text() == "mine"
    history.export(number, file, replaces=True)
    assert "Hello" in file.read_text("utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="makes a symbolic link")
def test_a_link_that_leads_nowhere_is_a_name_that_is_taken(
    history: History, number: int, tmp_path: Path
) -> None:
    (tmp_path / "a.md").symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(FileExistsError):
        history.export(number, tmp_path / "a.md")
    assert not (tmp_path / "elsewhere.md").exists()


def test_a_full_disk_leaves_no_half_file_and_the_name_free(
    history: History, number: int, folder: Path
) -> None:
    shelf, file = Shelf(history, lambda _: None), folder / "a.md"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _full)
        with pytest.raises(EdgespecError, match="No space left on device"):
            shelf.export(number, str(file))
    assert list(folder.iterdir()) == []
    assert shelf.export(number, str(file)) == f"written to {file}"
    assert "Hello" in file.read_text("utf-8")


def test_a_full_disk_leaves_the_file_that_was_to_be_replaced(
    history: History, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.md"
    file.write_text("mine")
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(EdgespecError, match="No space left on device"):
        history.export(number, file, replaces=True)
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("a.txt", r"must end in \.md or \.json"),
        ("none/a.md", "none is no folder"),
        ("\0.md", "cannot be written"),
        ("a" * 300 + ".md", "cannot be written"),
        ("~nobody-is-called-so/a.md", "cannot be written"),
    ],
    ids=["ending", "folder", "zero byte", "long", "user"],
)
def test_what_can_be_no_file_is_told(
    history: History, number: int, folder: Path, name: str, told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        Shelf(history, lambda _: None).export(number, name)
    assert list(folder.iterdir()) == []


def test_only_what_is_kept_can_be_written(history: History, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        history.export(9, tmp_path / "a.md")
    assert not (tmp_path / "a.md").exists()
