"""A wrong file is set aside, never deleted; a newer one is refused, an older one carried over."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from history_fakes import answer, filled, texts

from edgespec.errors import BadInput, EdgespecError
from edgespec.history import History, schema

Open = Callable[[], History]
SCHEMA_1 = """
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    title TEXT NOT NULL,
    created_s REAL NOT NULL
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    created_s REAL NOT NULL
);
CREATE INDEX messages_of ON messages (conversation);
PRAGMA application_id = 0x65647370;
PRAGMA user_version = 1;
"""


def truncated(path: Path) -> None:
    filled(path)
    os.truncate(path, path.stat().st_size // 2)


def beheaded(path: Path) -> None:
    filled(path)
    with path.open("r+b") as file:
        file.write(b"X" * 200)


def riddled(path: Path) -> None:
    """Other bytes in the middle of every page but the first."""
    filled(path)
    with path.open("r+b") as file:
        for page in range(1, path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(random.Random(page).randbytes(300))


def random_bytes(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(50_000))


def short_text(path: Path) -> None:
    path.write_text("dear diary")


def folder(path: Path) -> None:
    path.mkdir()
    (path / "precious").write_text("mine")


def link(path: Path) -> None:
    goal = path.with_name("goal")
    filled(goal)
    path.symlink_to(goal)


def broken_link(path: Path) -> None:
    path.symlink_to("nowhere")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE messages (id)")


def without_tables(path: Path) -> None:
    History.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE conversations")


@pytest.mark.skipif(sys.platform == "win32", reason="links and pipes are POSIX's")
@pytest.mark.parametrize(
    "spoil",
    [
        truncated, beheaded, riddled, random_bytes, short_text, folder, link, broken_link, pipe,
        of_another_program, without_tables,
    ],
)  # fmt: skip
def test_a_wrong_file_is_set_aside_and_a_new_history_begins(
    path: Path, open_history: Open, spoil: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    spoil(path)
    found, goal = path.lstat(), path.with_name("goal")
    content = path.read_bytes() if stat.S_ISREG(found.st_mode) else None
    goals = goal.read_bytes() if goal.exists() else None
    history = open_history()
    (note,) = history.notes
    (aside,) = path.parent.glob("history.damaged-*.sqlite3")
    assert aside.name in note
    assert "a new one begins" in note
    assert aside.lstat().st_ino == found.st_ino
    assert content is None or aside.read_bytes() == content
    assert goals is None or goal.read_bytes() == goals
    assert history.recent(5) == []
    conversation = history.new()
    conversation.say("new")
    again = open_history()
    assert again.notes == ()
    assert texts(again.load(conversation.id)) == ["new"]


def test_what_sqlite_put_beside_a_wrong_file_goes_with_it(path: Path, open_history: Open) -> None:
    path.parent.mkdir()
    short_text(path)
    path.with_name("history.sqlite3-wal").write_bytes(b"beside")
    open_history().new().say("new")
    (beside,) = path.parent.glob("history.damaged-*.sqlite3-wal")
    assert beside.read_bytes() == b"beside"


def test_two_wrong_files_within_a_second_are_both_kept(path: Path, open_history: Open) -> None:
    path.parent.mkdir()
    for text in ("one", "two", "three"):
        path.write_text(text)
        open_history().close()
        path.unlink()
    kept = {file.read_text() for file in path.parent.glob("history.damaged-*.sqlite3")}
    assert kept == {"one", "two", "three"}


def test_an_empty_file_is_a_history_that_has_not_begun(path: Path, open_history: Open) -> None:
    path.parent.mkdir()
    path.touch()
    history = open_history()
    history.new().say("first")
    assert history.notes == ()
    assert [summary.title for summary in history.recent(5)] == ["first"]


def with_a_broken_index(path: Path) -> None:
    with closing(History.open(path)) as history:
        conversation = history.new()
        conversation.say("needle")
        begun = conversation.begin_answer("m", 1)
        conversation.write(begun.id, "haystack", ())
        history.new().say("other")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE texts_data SET block = x'ffffffffffff' WHERE id > 10")
        connection.commit()


def test_an_index_that_is_broken_is_made_anew_where_it_is_searched(
    path: Path, open_history: Open
) -> None:
    with_a_broken_index(path)
    history = open_history()
    assert [found.id for found in history.search("needle", 5)] == [1]
    assert [found.id for found in history.search("haystack", 5)] == [1]
    assert history.notes == ()
    assert list(path.parent.glob("*damaged*")) == []


def test_a_change_that_a_broken_index_stopped_works_the_next_time(
    path: Path, open_history: Open
) -> None:
    with_a_broken_index(path)
    history = open_history()
    with pytest.raises(EdgespecError, match=r"malformed\); nothing was deleted"):
        history.delete(2)
    history.delete(2)
    history.load(1).say("kept")
    assert [found.id for found in open_history().search("kept", 5)] == [1]
    assert history.notes == ()


def test_a_file_of_a_newer_version_is_refused_and_not_touched(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    written = path.stat().st_mtime_ns
    for _ in range(2):
        with pytest.raises(BadInput, match=r"newer edgespec \(version 99 .* use --no-history"):
            History.open(path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
    assert path.stat().st_mtime_ns == written


def test_nor_is_one_that_its_program_had_no_time_to_close(path: Path, tmp_path: Path) -> None:
    History.open(path).close()
    killed = tmp_path / "killed" / path.name
    killed.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")
        for file in path.parent.iterdir():
            (killed.parent / file.name).write_bytes(file.read_bytes())
    log = killed.with_name(f"{path.name}-wal")
    before = killed.read_bytes(), log.read_bytes()
    assert len(log.read_bytes()) > 0
    with pytest.raises(BadInput, match="version 99"):
        History.open(killed)
    assert (killed.read_bytes(), log.read_bytes()) == before


def test_a_history_of_version_1_becomes_one_of_today(path: Path, open_history: Open) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA_1)
        connection.execute("INSERT INTO conversations VALUES (3, 'Rivers', 1e9), (7, 'Two', 2e9)")
        said = [
            (1, 3, "system", "Be brief."),
            (2, 3, "user", "Name a river."),
            (4, 7, "user", "Hi"),
            (5, 3, "assistant", "Rhône"),
            (6, 7, "assistant", "Hello"),
            (9, 3, "user", "Another?"),
        ]
        for id, conversation, role, content in said:
            connection.execute(
                "INSERT INTO messages VALUES (?, ?, ?, ?, ?)",
                (id, conversation, role, content, 1e9 + id),
            )
        connection.commit()
    history = open_history()
    assert history.notes == ()
    told = [(s.id, s.title, s.when, s.messages) for s in history.recent(5)]
    assert told == [(3, "Rivers", 1e9 + 9, 3), (7, "Two", 1e9 + 6, 2)]
    rivers = history.load(3)
    assert rivers.system == "Be brief."
    assert [(m.id, m.parent) for m in rivers.path] == [(2, None), (5, 2), (9, 5)]
    assert texts(rivers) == ["Name a river.", "Rhône", "Another?"]
    assert [found.id for found in history.search("RHÔNE", 5)] == [3]
    answer(rivers, "Rhine")
    assert texts(open_history().load(3)) == ["Name a river.", "Rhône", "Another?", "Rhine"]
    assert history.new().say("new").id > 10


def test_a_migration_that_fails_leaves_the_old_history_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA_1)
        connection.execute("INSERT INTO conversations VALUES (3, 'Rivers', 1e9)")
        connection.commit()
    with monkeypatch.context() as patch:
        steps = {**schema._STEPS, 1: (*schema._FROM_1, "DROP TABLE nonsense")}
        patch.setattr(schema, "_STEPS", steps)
        with closing(History.open(path)) as history:
            (note,) = history.notes
            assert "cannot be written (no such table: nonsense), so nothing is kept" in note
            history.new().say("in memory")
            assert [summary.title for summary in history.recent(5)] == ["in memory"]
    with closing(History.open(path)) as history:
        assert history.notes == ()
        assert [summary.title for summary in history.recent(5)] == ["Rivers"]
