"""A history whose file is taken away, or was written by somebody who means no good."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from edgespec.history import Attachment, History, State

windows = sys.platform == "win32"


@pytest.mark.skipif(windows, reason="an open file cannot be taken away there")
@pytest.mark.parametrize("how", ["moved", "replaced", "deleted"])
def test_where_the_file_was_taken_away_the_conversation_goes_on_in_memory(
    path: Path, tmp_path: Path, how: str
) -> None:
    history, told = History.open(path), list[str]()
    history.listen(told.append)
    conversation = history.new()
    conversation.say("one")
    elsewhere = tmp_path / "elsewhere.sqlite3"
    with closing(History.open(tmp_path / "other.sqlite3")) as other:
        other.new().say("of another file")
    path.rename(elsewhere)
    if how == "deleted":
        elsewhere.unlink()
    elif how == "replaced":
        (tmp_path / "other.sqlite3").rename(path)
    conversation.say("two")
    begun = conversation.begin_answer("m", 1)
    conversation.finish(begun.id, "three", (1,), State.WHOLE, {})
    history.close()
    assert told == [
        f"The history {path} was moved, replaced or deleted, so this conversation goes on in memory"
        " only; export it to keep it."
    ]
    assert [message.content for message in conversation.path] == ["one", "two", "three"]
    with closing(History.open(path)) as now:
        titles = [summary.title for summary in now.recent(9)]
        assert titles == (["of another file"] if how == "replaced" else [])
    if how != "deleted":
        with closing(History.open(elsewhere)) as moved:
            assert [message.content for message in moved.load(1).path] == ["one"]


@pytest.mark.skipif(windows, reason="an open file cannot be taken away there")
def test_a_file_that_was_replaced_is_not_mixed_with_the_one_before_it(
    path: Path, tmp_path: Path
) -> None:
    history = History.open(path)
    history.new().say("one")
    with closing(History.open(tmp_path / "other.sqlite3")) as other:
        other.new().say("of another file")
    (tmp_path / "other.sqlite3").replace(path)
    history.close()
    with closing(History.open(path)) as now:
        assert [message.content for message in now.load(1).path] == ["of another file"]


_NO_TEXT = "x'ff00'"
_STRANGE = [
    *(
        f"UPDATE {table} SET {column} = {value}"
        for table, columns in {
            "messages": "content ids stats seed branch created_s model",
            "conversations": "title system created_s changed_s head named",
            "attachments": "name text tokens",
        }.items()
        for column in columns.split()
        for value in (_NO_TEXT, "'abc'", "-7", "1e300")
    ),
    *(
        f"UPDATE messages SET stats = '{stats}'"
        for stats in (
            '{"completion_tokens": 1e999, "tokens_per_second": -1e999}',
            f'{{"completion_tokens": {"9" * 400}}}',
            f'{{"completion_tokens": {"9" * 5000}}}',
            '{"speedup": true, "tokens": {"marks": ["a"], "lengths": [2]}}',
        )
    ),
]


@pytest.mark.parametrize("change", _STRANGE)
def test_values_of_a_wrong_kind_stop_nothing(path: Path, change: str) -> None:
    with closing(History.open(path)) as history:
        conversation = history.new("system")
        conversation.say("question", [Attachment("name", "text", 3)])
        begun = conversation.begin_answer("m", 1)
        conversation.finish(begun.id, "answer", (1, 2), State.WHOLE, {"speedup": 1.5})
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.create_function("folded", 1, str)
        foreign.execute(change)
    with closing(History.open(path)) as history:
        assert history.recent(9)[0].id == 1
        assert isinstance(history.recent(9)[0].when, float)
        history.search("question", 9)
        assert all(type(text) is str for text in history.inputs(9))
        assert "## You" in history.markdown(1)
        json.dumps(history.as_json(1), allow_nan=False)
        (told,) = history.conversations()
        assert all(type(message.content) is str for message in told)
        assert all(message.branch >= 0 for message in history.load(1).messages)
