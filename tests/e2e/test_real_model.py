"""A real model, SmolLM2-135M-Instruct, says the same whatever is guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgespec import Model, Reply, Speculation, load
from edgespec.models.store import find_demo
from edgespec_llamacpp.requantize import requantize

PROMPTS = Path(__file__).parents[2] / "benchmarks" / "prompts.jsonl"
ARMS = {
    "none": Speculation("none"),
    "ngram": Speculation("ngram"),
    "ngram, always 6": Speculation("ngram", 6),
    "auto": Speculation("auto"),
}

pytestmark = pytest.mark.real_model


def prompts() -> list[str]:
    return [json.loads(line)["prompt"] for line in PROMPTS.read_text().splitlines()]


@pytest.fixture(scope="module")
def weights() -> Path:
    path = find_demo()
    assert path is not None, "the dev group brings the demo's weights"
    return path


@pytest.fixture(scope="module")
def shipped(weights: Path) -> Iterator[Model]:
    with load(target=str(weights), context=2048) as model:
        yield model


def answers(model: Model, prompt: str, **settings: float | int) -> dict[str, Reply]:
    replies = {}
    for name, speculation in ARMS.items():
        model.speculation = speculation
        replies[name] = model.generate(prompt, seed=7, **settings)  # type: ignore[arg-type]
    return replies


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_q4_1_gives_identical_ids_with_every_proposer(shipped: Model, temperature: float) -> None:
    drafted = accepted = 0
    for prompt in prompts():
        replies = answers(shipped, prompt, temperature=temperature, max_tokens=24)
        plain = replies.pop("none")
        for name, reply in replies.items():
            assert reply.token_ids == plain.token_ids, (name, prompt)
            drafted += reply.stats.drafted
            accepted += reply.stats.accepted
    assert 0 < accepted < drafted


def test_bf16_gives_identical_ids_when_strict(weights: Path, tmp_path: Path) -> None:
    copy = tmp_path / "smollm2-bf16.gguf"
    requantize(weights, copy, "bf16")
    accepted = 0
    with load(target=str(copy), context=2048, strict=True) as model:
        for temperature in (0.0, 0.8):
            for prompt in prompts()[3:8]:
                replies = answers(model, prompt, temperature=temperature, max_tokens=32)
                plain = replies.pop("none")
                for name, reply in replies.items():
                    assert reply.token_ids == plain.token_ids, (name, prompt)
                    accepted += reply.stats.accepted
    assert accepted > 0


def test_the_command_answers_with_the_demo_and_counts_what_it_did() -> None:
    command = [sys.executable, "-m", "edgespec", "run", "demo", "Name three colors.", "--json"]
    done = subprocess.run(
        [*command, "--temperature", "0", "--max-tokens", "24"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["token_ids"]) == answer["stats"]["completion_tokens"] > 0
    assert answer["text"].strip()
    assert answer["stats"]["tokens_per_second"] > 0
