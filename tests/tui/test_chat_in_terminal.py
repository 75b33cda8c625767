"""The chat in a real terminal: what the program on the other end of the pty sees."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
from fake_chat import HOSTILE

from edgespec.history import History, State

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no pty")

HERE = Path(__file__).parent
ALTERNATE_SCREEN = "\x1b[?1049h"
ALTERNATE_SCREEN_LEFT = "\x1b[?1049l"
CURSOR_SHOWN = "\x1b[?25h"
Open = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def terminal() -> Iterator[Open]:
    """Opens a program in a terminal of its own; all are closed at the end."""
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    children: list[pexpect.spawn[str]] = []

    def opened(
        program: str, *arguments: str, until: str = "bit-exact", size: tuple[int, int] = (30, 100)
    ) -> pexpect.spawn[str]:
        child = pexpect.spawn(
            sys.executable,
            [str(HERE / program), *arguments],
            env=environment,
            dimensions=size,
            encoding="utf-8",
            timeout=30,
        )
        children.append(child)
        child.expect_exact(ALTERNATE_SCREEN)
        child.expect_exact(until)
        return child

    yield opened
    for child in children:
        child.close(force=True)


def leave(child: pexpect.spawn[str]) -> str:
    """Quit as a user does; what came until then."""
    child.send("\x03")
    child.expect_exact("again to quit")
    before = child.before or ""
    child.send("\x03")
    child.expect(pexpect.EOF)
    child.wait()
    return before + (child.before or "")


def test_a_session_in_a_real_terminal_leaves_it_as_it_was(terminal: Open) -> None:
    chat = terminal("fake_model.py", "0.01")
    chat.send("what is sorting?\r")
    chat.expect_exact("Take")
    chat.expect_exact("tok/s")
    chat.send("again\r")
    chat.expect_exact("word20")
    chat.send("\x1b")
    chat.expect_exact("stopped")
    rest = leave(chat)
    assert chat.exitstatus == 0
    assert ALTERNATE_SCREEN_LEFT in rest
    assert CURSOR_SHOWN in rest
    assert "Traceback" not in rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_chat_leaves_the_terminal_as_it_was(
    terminal: Open, number: int
) -> None:
    chat = terminal("fake_model.py", "0.01")
    chat.kill(number)
    chat.expect(pexpect.EOF)
    rest = chat.before or ""
    chat.wait()
    assert chat.exitstatus == 128 + number
    assert ALTERNATE_SCREEN_LEFT in rest
    assert CURSOR_SHOWN in rest


def test_a_chat_that_is_killed_in_mid_answer_goes_on_where_it_was_cut_off(
    terminal: Open, tmp_path: Path
) -> None:
    place = str(tmp_path / "history.sqlite3")
    chat = terminal("fake_chat.py", place, "endless")
    chat.send("tell me\r")
    chat.expect_exact("word250")  # two and a half seconds: saved twice at least
    chat.kill(signal.SIGKILL)
    chat.expect(pexpect.EOF)
    history = History.open(Path(place))
    said, answer = history.load(history.recent(1)[0].id).path
    history.close()
    assert said.content == "tell me"
    assert answer.state is State.CUT
    assert "word100" in answer.content
    assert len(answer.ids) == answer.content.count("word")

    again = terminal("fake_chat.py", place, "rest", "--continue", until="cut off · Ctrl+G")
    again.expect_exact("bit-exact")
    again.send("\x07")
    again.expect_exact("rest")  # one word: a line may break before it
    leave(again)
    history = History.open(Path(place))
    whole = history.load(history.recent(1)[0].id).path[-1]
    history.close()
    assert whole.content == answer.content + " and the rest"
    assert whole.state is State.WHOLE


def test_hostile_output_changes_nothing_outside_its_text(terminal: Open, tmp_path: Path) -> None:
    place = str(tmp_path / "history.sqlite3")
    for flags in ([], ["--continue"]):
        chat = terminal("fake_chat.py", place, "hostile", *flags)
        chat.send("speak\r")
        chat.expect_exact("the end")
        seen = chat.before or ""
        assert ALTERNATE_SCREEN_LEFT not in seen
        output = seen + leave(chat)
        assert chat.exitstatus == 0
        assert "evil [@click=app.exit]quit[/]" in re.sub(r"\x1b\[[0-9;]*m", "", output)
        for forbidden in ("\x1b]52", "\x1b]0;owned", "\x1b]8;;http", "\x9b", "\x9d", "\u202e"):
            assert forbidden in HOSTILE
            assert forbidden not in output


def test_two_chats_at_once_on_one_database_keep_their_messages(
    terminal: Open, tmp_path: Path
) -> None:
    place = str(tmp_path / "history.sqlite3")
    chats = {name: terminal("fake_chat.py", place, "short") for name in ("one", "two")}
    for number in range(2):
        for name, chat in chats.items():
            chat.send(f"{name} {number}\r")
        for chat in chats.values():
            chat.expect_exact("Take")
    for chat in chats.values():
        leave(chat)
    history = History.open(Path(place))
    talks = [history.load(summary.id).path for summary in history.recent(9)]
    history.close()
    said = sorted(tuple(one.content for one in path if one.role == "user") for path in talks)
    assert said == [("one 0", "one 1"), ("two 0", "two 1")]
    assert all(one.state is State.WHOLE for path in talks for one in path)


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="no file that never answers is here")
def test_a_file_that_never_answers_does_not_keep_the_chat_open(terminal: Open) -> None:
    chat = terminal("fake_model.py")
    chat.send("/file /proc/kmsg\x1b")
    chat.send("\r")
    leave(chat)
    assert chat.exitstatus == 0


@pytest.mark.parametrize("size", [(5, 20), (3, 4), (1, 1)])
def test_a_terminal_of_any_size_ends_nothing(terminal: Open, size: tuple[int, int]) -> None:
    chat = terminal("fake_model.py", "0.01", until="\x1b[1;1H", size=size)
    chat.setwinsize(30, 100)
    chat.expect_exact("bit-exact")
    for number in range(3):  # while it answers
        chat.send(f"{number}\r")
        for rows, columns in ((2, 3), (80, 300), (1, 1), (30, 100)):
            chat.setwinsize(rows, columns)
            chat.expect_exact(f"\x1b[{rows};1H")
    for keys in ("\x0f", "\x10", "\x0c", "\x1bOR", "\x1bOQ"):  # dialogs and panels
        chat.send(keys)
        chat.setwinsize(1, 1)
        chat.setwinsize(30, 100)
        chat.expect_exact("\x1b[30;1H")
        chat.send("\x1b")
    chat.send("\x11")
    chat.expect(pexpect.EOF)
    chat.wait()
    assert chat.exitstatus == 0
    assert "Traceback" not in (chat.before or "")
