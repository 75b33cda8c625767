"""A real model, SmolLM2-135M-Instruct, says the same whatever is guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from edgespec import Message, Model, Reply, Speculation, load
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.decoding.noise import Noise, reply_key
from edgespec.models.store import find_demo
from edgespec_llamacpp.requantize import requantize

pytest.importorskip("llama_cpp", reason="llama.cpp is not installed")

PROMPTS = Path(__file__).with_name("prompts.jsonl")
ARMS = {
    "none": Speculation("none"),
    "ngram": Speculation("ngram"),
    "ngram, always 6": Speculation("ngram", 6),
    "auto": Speculation("auto"),
}

TEMPERATURE = 0.8

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


@pytest.fixture(scope="module")
def copy(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same weights in bf16."""
    path = tmp_path_factory.mktemp("bf16") / "smollm2-bf16.gguf"
    requantize(weights, path, "bf16")
    return path


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


def test_bf16_gives_identical_ids_when_strict(copy: Path) -> None:
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


def margin(model: Model, prompt: str, plain: Reply, index: int) -> float:
    """Score between the best two tokens of plain decoding at one place of the reply, noise
    included: what rounding had to bridge to make another token the best."""
    prompt_ids = model._desk.encoder.encode([Message("user", prompt)], {})
    text = np.concatenate([prompt_ids, np.array(plain.token_ids[:index], dtype=np.int32)])
    session = model.loaded.target.session
    list(session.prefill(text))
    row = session.verify(EMPTY).logits(ROOT).astype(np.float64)
    noise = Noise(plain.seed, reply_key(prompt_ids))
    noisy = row + TEMPERATURE * noise.gumbel(index, np.arange(len(row), dtype=np.int32))
    session.reset()
    best, second = np.sort(noisy)[::-1][:2]
    return float(best - second)


def test_bf16_without_strict_parts_from_plain_only_at_a_near_tie(copy: Path) -> None:
    """The stated epsilon: twice the largest difference that the measurement found."""
    parted = same = 0
    sampler = {"temperature": TEMPERATURE, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    with load(target=str(copy), context=2048) as model:
        epsilon = 2 * model.loaded.target.measurement.largest_difference
        assert 0 < epsilon < 1
        for prompt in prompts()[3:11]:
            replies = answers(model, prompt, max_tokens=32, **sampler)
            plain = replies.pop("none")
            for reply in replies.values():
                pairs = zip(reply.token_ids, plain.token_ids, strict=False)
                at = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
                same += at is None
                if at is not None:
                    parted += 1
                    assert margin(model, prompt, plain, at) < epsilon, (prompt, at)
    assert same > parted


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
