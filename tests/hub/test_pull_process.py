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

NO_TOKEN = ("HF_TOKEN", "HF_TOKEN_PATH")  # the file is read only without the variable


def environment(hub: FakeHub, cache: Path, tmp_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_CACHE": str(cache),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": TOKEN,
    }


@pytest.fixture
def at_the_hub(models: FakeHub, hub_cache: Path, tmp_path: Path) -> dict[str, str]:
    return environment(models, hub_cache, tmp_path)


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
    assert "100%" not in err, "a small file needs no lines"
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


@pytest.mark.skipif(os.name == "nt", reason="there interrupts are sent in another way")
def test_several_interrupts_end_as_one_does(
    fake_hub: FakeHub,
    client: Hub,
    tmp_path: Path,
    tiny_models: TinyModels,
    process: Callable[..., subprocess.Popen[str]],
) -> None:
    content = tiny_models(seed=4).read_bytes() + bytes(100 * PIECE)
    fake_hub.add(TARGET, {"m-Q8_0.gguf": content})
    fake_hub.pause_s = 0.02
    child = process(TARGET, "--yes", env=environment(fake_hub, client.cache, tmp_path))
    part = client.folder(TARGET).part(client.snapshot(TARGET).files[0].blob)
    while child.poll() is None and not (part.exists() and part.stat().st_size > 3 * PIECE):
        time.sleep(0.01)
    for _ in range(20):
        child.send_signal(signal.SIGINT)
        time.sleep(0.005)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err.splitlines()[-1].startswith("edgespec: Stopped. What has arrived is kept")
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("variable", "code", "says"),
    [
        ("HF_ENDPOINT=http://[::1", 2, "HF_ENDPOINT is 'http://[::1', which is no hub's"),
        ("HF_ENDPOINT=not an address", 2, "HF_ENDPOINT is 'not an address'"),
        ("HF_ENDPOINT=ftp://127.0.0.1", 2, "HF_ENDPOINT is"),
        ("HF_ENDPOINT=http://127.0.0.1:99999", 2, "HF_ENDPOINT is"),
        ("HF_TOKEN=hf_gehe\u0131m", 4, "The token for the hub is wrong"),
        ("HF_TOKEN=hf_a b", 4, "The token for the hub is wrong"),
        ("HF_TOKEN_PATH={file}/token", 1, "so no token can be read; check HF_HOME"),
        ("EDGESPEC_DATA_DIR={file}", 1, "so nothing was fetched; check its permissions"),
    ],
)
def test_a_variable_that_cannot_be_meant_is_named_in_one_line(
    at_the_hub: dict[str, str], tmp_path: Path, variable: str, code: int, says: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    name, _, value = variable.format(file=tmp_path / "file").partition("=")
    env = {key: kept for key, kept in at_the_hub.items() if (key, name) != NO_TOKEN}
    command = [sys.executable, "-m", "edgespec", "pull", TARGET, "--yes"]
    env = {**env, name: value}
    done = subprocess.run(
        command,
        check=False,
        env={**env, name: value},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not Path(env["HF_HUB_CACHE"]).exists()


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
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
