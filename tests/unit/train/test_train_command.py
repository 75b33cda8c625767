"""The whole command on a tiny target: from its answers to a pair that guesses with the drafter."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_models import TinyModels

from edgespec.api import Speculation, load
from edgespec.models.id_table import IDS_KEY
from edgespec.models.installed import find_installed
from edgespec.models.model_header import header_of
from edgespec.train.records import Shelf

pytest.importorskip("llama_cpp")
pytest.importorskip("torch", reason="torch is in the extra 'train'")

DRIVER = Path(__file__).with_name("train_trials.py")
PATIENCE_S = 240.0
SMALL = ("--tokens", "900", "--vocabulary", "64", "--memory", "4", "--threads", "1", "--time", "9")


@pytest.fixture
def target(tiny_models: TinyModels) -> Path:
    return tiny_models(layers=2)


def _command(target: Path, *more: str) -> list[str]:
    named = ("train", "--target", str(target), "--out", "mine")
    return [sys.executable, str(DRIVER), *named, *SMALL, *more]


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def _killed(command: list[str], when: Callable[[], bool]) -> None:
    """Start a command and kill it, in the middle of whatever it does, once `when` holds."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + PATIENCE_S
    while not when():
        assert running.poll() is None, running.communicate()[1].decode()
        assert time.monotonic() < until
        time.sleep(0.01)
    running.kill()
    assert running.wait() == -signal.SIGKILL
    assert running.stderr is not None
    running.stderr.close()


def _contents(shelf: Shelf) -> list[bytes]:
    return [path.read_bytes() for path in shelf.shards()]


def test_killed_in_each_phase_it_goes_on_and_ends_with_a_pair(
    target: Path, cache_of_the_test: Path
) -> None:
    def folder() -> Path:
        found = list((cache_of_the_test / "training").glob("*/answers"))
        return found[0].parent if found else cache_of_the_test / "not yet"

    def shelf() -> Shelf:
        return Shelf(folder() / "answers")

    command = _command(target, "--json")
    _killed(command, lambda: len(shelf().shards()) >= 2)
    first = _contents(shelf())
    assert first
    assert shelf().census().tokens > 0, "every shard is whole"
    checkpoint = folder() / "courses" / "mine" / "training.pt"
    _killed(command, checkpoint.exists)
    assert _contents(shelf())[: len(first)] == first
    learned_from = _contents(shelf())
    assert shelf().census().tokens >= 900
    (folder() / "answers" / ".answers-00007.npz.half").write_bytes(b"PK")
    ended = _run(command)
    assert ended.returncode == 0, ended.stderr
    assert "going on with the training that was begun" in ended.stderr
    assert _contents(shelf()) == learned_from
    assert not [*(folder() / "answers").glob(".*"), *(folder() / "courses").glob("*/training.pt")]
    told = json.loads(ended.stdout)
    assert told["pair"] == "mine"
    assert told["answer_tokens"] == shelf().census().tokens
    assert told["vocabulary"] <= 64
    _guesses_with_it(target)


def _guesses_with_it(target: Path) -> None:
    pair = find_installed("mine")
    assert pair is not None
    assert pair.trained
    draft = pair.path(pair.draft) if pair.draft else None
    assert draft is not None
    table = header_of(draft).id_table
    in_folder = json.loads((draft.parent / "drafter" / "config.json").read_text())
    assert table is not None
    assert table.ids.tolist() == in_folder[IDS_KEY]
    with load("mine", threads=1, context=256) as model:
        model.speculation = Speculation(proposer="draft", draft_tokens=2)
        reply = model.generate("Hello", max_tokens=24, temperature=0.0)
        model.speculation = Speculation(proposer="none")
        assert model.generate("Hello", max_tokens=24, temperature=0.0).text == reply.text
        assert reply.stats.drafted > 0


def test_ctrl_c_keeps_what_was_learned(target: Path, cache_of_the_test: Path) -> None:
    running = subprocess.Popen(_command(target), stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    with running.stderr as lines:
        for line in lines:
            if line.startswith("training:"):
                running.send_signal(signal.SIGINT)
                break
        rest = lines.read()
    assert running.wait() == 130, rest
    assert rest.endswith("edgespec: stopped\n")
    assert list(cache_of_the_test.glob("training/*/courses/mine/training.pt"))


def test_your_texts_are_learned_from_and_do_not_stay(
    target: Path, cache_of_the_test: Path, tmp_path: Path
) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("the model wrote one word after the other, and kept it. " * 60)
    ended = _run([*_command(target, "--data", str(text))])
    assert ended.returncode == 0, ended.stderr
    assert "'edgespec chat mine' guesses with it" in ended.stdout
    assert not list(cache_of_the_test.rglob("*.npz"))
    assert not os.listdir(next(cache_of_the_test.glob("training/*/courses")))


def test_a_checkpoint_that_is_none_ends_in_one_line_and_fresh_helps(
    target: Path, cache_of_the_test: Path
) -> None:
    def checkpoints() -> list[Path]:
        return list(cache_of_the_test.glob("training/*/courses/mine/training.pt"))

    command = _command(target)
    _killed(command, lambda: bool(checkpoints()))
    checkpoints()[0].write_bytes(b"PK\x03\x04")
    ended = _run(command)
    assert ended.returncode == 2
    assert "training.pt cannot be gone on with" in ended.stderr.splitlines()[-1]
    assert "--fresh begins anew" in ended.stderr.splitlines()[-1]
    assert _run([*command, "--fresh"]).returncode == 0
