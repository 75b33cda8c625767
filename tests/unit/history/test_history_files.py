"""The history's file is the user's alone; where it cannot be written the chat goes on in memory."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from history_fakes import answer, filled

from edgespec.history import History, database, place

Open = Callable[[], History]
posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX's")


def modes(folder: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o077)
    os.umask(before)
    yield os.umask
    os.umask(before)


@posix
@pytest.mark.parametrize("mask", [0, 0o022, 0o777, 0o577])
def test_folder_and_files_are_the_users_alone_whatever_the_umask(
    path: Path, umask: Callable[[int], int], mask: int
) -> None:
    umask(mask)
    with closing(History.open(path)) as history:
        history.new().say("private")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert modes(path.parent).keys() >= {"history.sqlite3", "history.sqlite3-wal"}
        assert set(modes(path.parent).values()) == {0o600}


@posix
def test_they_are_so_from_the_first_moment(
    path: Path, umask: Callable[[int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    umask(0)
    monkeypatch.setattr(os, "fchmod", lambda handle, mode: None)
    monkeypatch.setattr(Path, "chmod", lambda path, mode: None)
    with closing(History.open(path)) as history:
        history.new().say("private")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert set(modes(path.parent).values()) == {0o600}


@posix
def test_a_file_that_others_may_read_is_closed_to_them(path: Path) -> None:
    History.open(path).close()
    path.chmod(0o644)
    History.open(path).close()
    assert modes(path.parent)[path.name] == 0o600


@posix
@pytest.mark.parametrize("chosen", [True, False])
def test_only_a_folder_that_the_user_did_not_choose_is_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: bool
) -> None:
    folder = tmp_path / "mine" / "edgespec"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    if chosen:
        monkeypatch.setenv("EDGESPEC_DATA_DIR", str(folder))
    else:
        monkeypatch.delenv("EDGESPEC_DATA_DIR")
        monkeypatch.setattr(
            "edgespec.models.installed.platformdirs.user_data_path", lambda *_, **__: folder
        )
    History.open().close()
    assert (folder / "history.sqlite3").is_file()
    assert stat.S_IMODE(folder.stat().st_mode) == (0o755 if chosen else 0o700)


def test_on_a_full_disk_the_conversation_goes_on_in_memory_and_says_so_once(
    path: Path, monkeypatch: pytest.MonkeyPatch, open_history: Open
) -> None:
    told: list[str] = []
    with monkeypatch.context() as patch:
        full = (*database._SETTINGS, "PRAGMA max_page_count = 60")
        patch.setattr(database, "_SETTINGS", full)
        history = open_history()
        history.listen(told.append)
        conversation = history.new()
        said = []
        while not told:
            said.append(conversation.say(f"{len(said)} " + "x" * 3000))
        first = said[0]
        answered = answer(conversation, "an answer on a full disk", (1, 2, 3))
        conversation.edit(first.id, "a branch on a full disk")
        conversation.rename("full")
        conversation.set_system("full")
        conversation.switch(first.id)
        other = history.new()
        other.say("another " + "y" * 9000)
    assert told == list(history.notes)
    assert len(told) == 1
    assert "cannot be written (database or disk is full)" in told[0]
    assert "goes on in memory only; export it to keep it." in told[0]
    assert conversation.path == (*said, answered)
    assert len({message.id for message in conversation.messages}) == len(said) + 2
    assert history.load(conversation.id) is conversation
    assert "an answer on a full disk" in history.markdown(conversation.id)
    assert {s.title for s in history.recent(5)} == {"full", other.title}
    assert [s.id for s in history.search("branch full", 5)] == [conversation.id]
    kept = open_history().load(conversation.id)
    assert kept.path == tuple(said[: len(kept.path)])
    assert len(kept.path) >= len(said) - 1
    history.delete(other.id)
    assert [s.title for s in history.recent(5)] == ["full"]


@pytest.fixture
def without_rights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], None]]:
    """Makes a folder and its files read-only for who runs the test."""
    if sys.platform == "win32":
        pytest.skip("modes are POSIX's")
    closed: list[Path] = []

    def close(folder: Path) -> None:
        closed.append(folder)
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        if os.geteuid() == 0:
            for parent in (folder, *folder.parents)[:4]:
                parent.chmod(parent.stat().st_mode | 0o555)
            os.seteuid(65_534)

    yield close
    if os.getuid() == 0:
        os.seteuid(0)
    for folder in closed:
        folder.chmod(0o700)


def test_a_folder_that_cannot_be_written_is_read_and_left_alone(
    path: Path, without_rights: Callable[[Path], None]
) -> None:
    filled(path)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    without_rights(path.parent)
    told: list[str] = []
    with closing(History.open(path)) as history:
        history.listen(told.append)
        assert len(history.load(1).path) == 200
        assert [found.id for found in history.search("message 199", 5)] == [1]
        conversation = history.load(1)
        conversation.say("in memory")
        history.new().say("too")
        assert conversation.path[-1].content == "in memory"
        assert len(told) == 2
        assert "so nothing is kept" in told[0]
        assert "goes on in memory only" in told[1]
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_where_no_file_can_be_made_the_history_is_in_memory(
    path: Path, without_rights: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    without_rights(path.parent)
    with closing(History.open(path)) as history:
        (note,) = history.notes
        assert "cannot be written (Permission denied), so nothing is kept" in note
        history.new().say("in memory")
        assert [summary.title for summary in history.recent(5)] == ["in memory"]
    assert list(path.parent.iterdir()) == []


def test_a_lock_that_another_program_holds_does_not_stop_the_chat(
    path: Path, open_history: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_history().new().say("kept")
    monkeypatch.setattr(place, "_PATIENCE_S", 0.05)
    with place.opening(path):
        history = open_history()
    assert "so nothing is kept" in history.notes[0]
    assert [summary.title for summary in history.recent(5)] == ["kept"]
    assert time.time() - history.recent(1)[0].when < 3600
