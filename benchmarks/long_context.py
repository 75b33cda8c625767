"""Speed of `auto` against plain decoding as the text grows, and the wait for the first token.

    uv run python benchmarks/long_context.py --target T.gguf --draft D.gguf --lengths 64,1024,4096

The text is prose that does not repeat itself (numbered sentences of shuffled words), so that there
is little to gain and everything to lose. Both arms answer once before anything counts, so that the
target and the drafter have read the prompt; then they take turns, and who goes first changes from
run to run. Then a prompt of 2,000 tokens is read anew by each arm, and a second turn is said in a
chat.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import edgespec
from edgespec import Model, Speculation

_ARMS = "none", "auto"
_WORDS = [
    "harbour",
    "ledger",
    "copper",
    "winter",
    "lantern",
    "ferry",
    "orchard",
    "signal",
    "granite",
    "meadow",
    "thread",
    "kettle",
    "ribbon",
    "compass",
    "anchor",
    "barley",
    "candle",
    "feather",
    "gravel",
    "hollow",
    "island",
    "juniper",
    "kernel",
    "ladder",
]


def prose(model: Model, tokens: int) -> str:
    """A question behind about so many tokens of prose."""
    dice, lines = random.Random(5), list[str]()
    text = ""
    while model.count_tokens(text) < tokens:
        for _ in range(max(1, tokens // 200)):
            words = " ".join(dice.sample(_WORDS, 9))
            lines.append(f"{len(lines) + 1}. The {words} was noted.")
        text = " ".join(lines)
    return text + "\n\nWhat is a tide? Answer in your own words."


def decode(model: Model, prompt: str, arm: str, tokens: int) -> tuple[float, float]:
    """Tokens a second, and seconds to the first token."""
    model.speculation = Speculation(arm)
    stats = model.generate(prompt, temperature=0.0, seed=1, max_tokens=tokens).stats
    return stats.tokens_per_second or float("nan"), stats.time_to_first_token_s or float("nan")


def in_turns(runs: int) -> Iterator[tuple[str, str]]:
    """Which arm answers first and which second, run by run."""
    for run in range(runs):
        yield ("auto", "none") if run % 2 else ("none", "auto")


def speeds(model: Model, prompt: str, tokens: int, runs: int) -> list[dict[str, float]]:
    """Tokens a second by arm, for each run; the caches hold the prompt from the start."""
    for arm in _ARMS:
        decode(model, prompt, arm, tokens)
    return [{arm: decode(model, prompt, arm, tokens)[0] for arm in arms} for arms in in_turns(runs)]


def waits(model: Model, prompt: str, runs: int) -> dict[str, float]:
    """Seconds to the first token by arm, the prompt read anew: the shortest of all runs."""
    told: dict[str, list[float]] = {arm: [] for arm in _ARMS}
    for arms in in_turns(runs):
        for arm in arms:
            model.forget()
            told[arm].append(decode(model, prompt, arm, 8)[1])
    return {arm: min(seconds) for arm, seconds in told.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--draft", type=Path)
    parser.add_argument("--lengths", default="64,1024,4096")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    lengths = [int(n) for n in options.lengths.split(",")]
    with edgespec.load(
        target=str(options.target),
        draft=str(options.draft) if options.draft else None,
        context=max(lengths) + max(lengths) // 10 + 512,
    ) as model:
        print("| tokens of text | plain, tokens/s | auto, times plain |\n|---|---|---|")
        for length in lengths:
            prompt = prose(model, length)
            told = speeds(model, prompt, options.tokens, options.runs)
            plain = median(speed["none"] for speed in told)
            ratios = [speed["auto"] / speed["none"] for speed in told]
            spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
            print(f"| {length} | {plain:.1f} | {median(ratios):.2f} {spread} |", flush=True)
        prompt = prose(model, min(2000, max(lengths)))
        wait = waits(model, prompt, 2)
        ratio = wait["auto"] / wait["none"]
        print(f"\nfirst token of that prompt: {wait['none']:.2f} s plain, auto {ratio:.3f}")
        chat = model.chat(temperature=0.0, max_tokens=16)
        chat.send(prompt)
        second = chat.send("And what is an ebb?").stats
        print(f"second turn: {second.reused_tokens} of {second.prompt_tokens} tokens reused")


if __name__ == "__main__":
    main()
