"""The chat in a real terminal: what the program on the other end of the pty sees."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pexpect
import pytest

FAKE = Path(__file__).with_name("fake_model.py")
ALTERNATE_SCREEN_LEFT = "\x1b[?1049l"
CURSOR_SHOWN = "\x1b[?25h"


@pytest.fixture
def chat() -> pexpect.spawn[str]:
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    child = pexpect.spawn(
        sys.executable,
        [str(FAKE), "0.01"],
        env=environment,
        dimensions=(30, 100),
        encoding="utf-8",
        timeout=20,
    )
    yield child
    child.close(force=True)


def test_a_session_in_a_real_terminal_leaves_it_as_it_was(chat: pexpect.spawn[str]) -> None:
    chat.expect_exact("\x1b[?1049h")
    chat.expect_exact("bit-exact")
    chat.send("what is sorting?\r")
    chat.expect_exact("Take")
    chat.expect_exact("tok/round")
    chat.send("again\r")
    chat.expect_exact("word20")
    chat.send("\x1b")
    chat.expect_exact("stopped")
    chat.send("\x03")
    chat.expect_exact("again to quit")
    chat.send("\x03")
    chat.expect(pexpect.EOF)
    rest = chat.before or ""
    chat.wait()
    assert chat.exitstatus == 0
    assert ALTERNATE_SCREEN_LEFT in rest
    assert CURSOR_SHOWN in rest
    assert "Traceback" not in rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_chat_leaves_the_terminal_as_it_was(
    chat: pexpect.spawn[str], number: int
) -> None:
    chat.expect_exact("\x1b[?1049h")
    chat.expect_exact("bit-exact")
    chat.kill(number)
    chat.expect(pexpect.EOF)
    rest = chat.before or ""
    chat.wait()
    assert chat.exitstatus == 128 + number
    assert ALTERNATE_SCREEN_LEFT in rest
    assert CURSOR_SHOWN in rest
