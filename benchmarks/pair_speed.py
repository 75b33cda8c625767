"""Decode speed of a pair by category: plain, fixed drafts and auto, interleaved in one process.

    uv run python benchmarks/pair_speed.py --target T.gguf --draft D.gguf --runs 5

Every arm answers every prompt once a run, greedily and with the same seed; arms take turns on
each prompt, in an order that rotates, and both caches are emptied before each answer. Ratios are
to `none` on the same prompt in the same run; printed are medians, with the range of the runs.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections import defaultdict
from pathlib import Path
from statistics import median

import edgespec
from edgespec import Model, Speculation

PROMPTS = Path(__file__).with_name("prompts.jsonl")


def arm(name: str) -> Speculation:
    """`none`, `ngram`, `draft`, `auto`, or one of these with a fixed length: `draft:6`."""
    proposer, _, tokens = name.partition(":")
    return Speculation(proposer, int(tokens) if tokens else None)


def answer(model: Model, prompt: str, name: str, tokens: int) -> tuple[float, list[int]]:
    """Decode speed in tokens a second, and the ids."""
    model.forget()
    model.speculation = arm(name)
    reply = model.generate(prompt, temperature=0.0, seed=1, max_tokens=tokens)
    return reply.stats.tokens_per_second or float("nan"), list(reply.token_ids)


def measure(model: Model, options: argparse.Namespace) -> list[dict[str, object]]:
    arms: list[str] = options.arms.split(",")
    prompts = [json.loads(line) for line in options.prompts.read_text().splitlines()]
    if options.ids:
        prompts = [p for p in prompts if p["id"] in options.ids.split(",")]
    answer(model, prompts[0]["prompt"], "none", 16)  # warm up
    rows: list[dict[str, object]] = []
    for run in range(options.runs):
        for prompt in prompts:
            turn = run % len(arms)
            for name in arms[turn:] + arms[:turn]:
                speed, ids = answer(model, prompt["prompt"], name, options.tokens)
                rows.append(
                    {
                        "run": run,
                        "id": prompt["id"],
                        "category": prompt["category"],
                        "arm": name,
                        "speed": speed,
                        "ids": ids,
                    }
                )
        print(f"run {run + 1} of {options.runs} done", flush=True)
    return rows


def table(rows: list[dict[str, object]], arms: list[str], key: str) -> str:
    """Markdown: a line for each prompt or category, ratios to `none` and its tokens a second."""
    plain = {(r["run"], r["id"]): r["speed"] for r in rows if r["arm"] == "none"}
    ratios: dict[tuple[object, object], list[float]] = defaultdict(list)
    speeds: dict[object, list[float]] = defaultdict(list)
    for r in rows:
        ratios[r[key], r["arm"]].append(r["speed"] / plain[r["run"], r["id"]])  # type: ignore[operator]
        if r["arm"] == "none":
            speeds[r[key]].append(r["speed"])  # type: ignore[arg-type]
    others = [name for name in arms if name != "none"]
    lines = [
        f"| {key} | none, tokens/s | " + " | ".join(others) + " |",
        "|---|---|" + "---|" * len(others),
    ]
    for name in dict.fromkeys(r[key] for r in rows):
        cells = [
            f"{median(ratios[name, a]):.2f} ({min(ratios[name, a]):.2f}–"  # noqa: RUF001
            f"{max(ratios[name, a]):.2f})"
            for a in others
        ]
        lines.append(f"| {name} | {median(speeds[name]):.1f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def same_text(rows: list[dict[str, object]], arms: list[str]) -> str:
    plain = {(r["run"], r["id"]): r["ids"] for r in rows if r["arm"] == "none"}
    parts = []
    for name in (a for a in arms if a != "none"):
        same = [r["ids"] == plain[r["run"], r["id"]] for r in rows if r["arm"] == name]
        parts.append(f"{name} {sum(same)} of {len(same)}")
    return "Answers with the same ids as `none`: " + ", ".join(parts) + "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--draft")
    parser.add_argument("--arms", default="none,ngram,draft:6,auto")
    parser.add_argument("--prompts", type=Path, default=PROMPTS)
    parser.add_argument("--ids", help="only these prompts, separated by commas")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write every measurement here")
    options = parser.parse_args()
    with edgespec.load(target=options.target, draft=options.draft, context=2048) as model:
        rows = measure(model, options)
        info = model.info
    arms = options.arms.split(",")
    if options.json:
        options.json.write_text(json.dumps(rows))
    print(
        f"\n{info.target} + {info.draft}, {info.device}, {platform.machine()},"
        f" {options.tokens} tokens, {options.runs} runs, {info.exactness}\n"
    )
    print(table(rows, arms, "category"), "\n")
    print(table(rows, arms, "id"), "\n")
    print(same_text(rows, arms))


if __name__ == "__main__":
    main()
