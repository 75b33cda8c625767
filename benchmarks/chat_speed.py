"""What the chat's screen costs an answer: the same turn with and without it, turn about.

    python benchmarks/chat_speed.py [PAIR] [--tokens N] [--pairs N]

Both run in one process with one model: the screen paints thirty times a second into a terminal of
120 by 40 cells, or there is none. Prints one line of JSON with the decode speeds of both and the
ratio of each pair; 0.97 means that the screen costs 3 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
from collections.abc import Callable
from dataclasses import replace

from edgespec import AnswerOptions, Model, Speculation, load
from edgespec.tui.app import ChatApp, ChatSetup

PROMPT = "Write a short story about a lighthouse."
SETTLED_S = 3.0  # what the chat does at its start, such as looking for models, is over by then


class Kept:
    """A model that outlives the chats it is lent to."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        return None


async def with_screen(model: Model, options: AnswerOptions) -> float:
    def lend(_report: Callable[[str], None]) -> Kept:
        return Kept(model)

    app = ChatApp(ChatSetup(lend, "", options, "benchmark"))  # type: ignore[arg-type]
    back = app.backstage
    async with app.run_test(size=(120, 40)) as pilot:
        while not back.ready:
            if back.crash is not None:
                raise back.crash
            await asyncio.sleep(0.05)
        await asyncio.sleep(SETTLED_S)
        app.prompt.text = PROMPT
        await pilot.press("enter")
        while back.busy or len(back.shelf.current.path) < 2:
            await asyncio.sleep(0.05)
        stats = back.talking.stats
    back.close(10.0)
    return 0.0 if stats is None else stats.tokens_per_second or 0.0


def without(model: Model, options: AnswerOptions) -> float:
    return model.generate(PROMPT, options).stats.tokens_per_second or 0.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", nargs="?", default="demo")
    parser.add_argument("--tokens", type=int, default=150)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--threads", type=int, default=None)
    given = parser.parse_args()
    options = AnswerOptions(overrides={"temperature": 0.0, "seed": 1}, max_tokens=given.tokens)
    speeds: list[tuple[float, float]] = []
    with load(given.pair, threads=given.threads, speculation=Speculation("none")) as model:
        without(model, replace(options, max_tokens=8))
        for _ in range(given.pairs):
            model.forget()
            bare = without(model, options)
            model.forget()
            speeds.append((bare, asyncio.run(with_screen(model, options))))
    ratios = [screen / bare for bare, screen in speeds]
    figures = {
        "without": [round(bare, 2) for bare, _ in speeds],
        "with_screen": [round(screen, 2) for _, screen in speeds],
        "ratios": [round(ratio, 3) for ratio in ratios],
        "median_ratio": round(statistics.median(ratios), 3),
        "cpus": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
