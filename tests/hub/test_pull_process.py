"""`edgespec pull` as it is installed: its own process, real variables, a real terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_hub import PIECE, FakeHub
from scene import DRAFT, TARGET, TOKEN
from tiny_models import TinyModels

from edgespec.models.hub import Hub


def environment(hub: FakeHub, cache: Path, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_CACHE": str(cache),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": TOKEN,
    }


@pytest.fixture
def process() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, env: dict[str, str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "edgespec", "pull", *arguments]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, encoding="utf-8")
        )
        return started[-1]

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_the_installed_command_reads_the_variables_of_the_hub(
    models: FakeHub,
    hub_cache: Path,
    tmp_path: Path,
    process: Callable[..., subprocess.Popen[str]],
) -> None:
    child = process(TARGET, "--yes", env=environment(models, hub_cache, tmp_path))
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert out == f"{TARGET} is here. Next: edgespec chat {TARGET}\n"
    assert "big-Q4_K_M.gguf: 100% of" in err
    assert TOKEN not in out + err
    by_host = {(seen.host, seen.headers.get("authorization")) for seen in models.seen}
    assert by_host == {("hub", f"Bearer {TOKEN}"), ("storage", None)}
    offline = {**environment(models, hub_cache, tmp_path), "HF_HUB_OFFLINE": "1"}
    child = process(DRAFT, "--yes", env=offline)
    assert "HF_HUB_OFFLINE is set" in child.communicate(timeout=120)[1]
    assert child.returncode == 5


@pytest.mark.skipif(os.name == "nt", reason="there interrupts are sent in another way")
def test_an_interrupt_keeps_what_has_arrived_and_says_so(
    fake_hub: FakeHub,
    client: Hub,
    tmp_path: Path,
    tiny_models: TinyModels,
    process: Callable[..., subprocess.Popen[str]],
) -> None:
    content = tiny_models(seed=4).read_bytes() + bytes(100 * PIECE)
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content})
    env = environment(fake_hub, client.cache, tmp_path)
    fake_hub.pause_s = 0.02
    child = process(TARGET, "--yes", env=env)
    part = client.folder(TARGET).part(client.snapshot(TARGET).files[0].blob)
    while child.poll() is None and not (part.exists() and part.stat().st_size > 3 * PIECE):
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err.splitlines()[-1] == (
        "edgespec: Stopped. What has arrived is kept, and the same line goes on from there."
    )
    kept = part.stat().st_size
    assert content.startswith(part.read_bytes())
    fake_hub.pause_s = 0
    fake_hub.seen.clear()
    child = process(TARGET, "--yes", env=env)
    assert child.communicate(timeout=120)[0].startswith(f"{TARGET} is here.")
    assert fake_hub.content_requests()[-1].headers["range"] == f"bytes={kept}-"


def test_at_a_terminal_the_plan_comes_first_then_the_question_then_bars(
    models: FakeHub, hub_cache: Path, tmp_path: Path
) -> None:
    pexpect = pytest.importorskip("pexpect")
    env = {**environment(models, hub_cache, tmp_path), "TERM": "xterm", "COLUMNS": "120"}
    child = pexpect.spawn(
        sys.executable, ["-m", "edgespec", "pull", TARGET, "--draft", DRAFT],
        env=env, encoding="utf-8", timeout=60, dimensions=(40, 120),
    )  # fmt: skip
    child.expect("memory .* free")
    child.expect("Fetch this")
    child.sendline("y")
    child.expect("big-Q4_K_M.gguf.*MB/s")
    child.expect("small-Q8_0.gguf")
    child.expect("is here. Next: edgespec chat")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
