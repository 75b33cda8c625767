"""How commands end: one line, and the promised exit code."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_fakes import TEXT, FakeModel, words
from click.testing import Result

from edgespec import errors
from edgespec.cli.answer import CtrlC
from edgespec.errors import EdgespecError

Cli = Callable[..., Result]
Start = Callable[..., subprocess.Popen[str]]

ALL_ERRORS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


def raising(error: BaseException) -> Callable[..., object]:
    def load(*_: object, **__: object) -> object:
        raise error

    return load


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_is_one_clean_line_with_its_exit_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, kind: type[EdgespecError]
) -> None:
    monkeypatch.setattr(
        "edgespec.api.load", raising(kind("It\nbroke\x1b]52;c;aGk=\x07.  Try again."))
    )
    result = cli("run", "Hi", "--json")
    assert result.exit_code == kind.exit_code
    assert result.stdout == ""
    assert result.stderr == "edgespec: It broke. Try again.\n"


def test_the_exit_codes_are_those_that_were_promised() -> None:
    promised = {"EdgespecError": 1, "BadInput": 2, "NotFound": 3, "IncompatiblePair": 6}
    found = {kind.__name__: kind.exit_code for kind in ALL_ERRORS}
    assert promised.items() <= found.items()
    assert found["Cancelled"] == 130


def test_a_bug_is_one_line_that_says_how_to_see_more(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.api.load", raising(ZeroDivisionError("by\nzero")))
    result = cli("run", "Hi")
    assert result.exit_code == 1
    assert result.stderr == (
        "edgespec: internal error: ZeroDivisionError: by zero; run again with --verbose for the"
        " trace\n"
    )


@pytest.mark.parametrize("arguments", [("--verbose", "run", "Hi"), ("run", "Hi", "--verbose")])
def test_verbose_shows_the_trace(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setattr("edgespec.api.load", raising(ZeroDivisionError("\x1b[2J")))
    told = cli(*arguments).stderr
    assert "Traceback" in told
    assert "in load" in told
    assert told.endswith("edgespec: internal error: ZeroDivisionError:\n")
    assert "\x1b" not in told


def test_an_answer_that_breaks_keeps_its_text_and_its_own_line(cli: Cli, model: FakeModel) -> None:
    model.script = lambda: iter([words("half"), EdgespecError("It broke.")])
    result = cli("run", "Hi")
    assert (result.exit_code, result.stdout) == (1, "half\n")
    assert result.stderr == "edgespec: It broke.\n"
    assert model.closed


def test_ctrl_c_while_loading_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgespec.api.load", raising(KeyboardInterrupt()))
    result = cli("run", "Hi")
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", "edgespec: stopped\n")


@pytest.mark.parametrize("arguments", [("nonsense",), ("run", "--nonsense"), ("list", "extra")])
def test_a_usage_error_is_one_line_that_names_the_help(
    cli: Cli, arguments: tuple[str, ...]
) -> None:
    result = cli(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--help'" in result.stderr
    assert result.stderr.count("\n") == 1


def test_version_is_one_line_on_stdout(cli: Cli) -> None:
    result = cli("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("edgespec ")


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(flag: str) -> None:
    heavy = "numpy textual rich llama_cpp mlx edgespec.api edgespec_llamacpp huggingface_hub"
    program = (
        f"import sys\nsys.argv = ['edgespec', {flag!r}]\nfrom edgespec.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
        f"print([name for name in {heavy!r}.split() if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout
    assert done.stderr == "[]\n"


def read_until(process: subprocess.Popen[str], text: str) -> str:
    assert process.stdout
    seen = ""
    while text not in seen:
        piece = process.stdout.read(1)
        assert piece, f"ended before {text!r}: {seen!r}"
        seen += piece
    return seen


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
class TestProcesses:
    """With a process of its own and real signals."""

    def test_ctrl_c_keeps_the_text_that_was_there(self, start: Start) -> None:
        with start("endless", "run", "Hi") as process:
            seen = read_until(process, " so so so")
            process.send_signal(signal.SIGINT)
            rest, told = process.communicate(timeout=20)
        assert process.returncode == 130
        assert (seen + rest).endswith(" so\n")
        assert told == "edgespec: stopped before the answer was complete\n"

    def test_ctrl_c_works_while_the_prompt_is_read(self, start: Start) -> None:
        with start("reading", "run", "Hi", "--events") as process:
            read_until(process, '"read": 3')
            process.send_signal(signal.SIGINT)
            rest, told = process.communicate(timeout=20)
        assert process.returncode == 130
        last = json.loads(rest.splitlines()[-1])
        assert (last["event"], last["finish_reason"], last["text"]) == ("finished", "cancelled", "")
        assert told == "edgespec: stopped before the answer was complete\n"

    def test_json_that_is_stopped_is_whole(self, start: Start) -> None:
        with start("endless", "run", "Hi", "--json", "--verbose") as process:
            assert process.stderr
            assert "measuring" in process.stderr.readline()
            # the first pass of the model comes later than the handler of Ctrl+C
            threading.Event().wait(0.5)
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=20)
        assert process.returncode == 130
        answer = json.loads(out)
        assert answer["finish_reason"] == "cancelled"
        assert answer["text"] == " so" * answer["stats"]["rounds"] != ""

    def test_a_reader_that_leaves_ends_the_answer_quietly(self, start: Start) -> None:
        with start("endless", "run", "Hi") as process:
            read_until(process, " so")
            assert process.stdout
            process.stdout.close()
            assert process.wait(timeout=20) == 1
            assert process.stderr
            assert process.stderr.read() == ""

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
    def test_a_full_disk_is_one_line(self, start: Start) -> None:
        with (
            Path("/dev/full").open("w") as full,
            start("answer", "run", "Hi", stdout=full) as process,
        ):
            _, told = process.communicate(timeout=20)
        assert process.returncode == 1
        assert told.startswith("edgespec: The result cannot be written: No space left")
        assert told.count("\n") == 1

    @pytest.mark.skipif(sys.platform == "win32", reason="closes the streams of a forked process")
    @pytest.mark.parametrize("closed", ["stdin", "stdout", "stderr"])
    def test_a_stream_that_is_closed_breaks_nothing(self, start: Start, closed: str) -> None:
        number = ("stdin", "stdout", "stderr").index(closed)
        with start("answer", "run", "Hi", preexec_fn=lambda: os.close(number)) as process:
            out, told = process.communicate(timeout=20)
        assert (process.returncode, told) == (0, "")
        assert out == ("" if closed == "stdout" else TEXT + "\n")

    def test_output_is_utf8_whatever_the_locale(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PYTHONIOENCODING", "ascii")
        with start("umlaut", "run", "Hi") as process:
            out, told = process.communicate(timeout=20)
        assert (process.returncode, out, told) == (0, "größer\n", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
def test_a_second_ctrl_c_gives_up_waiting() -> None:
    before = signal.getsignal(signal.SIGINT)
    with CtrlC() as ctrl_c:
        signal.raise_signal(signal.SIGINT)
        assert ctrl_c.pressed
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


LEAVING = """
import atexit, sys, threading, click
from edgespec.cli import leaving, root

@click.command()
def stop():
    raise KeyboardInterrupt

leaving._PATIENCE_S = float(sys.argv[2])
root.edgespec.add_command(stop, "stop")
wait = sys.stdin.read
threading.Thread(target=wait).start() if sys.argv[1] == "thread" else atexit.register(wait)
sys.argv = ["edgespec", "stop"]
root.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
@pytest.mark.parametrize(
    ("busy", "patience_s", "code"),
    [("thread", "60", 130), ("atexit", "60", 130), ("thread", "0", -signal.SIGINT)],
)
def test_while_leaving_ctrl_c_changes_nothing_until_it_has_to_kill(
    busy: str, patience_s: str, code: int
) -> None:
    pipes = dict.fromkeys(("stdin", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        [sys.executable, "-c", LEAVING, busy, patience_s], encoding="utf-8", **pipes
    ) as process:
        assert process.stderr
        assert process.stderr.readline() == "edgespec: stopped\n"
        threading.Event().wait(0.2)  # the end of the program has begun
        for _ in range(2):
            process.send_signal(signal.SIGINT)
            threading.Event().wait(0.05)
        _, told = process.communicate(timeout=20)
    assert (process.returncode, told) == (code, "")


def test_an_interrupt_while_an_error_is_told_leaves_no_trace() -> None:
    program = (
        "import sys\nfrom edgespec.cli import leaving, main\n"
        "def report(error, **_):\n    raise KeyboardInterrupt\n"
        "leaving.report = report\nsys.argv = ['edgespec', 'nonsense']\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent another way there")
def test_ctrl_c_between_imports_is_one_line_however_often_it_comes() -> None:
    program = (
        "import os, signal, sys\nfrom edgespec.cli import main\n"
        "class Finder:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'edgespec.cli.root':\n"
        "            [signal.raise_signal(signal.SIGINT) for _ in range(2)]\n"
        "sys.meta_path.insert(0, Finder())\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "edgespec: stopped\n")
