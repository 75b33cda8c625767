"""SmolLM2 on MLX: converted from the demo's file, it says what llama.cpp says."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import edgespec
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.decoding.session import Session
from edgespec.models.store import find_demo
from edgespec_llamacpp.library import library
from edgespec_mlx.convert import converted
from edgespec_mlx.tokenizer import FolderTokenizer

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(find_demo() is None, reason="the demo's weights are not installed"),
]
PROMPTS = (
    "Why is the sky blue?",
    "Write a short story about a lighthouse keeper.",
    "def fibonacci(n):",
    "List three fruits and their colours.",
    "Translate to French: the cat sleeps on the table.",
)
TOKENS, EPSILON = 48, 1e-3
_ALL_F32 = 0  # enum llama_ftype


@pytest.fixture(scope="module")
def whole_floats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's weights in float32."""
    pytest.importorskip("llama_cpp", reason="llama.cpp is not installed")
    lib, demo = library(), find_demo()
    assert demo is not None
    target = tmp_path_factory.mktemp("f32") / "smollm2-f32.gguf"
    parameters = lib.llama_model_quantize_default_params()
    parameters.ftype, parameters.allow_requantize = _ALL_F32, True
    done = lib.llama_model_quantize(
        str(demo).encode(), str(target).encode(), ctypes.byref(parameters)
    )
    assert done == 0
    return target


@pytest.fixture(scope="module")
def both(whole_floats: Path) -> Iterator[tuple[edgespec.Model, edgespec.Model]]:
    settings = {"kv_type": "f32", "flash_attention": "off", "context": 512, "threads": 1}
    with (
        edgespec.load(target=str(whole_floats), backend="llamacpp", **settings) as native,
        edgespec.load(target=str(whole_floats), backend="mlx", **settings) as other,
    ):
        yield native, other


def test_the_demo_and_its_drafter_are_converted_and_it_answers(cache_of_the_test: Path) -> None:
    line = ["run", "demo", "Say hello.", "--backend", "mlx", "--max-tokens", "8"]
    said = subprocess.run(
        [sys.executable, "-m", "edgespec", *line],
        env=os.environ | {"MLX_DISABLE_COMPILE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.strip()
    assert len(list(cache_of_the_test.glob("mlx/*/*/model.safetensors"))) == 2


@pytest.mark.parametrize("prompt", PROMPTS)
def test_in_float32_it_says_what_llama_cpp_says(
    both: tuple[edgespec.Model, edgespec.Model], prompt: str
) -> None:
    read_by_llama_cpp, read_by_mlx = (prompt_ids(model, prompt) for model in both)
    assert read_by_llama_cpp == read_by_mlx
    native, other = (
        model.generate(prompt, max_tokens=TOKENS, temperature=0.0).token_ids for model in both
    )
    same = next(
        (n for n, pair in enumerate(zip(native, other, strict=False)) if len({*pair}) > 1), None
    )
    if same is None:
        assert native == other
        return
    tokens = [*read_by_mlx, *native[:same]]
    assert margin(both[0].loaded.target.session, tokens) < EPSILON


def prompt_ids(model: edgespec.Model, prompt: str) -> list[int]:
    ids: list[int] = model._desk.encoder.encode([edgespec.Message("user", prompt)], {}).tolist()
    return ids


def margin(session: Session, tokens: list[int]) -> float:
    """How far the best score is from the second."""
    list(session.prefill(np.array(tokens, np.int32)))
    row = np.sort(session.verify(EMPTY).logits(ROOT))
    return float(row[-1] - row[-2])


def test_its_text_is_split_as_by_llama_cpp(both: tuple[edgespec.Model, edgespec.Model]) -> None:
    native, other = (model.loaded.models[0].tokenizer for model in both)
    assert isinstance(other, FolderTokenizer)
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    for text in (readme, "  a\n\n b\t12345 é 你好 🙂", *PROMPTS):
        assert native.encode(text, special=False) == other.encode(text, special=False)
    assert native.end_tokens == other.end_tokens
    assert native.bos == other.bos
    assert native.template() == other.template()


def test_the_demo_as_it_is_shipped_keeps_its_size() -> None:
    demo = find_demo()
    assert demo is not None
    folder = converted(demo, print)
    size = (folder / "model.safetensors").stat().st_size
    assert size < 1.1 * demo.stat().st_size
