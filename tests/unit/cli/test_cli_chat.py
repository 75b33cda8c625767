"""`edgespec chat`: line by line in a pipe and at a terminal, and the way into the screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from cli_fakes import TEXT, FakeModel, words
from click.testing import Result

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import EdgespecError

Cli = Callable[..., Result]


def test_without_a_terminal_the_screen_chat_names_the_ways_that_work(
    cli: Cli, model: FakeModel
) -> None:
    result = cli("chat", "demo")
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])
    assert "chat --plain" in result.stderr
    assert "edgespec run" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--plain --continue", "--plain keeps no conversation, so it cannot --continue one"),
        ("--no-history --continue", "with --no-history no conversation is read"),
        ("--continue --system Rhyme.", "leave --system out, and change it in the chat"),
        ("--plain --proposer none --always-draft", "--always-draft says how to guess, but with"),
        ("--plain --draft-tokens 0 --remember", "with --draft-tokens 0 nothing is guessed"),
    ],
)
def test_flags_of_which_one_would_do_nothing_are_refused(
    cli: Cli, model: FakeModel, arguments: str, told: str
) -> None:
    result = cli("chat", *arguments.split())
    assert (result.exit_code, result.stdout, model.loaded) == (2, "", [])
    assert told in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_variable_that_keeps_nothing_is_named_where_it_stops_going_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_NO_HISTORY", "1")
    result = cli("chat", "--continue")
    assert result.exit_code == 2
    assert "with EDGESPEC_NO_HISTORY no conversation is read" in result.stderr


def test_a_system_message_of_the_settings_does_not_keep_a_chat_from_going_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_SYSTEM", "Rhyme.")
    assert "needs a full terminal" in cli("chat", "demo", "--continue").stderr


def test_the_usual_pair_gets_the_draft_model_of_the_settings(
    cli: Cli, model: FakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDGESPEC_DRAFT", "d.gguf")
    cli("chat", "--plain", input="Hi\n")
    cli("run", "Hi")
    assert [(*names, rest["draft"]) for names, rest in model.loaded] == [("demo", "d.gguf")] * 2


@pytest.mark.parametrize("command", ["chat --plain", "run Hi", "bench"])
def test_the_usual_pair_is_looked_for_once(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    looked: list[str] = []

    def usual_pair() -> str:
        looked.append("demo")
        return "demo"

    def load(*names: str, **_: object) -> None:
        raise EdgespecError(f"{names[0]} is not wanted.")

    monkeypatch.setattr("edgespec.cli.usual.usual_pair", usual_pair)
    monkeypatch.setattr("edgespec.api.load", load)
    result = cli(*command.split(), input="Hi\n")
    assert "demo is not wanted." in result.stderr
    assert looked == ["demo"]


def test_plain_chat_in_a_pipe_is_a_transcript(cli: Cli, model: FakeModel) -> None:
    result = cli("chat", "--plain", "--system", "Be brief.", input="Hello\n\nAgain")
    assert result.exit_code == 0
    assert result.stdout == f"You: Hello\nModel: {TEXT}\nYou: \nYou: Again\nModel: {TEXT}\n"
    assert [prompt for prompt, _ in model.asked] == ["Hello", "Again"]
    summaries = result.stderr.splitlines()
    assert len(summaries) == 2
    assert "3 of 3 tested guesses accepted (100%)" in summaries[0]
    assert "auto: n-gram" in summaries[0]


def test_what_comes_through_a_pipe_gives_the_terminal_no_orders(cli: Cli, model: FakeModel) -> None:
    hostile = "Hi \x1b]52;c;ZXZpbA==\x07\x9b31m\u202ethere"
    result = cli("chat", "--plain", input=f"{hostile}\n")
    assert "Hi" in result.stdout
    assert "there" in result.stdout
    assert not set("\x1b\x07\x9b\u202e") & set(result.stdout)
    assert [prompt for prompt, _ in model.asked] == [hostile]


def test_a_line_that_ends_in_a_backslash_goes_on(cli: Cli, model: FakeModel) -> None:
    cli("chat", "--plain", input="one\\\ntwo\\\nthree\r\nfour\\\n")
    assert [prompt for prompt, _ in model.asked] == ["one\ntwo\nthree", "four"]


def test_an_answer_cut_short_says_why(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([words("So"), Finished(Stop.CONTEXT)])
    assert "the context is full" in cli("chat", "--plain", input="Hi\n").stderr


def test_in_a_pipe_an_error_ends_the_chat_with_its_code(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([words("So"), EdgespecError("It broke.")])
    result = cli("chat", "--plain", input="Hi\nAgain\n")
    assert result.exit_code == 1
    assert result.stdout == "You: Hi\nModel: So\n"
    assert result.stderr == "edgespec: It broke.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestTerminal:
    """At a real pseudo-terminal."""

    @pytest.fixture
    def spawn(self) -> Callable[..., pexpect.spawn[str]]:
        program = str(Path(__file__).with_name("cli_fakes.py"))

        def run(script: str, *arguments: str) -> pexpect.spawn[str]:
            env = {**os.environ, "FAKE_SCRIPT": script, "TERM": "xterm"}
            return pexpect.spawn(
                sys.executable, [program, *arguments], env=env, encoding="utf-8", timeout=20
            )

        return run

    def test_run_ends_with_one_line_of_figures(
        self, spawn: Callable[..., pexpect.spawn[str]]
    ) -> None:
        child = spawn("answer", "run", "Hi")
        child.expect_exact("measuring this machine")
        child.expect_exact(TEXT)
        child.expect(r"6 tokens, [\d.]+ tokens/s \([\d.]+ times the plain 20\.0\), 2\.0 tokens per")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0

    def test_ctrl_c_ends_an_answer_and_twice_at_the_prompt_the_chat(
        self, spawn: Callable[..., pexpect.spawn[str]]
    ) -> None:
        child = spawn("endless", "chat", "--plain")
        child.expect_exact("You: ")
        child.sendline("Hi")
        child.expect_exact(" so so so")
        child.sendintr()
        child.expect_exact("stopped")
        child.expect_exact("You: ")
        child.sendintr()
        child.expect_exact("once more")
        child.expect_exact("You: ")
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0

    def test_the_chat_survives_an_error_and_ends_with_the_input(
        self, spawn: Callable[..., pexpect.spawn[str]]
    ) -> None:
        child = spawn("error", "chat", "--plain")
        for _ in range(2):
            child.expect_exact("You: ")
            child.sendline("Hi")
            child.expect_exact("Model: half")
            child.expect_exact("edgespec: The cache burst. Try again.")
        child.expect_exact("You: ")
        child.sendeof()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0

    def test_the_screen_gets_a_loader_and_what_was_asked_for(
        self, spawn: Callable[..., pexpect.spawn[str]]
    ) -> None:
        child = spawn("screen", "chat", "folder", "--system", "Be brief.", "--max-tokens", "5")
        child.expect_exact("title folder, system Be brief., max_tokens 5, loaded demo")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0
