"""`edgespec history`: what the chat has kept, found, shown, exported, renamed and deleted."""

from __future__ import annotations

import json
import re
import sqlite3
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import Result

from edgespec.bench.conversations import Kept
from edgespec.history import History, State
from edgespec.history.place import history_path
from edgespec.text.template import Message
from edgespec.tui.engine import ChatSetup

Cli = Callable[..., Result]


def add(*said: str, title: str = "", answers: tuple[str, ...] = ()) -> int:
    """A conversation in the user's history; its number."""
    with closing(History.open()) as history:
        conversation = history.new()
        for question, answer in zip(said, (*answers, *[""] * len(said)), strict=False):
            conversation.say(question)
            if answer:
                begun = conversation.begin_answer("m.gguf", 1)
                stats = {"completion_tokens": 2, "tokens_per_second": float("inf")}
                conversation.finish(begun.id, answer, (1, 2), State.WHOLE, stats)
        if title:
            conversation.rename(title)
        return conversation.id


def titles() -> list[str]:
    with closing(History.open()) as history:
        return [summary.title for summary in history.recent(-1)]


def test_where_nothing_was_kept_nothing_is_listed_and_nothing_made(cli: Cli) -> None:
    assert cli("history", "list").stdout == "No conversation was kept yet.\n"
    assert cli("history", "search", "x").stdout == "No conversation holds all of these words.\n"
    assert json.loads(cli("history", "list", "--json").stdout) == {"conversations": []}
    assert not history_path().parent.exists()


def test_conversations_are_listed_the_last_changed_first(cli: Cli) -> None:
    add("one")
    add("two", "three", answers=("an answer",))
    lines = cli("history", "list").stdout.splitlines()
    assert lines[0].split() == ["NUMBER", "CHANGED", "MESSAGES", "TITLE"]
    assert re.fullmatch(r"2 +\d{4}-\d\d-\d\d \d\d:\d\d +3 +two", lines[1])
    assert re.fullmatch(r"1 +\d{4}-\d\d-\d\d \d\d:\d\d +1 +one", lines[2])
    assert len(cli("history", "list", "--limit", "1").stdout.splitlines()) == 2
    (first, _) = json.loads(cli("history", "list", "--json").stdout)["conversations"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", first.pop("changed"))
    assert first == {"number": 2, "title": "two", "messages": 3, "snippet": "three"}


def test_a_title_moves_no_terminal(cli: Cli) -> None:
    add("\x1b]0;evil\x07go\x9b2J\u202e\x00on", title="a\x1b[2Jb\u202ec")
    add("\x07")
    for arguments in (["list"], ["show", "1"], ["rename", "1", "x\x1b[2J"], ["search", "go"]):
        result = cli("history", *arguments)
        assert result.exit_code == 0, result.stderr
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.stdout)
    assert "(no title)" in cli("history", "list").stdout


def test_a_search_finds_every_word_and_nothing_is_a_flag_or_syntax(cli: Cli) -> None:
    add('say "hello" -- NEAR(x)')
    add("say goodbye")
    assert cli("history", "search", "say", "hello").stdout.splitlines()[1].startswith("1 ")
    assert cli("history", "search", "--", "--").stdout.splitlines()[1].startswith("1 ")
    assert cli("history", "search", 'NEAR( "hello"').stdout.count("\n") == 2
    found = json.loads(cli("history", "search", "SAY", "--json").stdout)["conversations"]
    assert [each["number"] for each in found] == [2, 1]
    assert cli("history", "search").exit_code == 2


def test_a_conversation_is_shown_as_markdown_and_as_json(cli: Cli) -> None:
    number = str(add("Hi", answers=("Hello",)))
    shown = cli("history", "show", number).stdout
    assert shown == ("# Hi\n\n## You\n\nHi\n\n## Model (m.gguf)\n\nHello\n\n*2 tokens, seed 1*\n")
    told = json.loads(cli("history", "show", number, "--json").stdout)
    assert [m["content"] for m in told["messages"]] == ["Hi", "Hello"]
    assert told["messages"][1]["stats"]["tokens_per_second"] is None


@pytest.mark.parametrize("name", ["out.md", "out.JSON"])
def test_an_export_is_the_users_alone_and_replaces_only_by_force(
    cli: Cli, tmp_path: Path, name: str
) -> None:
    number = str(add("Hi ☃", answers=("Hello",)))
    file = tmp_path / name
    result = cli("history", "export", number, str(file))
    assert result.stdout == f"Conversation 1 is now in {file}.\n"
    content = file.read_text("utf-8")
    if name.endswith(".md"):
        assert "Hi ☃" in content
    else:
        assert json.loads(content)["messages"][0]["content"] == "Hi ☃"
    if sys.platform != "win32":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.write_text("mine")
    refused = cli("history", "export", number, str(file))
    assert (refused.exit_code, file.read_text()) == (2, "mine")
    assert "--force replaces it" in refused.stderr
    assert cli("history", "export", number, str(file), "--force").exit_code == 0
    assert file.read_text("utf-8") == content


def test_an_export_needs_a_form_that_is_known(cli: Cli, tmp_path: Path) -> None:
    result = cli("history", "export", str(add("Hi")), str(tmp_path / "out.txt"))
    assert (result.exit_code, list(tmp_path.glob("out*"))) == (2, [])
    assert "must end in .md or .json" in result.stderr


def test_a_conversation_is_renamed(cli: Cli) -> None:
    number = str(add("Hi"))
    told = cli("history", "rename", number, "Greetings").stdout
    assert told == "Conversation 1 is now called Greetings.\n"
    assert titles() == ["Greetings"]
    assert cli("history", "rename", number, "").stdout == "Conversation 1 is now called Hi.\n"


def test_deleting_asks_and_only_yes_deletes(cli: Cli) -> None:
    number = str(add("Hi", answers=("Hello",)))
    for given in ("n\n", "\n", ""):
        result = cli("history", "rm", number, input=given)
        assert (result.exit_code, result.stdout, titles()) == (130, "", ["Hi"])
        assert "Delete Hi with 2 messages for good? [y/N]" in result.stderr
    assert cli("history", "rm", number, input="y\n").stdout == "Deleted 1 conversation.\n"
    assert titles() == []


def test_several_or_all_are_deleted_at_once(cli: Cli) -> None:
    for text in ("one", "two", "three", "four"):
        add(text)
    result = cli("history", "rm", "1", "3", "1", "--yes", "--json")
    assert json.loads(result.stdout) == {"deleted": [1, 3]}
    assert titles() == ["four", "two"]
    result = cli("history", "rm", "--all", input="y\n")
    assert "Delete 2 conversations with 2 messages for good?" in result.stderr
    assert (result.stdout, titles()) == ("Deleted 2 conversations.\n", [])
    assert cli("history", "rm", "--all").stdout == "Deleted 0 conversations.\n"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "9"], 3),
        (["show", "9", "--json"], 3),
        (["export", "9", "out.md"], 3),
        (["rename", "9", "x"], 3),
        (["rm", "1", "9", "--yes"], 3),
        (["rm"], 2),
        (["rm", "1", "--all"], 2),
        (["show", "x"], 2),
        (["show", "0"], 2),
        (["show", str(2**63)], 2),
        (["list", "--limit", "0"], 2),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_said_in_one_line(cli: Cli, arguments: list[str], code: int) -> None:
    add("stays")
    result = cli("history", *arguments)
    assert (result.exit_code, result.stdout, titles()) == (code, "", ["stays"])
    assert result.stderr.strip().count("\n") == 0
    assert not Path("out.md").exists()


def test_a_damaged_history_is_told_of_and_a_newer_one_refused(cli: Cli) -> None:
    file = history_path()
    file.parent.mkdir(parents=True)
    file.write_text("dear diary")
    result = cli("history", "list")
    assert (result.exit_code, result.stdout) == (0, "No conversation was kept yet.\n")
    assert "a new one begins" in result.stderr
    assert next(file.parent.glob("*damaged*")).read_text() == "dear diary"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 3")
    refused = cli("history", "list")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "update edgespec" in refused.stderr


class TestTheChat:
    """Which history the chat is given."""

    @pytest.fixture
    def talk(self, cli: Cli, model: object, monkeypatch: pytest.MonkeyPatch) -> Cli:
        """Starts the chat at a terminal; somebody says something and leaves."""
        terminal = SimpleNamespace(isatty=lambda: True)
        monkeypatch.setattr(
            "edgespec.cli.chat.sys", SimpleNamespace(stdin=terminal, stdout=terminal)
        )
        monkeypatch.setenv("TERM", "xterm")

        def run_chat(setup: ChatSetup) -> None:
            setup.history.new().say("said in the chat")

        monkeypatch.setattr("edgespec.tui.app.run_chat", run_chat)
        return lambda *arguments: cli("chat", "demo", *arguments)

    def test_the_users_own_unless_he_wants_none(
        self, talk: Cli, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert talk("--no-history").exit_code == 0
        monkeypatch.setenv("EDGESPEC_NO_HISTORY", "1")
        assert talk().exit_code == 0
        assert not history_path().exists()
        monkeypatch.delenv("EDGESPEC_NO_HISTORY")
        assert talk().exit_code == 0
        assert titles() == ["said in the chat"]

    def test_one_of_a_newer_version_can_only_be_passed_by(self, talk: Cli) -> None:
        add("old")
        with closing(sqlite3.connect(history_path())) as connection:
            connection.execute("PRAGMA user_version = 99")
        refused = talk()
        assert refused.exit_code == 2
        assert "use --no-history" in refused.stderr
        assert talk("--no-history").exit_code == 0


def test_tune_takes_the_last_conversations_that_hold_enough_answers() -> None:
    question, answer = Message("user", "q"), Message("assistant", "a")
    conversations = [
        [question],
        [question, answer, question, Message("assistant", "")],
        [question, answer, question, answer],
        [question, answer],
    ]
    kept = Kept.of(conversations, 2)
    assert (kept.said, kept.answers) == (tuple(conversations[1:3]), 3)
    assert Kept.of(iter(conversations), 99).answers == 4
    assert Kept.of([], 5) == Kept((), 0)
