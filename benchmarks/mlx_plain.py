"""edgespec's plain path on MLX and mlx-lm's own generate_step, turn by turn in one process.

    uv run python benchmarks/mlx_plain.py [--folder MODEL_FOLDER] [--tokens 256] [--pairs 8]

Greedy, from the same prompt, on the same weights. Each pair of answers runs in the other order
than the one before; a ratio is taken in each pair, and the median of these is the result. Processor
time counts what other programs do not disturb; on a GPU only the clock tells. Without a folder a
llama with random weights is made: --layers and --width set how much there is to compute in a
pass, and with it how much the loop's own work weighs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.utils import load_model

from edgespec.backends import SessionOptions
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.nothing import Nothing
from edgespec_mlx.model import MlxModel, ModelFacts

_PROMPT = np.random.default_rng(0).integers(0, 384, 64).astype(np.int32)


class _NoText:
    """Ids go in and out; nothing here is text."""

    vocab, end_tokens, bos = 0, frozenset[int](), None

    def encode(self, text: str, *, special: bool) -> list[int]:
        return []

    def piece(self, token: int) -> bytes:
        return b""

    def template(self) -> str | None:
        return None

    def special_text(self, name: str) -> str:
        return ""


def random_llama(layers: int, width: int) -> Any:
    code = importlib.import_module("mlx_lm.models.llama")
    mx.random.seed(0)
    arguments = code.ModelArgs(
        model_type="llama",
        hidden_size=width,
        num_hidden_layers=layers,
        intermediate_size=2 * width,
        num_attention_heads=width // 64,
        rms_norm_eps=1e-5,
        vocab_size=4096,
        tie_word_embeddings=False,
    )
    return code.Model(arguments)


def ours(model: MlxModel, options: SessionOptions, tokens: int) -> Callable[[], list[int]]:
    session = model.session(options)

    def answer() -> list[int]:
        session.reset()
        request = Request(_PROMPT, Sampling(0.0, seed=1), tokens)
        said: list[int] = []
        for event in speculate(session, request, Nothing()):
            if isinstance(event, Round):
                said += [token.token for token in event.tokens]
        return said

    return answer


def theirs(model: MlxModel, options: SessionOptions, tokens: int) -> Callable[[], list[int]]:
    loop = model.plain_loop(options)

    def answer() -> list[int]:
        loop.forget()
        return list(loop.answer(_PROMPT, tokens, ()))

    return answer


def timed(answer: Callable[[], list[int]]) -> tuple[float, float, list[int]]:
    """Seconds by the clock and of this process's processors, and the ids."""
    started, worked = perf_counter(), process_time()
    said = answer()
    return perf_counter() - started, process_time() - worked, said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="an MLX model: config.json and safetensors")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    chosen = parser.parse_args()
    if chosen.folder is None:
        module, config = random_llama(chosen.layers, chosen.width), {}
    else:
        module, config = load_model(chosen.folder)
    vocab = int(module(mx.array([[0]])).shape[-1])
    facts = ModelFacts("model", "model", "MLX", 4096, vocab, int(config.get("hidden_size", 0)))
    model = MlxModel(module, _NoText(), facts)
    options = SessionOptions(context=len(_PROMPT) + chosen.tokens + 8)
    arms = [ours(model, options, chosen.tokens), theirs(model, options, chosen.tokens)]
    (*_, first), (*_, second) = (timed(arm) for arm in arms)
    print(f"the same {len(first)} ids: {'yes' if first == second else 'NO'}")
    clock, processors = list[float](), list[float]()
    for pair in range(chosen.pairs):
        took = {which: timed(arms[which])[:2] for which in ((0, 1) if pair % 2 else (1, 0))}
        clock.append(took[0][0] / took[1][0])
        processors.append(took[0][1] / took[1][1])
        per_s = [chosen.tokens / took[which][0] for which in (0, 1)]
        print(f"edgespec {per_s[0]:.1f}, generate_step {per_s[1]:.1f} tokens/s")
    print(f"edgespec takes {_told(clock)} times generate_step's time,")
    print(f"and {_told(processors)} times its processor time; {mx.default_device()},")
    print(f"kernels {'not ' if _compile_off() else ''}compiled")


def _told(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def _compile_off() -> bool:
    return bool(os.environ.get("MLX_DISABLE_COMPILE"))


if __name__ == "__main__":
    main()
