"""Guesses accepted a round behind a long conversation, beside those of a fresh start.

Every prompt is answered by a model that was emptied, and by one that has just had a long
conversation about something else. The planner keeps what it learned of how often guesses are
right; nothing of the conversation itself may stay. Differences: means over prompts, intervals 95 %.

uv run python benchmarks/fresh_start.py demo --arms ngram:4,recycling:4,draft:4,tree:8,auto
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import edgespec
from edgespec.api import Model
from edgespec.bench.arms import speculation
from edgespec.bench.prompts import Prompt, shipped
from edgespec.errors import EdgespecError

LONG_TURNS = 3
DRAWS = 4000  # of the bootstrap


def accepted(model: Model, prompt: Prompt, tokens: int) -> float:
    """Guesses accepted a round in the answer to a prompt's first turn."""
    stats = model.chat(temperature=0.0, max_tokens=tokens).send(prompt.turns[0]).stats
    return stats.accepted / max(1, stats.rounds)


def long_one(model: Model, prompts: Sequence[Prompt], tokens: int) -> None:
    chat = model.chat(temperature=0.0, max_tokens=tokens)
    for prompt in prompts:
        chat.send(prompt.turns[0])


def compared(model: Model, asked: argparse.Namespace) -> list[tuple[float, float]]:
    """For each prompt, fresh and behind a long conversation."""
    prompts = shipped(("chat", "code"))
    order = np.random.default_rng(0).permutation(len(prompts)).tolist()
    chosen = [prompts[n] for n in order[LONG_TURNS:][: asked.prompts]]
    before = [prompts[n] for n in order[:LONG_TURNS]]
    pairs: list[tuple[float, float]] = []
    for prompt in chosen:
        model.forget()
        fresh = accepted(model, prompt, asked.tokens)
        model.forget()
        long_one(model, before, 2 * asked.tokens)
        pairs.append((fresh, accepted(model, prompt, asked.tokens)))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", nargs="?")
    parser.add_argument("--target")
    parser.add_argument("--draft")
    parser.add_argument("--arms", default="ngram:4,recycling:4,tree:8,auto")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int)
    asked = parser.parse_args()
    try:
        model = edgespec.load(
            asked.pair, target=asked.target, draft=asked.draft, threads=asked.threads, context=2048
        )
        with model:
            print(f"{asked.prompts} prompts, {asked.tokens} tokens, greedy; accepted a round\n")
            print("| | fresh | behind a long one | difference |\n| --- | --- | --- | --- |")
            for arm in asked.arms.split(","):
                model.speculation = speculation(arm)
                pairs = np.array(compared(model, asked))
                gaps = pairs[:, 1] - pairs[:, 0]
                drawn = np.random.default_rng(0).integers(len(gaps), size=(DRAWS, len(gaps)))
                low, high = np.quantile(gaps[drawn].mean(1), (0.025, 0.975))
                fresh, second = pairs.mean(0)
                gap = f"{gaps.mean():+.3f} ({low:+.3f} to {high:+.3f})"
                print(f"| {arm} | {fresh:.3f} | {second:.3f} | {gap} |", flush=True)
    except EdgespecError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
