"""What the chat costs: seconds to the first picture, and decode speed beside `edgespec run`.

Runs the real program in a pseudo-terminal, in turns with `run` on the same prompt and seed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pexpect

PROMPT = "Explain in a few paragraphs how tides come about and why their height changes."
PLACEHOLDER = "Ask something"
_PATIENCE_S = 900.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, help="a GGUF file")
    parser.add_argument("--draft", help="a GGUF file")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    flags = ["--target", given.target, "--temperature", "0", "--seed", "1"]
    flags += ["--max-tokens", str(given.tokens)]
    flags += ["--draft", given.draft] if given.draft else []
    ratios, paints = [], []
    for number in range(given.runs):
        run = _by_run(flags)
        paint_s, chat = _by_chat(flags)
        paints.append(paint_s)
        ratios.append(chat / run)
        print(f"{number + 1}: run {run:.2f} tok/s, chat {chat:.2f}, first picture {paint_s:.2f} s")
    print(
        f"chat / run: median {statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
    )
    print(f"first picture: median {statistics.median(paints):.2f} s, at most {max(paints):.2f}")


def _by_run(flags: list[str]) -> float:
    command = [sys.executable, "-m", "edgespec", "run", "--json", *flags, PROMPT]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(told.stdout)["stats"]["tokens_per_second"])


def _by_chat(flags: list[str]) -> tuple[float, float]:
    """Seconds until the prompt box is there, and tokens a second as the history has them."""
    with tempfile.TemporaryDirectory() as data:
        environment = {**os.environ, "EDGESPEC_DATA_DIR": data, "TERM": "xterm-256color"}
        started_s = time.perf_counter()
        chat = pexpect.spawn(
            sys.executable,
            ["-m", "edgespec", "chat", *flags],
            env=environment,  # type: ignore[arg-type]
            dimensions=(40, 120),
            timeout=_PATIENCE_S,
        )
        chat.expect_exact(PLACEHOLDER)
        paint_s = time.perf_counter() - started_s
        chat.expect_exact("marks:")  # said once the model is ready
        chat.send(PROMPT + "\r")
        speed = _kept_speed(chat, Path(data))
        chat.sendcontrol("q")
        chat.expect(pexpect.EOF)
        return paint_s, speed


def _kept_speed(chat: pexpect.spawn, data: Path) -> float:
    until_s = time.perf_counter() + _PATIENCE_S
    while time.perf_counter() < until_s:
        asleep_until_s = time.perf_counter() + 2.0  # looking costs the program its time
        while time.perf_counter() < asleep_until_s:
            with contextlib.suppress(pexpect.TIMEOUT):
                chat.read_nonblocking(1 << 16, timeout=0.2)
        if (speed := _speed_in(data)) is not None:
            return speed
    raise SystemExit("the answer did not end")


def _speed_in(data: Path) -> float | None:
    from edgespec.history import History, State

    file = data / "history.sqlite3"
    if not file.exists():
        return None
    history = History.open(file)
    try:
        for summary in history.recent(1):
            last = history.load(summary.id).path[-1]
            if last.role == "assistant" and last.state is not State.WRITING and last.stats:
                return float(last.stats["tokens_per_second"])
    finally:
        history.close()
    return None


if __name__ == "__main__":
    main()
