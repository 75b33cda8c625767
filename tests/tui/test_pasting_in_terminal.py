"""Pastes through a real pty: whatever they hold, nothing is sent and nothing pressed."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pexpect
import pytest

from edgespec.text.sanitize import clean

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no pty")

PROGRAM = Path(__file__).with_name("composing.py")
START, END = "\x1b[200~", "\x1b[201~"
F10 = "\x1b[21~"


@pytest.fixture
def terminal() -> pexpect.spawn[str]:
    environment = {**os.environ, "TERM": "xterm-256color"}
    child = pexpect.spawn(
        sys.executable,
        [str(PROGRAM)],
        env=environment,
        dimensions=(30, 100),
        encoding="utf-8",
        timeout=30,
    )
    child.expect_exact("sk something")
    yield child
    child.close(force=True)


def paste(terminal: pexpect.spawn[str], body: str) -> None:
    """As a terminal does that does not filter; what the program paints is read meanwhile."""
    writer = threading.Thread(target=_write, args=(terminal.child_fd, START + body + END))
    writer.start()
    while writer.is_alive():
        terminal.expect([pexpect.TIMEOUT, r".+"], timeout=0.05)
    writer.join()


def _write(descriptor: int, text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(descriptor, data[:4096]) :]


def told(terminal: pexpect.spawn[str]) -> dict[str, Any]:
    """What the program heard until it was told to leave."""
    terminal.send(F10)
    terminal.expect(r"told (\{.*\})\r\n")
    match = terminal.match
    assert isinstance(match, re.Match)
    result: dict[str, Any] = json.loads(match[1])
    terminal.expect(pexpect.EOF)
    return result


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("one\rtwo\r", "one\ntwo\n"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("a \x1b[7mstyle\rand a line\r", "a style\nand a line\n"),
        ("\x1b\r\x1b\r", "\n\n"),
        ("\x1b[13u\x1b[A/quit\r", "/quit\n"),
        (f"an end mark {END}\rin the middle\r", "an end mark \nin the middle\n"),
        (f"{END}/quit\r{END}{START}more\r", "/quit\nmore\n"),
        ("half of one \x1b[201", "half of one "),
        ("\x1b[<0;5;5M\x11\x03", ""),
    ],
)
def test_a_paste_presses_no_key(terminal: pexpect.spawn[str], body: str, kept: str) -> None:
    paste(terminal, body)
    heard = told(terminal)
    assert heard["box"] == kept
    assert heard["submitted"] == []
    assert heard["asked"] == []


def test_keys_work_behind_a_paste(terminal: pexpect.spawn[str]) -> None:
    paste(terminal, f"torn {END}\rpaste")
    terminal.send("!\r")
    assert told(terminal)["submitted"] == ["torn \npaste!"]


def test_a_megabyte_arrives_whole_as_an_attachment(terminal: pexpect.spawn[str]) -> None:
    line = "all work and no play \x1b makes \r"
    count = 2**20 // len(line)
    paste(terminal, line * count)
    terminal.expect_exact("pasted text 1")
    heard = told(terminal)
    assert heard["submitted"] == []
    assert [len(text) for text in heard["attached"]] == [len(clean(line * count))]


def test_bytes_that_are_no_utf8_do_not_end_the_program(terminal: pexpect.spawn[str]) -> None:
    os.write(terminal.child_fd, START.encode() + b"caf\xe9\r" + END.encode())
    terminal.expect_exact("caf")
    assert told(terminal)["box"] == "caf\ufffd\n"
