"""What the view of the conversation costs: 3,000 tokens at 300 a second, and 10,000 messages.

    python benchmarks/chat_view.py prose|fence|history

Shows nothing but the view, in a terminal of 120 by 40 cells, then prints one line of JSON.
`lag` is how much later than asked a sleep of 20 ms ends; `open` is the time from handing over a
conversation of 10,000 messages until it is painted, `page` the time that one page up takes.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import random
import sys
import time
from collections.abc import Iterator

from textual.app import App, ComposeResult

from edgespec.tui.blocks import BlockContent
from edgespec.tui.theme import DARK, token_colours
from edgespec.tui.token_view import TokenView
from edgespec.tui.transcript import Mark, Voice

TOKENS = 3000
PER_SECOND = 300.0
MESSAGES = 10_000
PAGES = 100
SIZE = (120, 40)
WORDS = ("the", "draft", "model", "token", "accept", "reject", "window", "cache", "latency")
MARKS = (Mark.PLAIN, Mark.ACCEPTED, Mark.ACCEPTED, Mark.BONUS, Mark.CORRECTION)


class ViewApp(App[None]):
    """Nothing but the view."""

    def __init__(self) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.theme = DARK.name
        self.view = TokenView()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.set_interval(1 / 30, lambda: self.view.update_rows(time.perf_counter()))


def prose() -> Iterator[str]:
    chance = random.Random(1)
    while True:
        for _ in range(chance.randint(20, 70)):
            yield f" {chance.choice(WORDS)}"
        yield ".\n\n"


def fence() -> Iterator[str]:
    yield "```python\n"
    for number in itertools.count():
        yield from ("    x", f"{number}", " =", " foo", "(", f"{number}", ",", " y", ")", "\n")


def messages() -> list[BlockContent]:
    """Questions and answers, the answers with lists, code and token marks."""
    chance, words = random.Random(2), prose()
    said = []
    for number in range(MESSAGES):
        tokens = list(itertools.islice(words, chance.randint(10, 200)))
        runs = [(text, chance.choice(MARKS)) for text in tokens]
        if number % 2:
            runs += [("\n\n- one\n- **two**\n\n```python\nif x:\n    print(1)\n```", Mark.PLAIN)]
        voice = Voice.ANSWER if number % 2 else Voice.USER
        said.append(BlockContent(number, voice, tuple(runs)))
    return said


async def lags(done: asyncio.Event) -> list[float]:
    """How late sleeps end until `done`, in order of size."""
    late = []
    while not done.is_set():
        asked = time.perf_counter()
        await asyncio.sleep(0.02)
        late.append(time.perf_counter() - asked - 0.02)
    return sorted(late)


async def stream(app: ViewApp, tokens: Iterator[str]) -> dict[str, float]:
    """Show tokens as they come, and the Markdown at the end."""
    view, done = app.view, asyncio.Event()
    watching = asyncio.create_task(lags(done))
    cpu_s, started = time.process_time(), time.perf_counter()
    view.begin(Voice.ANSWER, 1)
    for number, text in enumerate(itertools.islice(tokens, TOKENS)):
        if number % 3 == 0:
            await asyncio.sleep(max(started + number / PER_SECOND - time.perf_counter(), 0))
        if number % 12 == 0:
            view.haunt("⟨ not this⟩", time.perf_counter())
        view.append(text, MARKS[number % len(MARKS)])
    await asyncio.sleep(0.1)
    streamed_s, ended = time.process_time() - cpu_s, time.perf_counter()
    view.end(1)
    view.update_rows(time.perf_counter())
    rendered_s = time.perf_counter() - ended
    await asyncio.sleep(0.1)
    done.set()
    late = await watching
    return {
        "wall_s": round(ended - started, 2),
        "cpu_s": round(streamed_s, 2),
        "lag_p50_ms": round(late[len(late) // 2] * 1e3, 1),
        "lag_p95_ms": round(late[int(len(late) * 0.95)] * 1e3, 1),
        "lag_max_ms": round(late[-1] * 1e3, 1),
        "markdown_ms": round(rendered_s * 1e3, 1),
    }


async def scroll(app: ViewApp) -> dict[str, float]:
    """Open a long conversation and page through its end."""
    view, said = app.view, messages()
    started = time.perf_counter()
    view.show(said)
    for y in range(view.size.height):
        view.render_line(y)
    opened_s = time.perf_counter() - started
    pages = []
    for _ in range(PAGES):
        started = time.perf_counter()
        view.scroll_page_up(animate=False)
        for y in range(view.size.height):
            view.render_line(y)
        pages.append(time.perf_counter() - started)
        await asyncio.sleep(0)
    pages.sort()
    return {
        "messages": MESSAGES,
        "open_s": round(opened_s, 3),
        "page_p50_ms": round(pages[PAGES // 2] * 1e3, 1),
        "page_p95_ms": round(pages[int(PAGES * 0.95)] * 1e3, 1),
    }


async def measure(kind: str) -> dict[str, float]:
    app = ViewApp()
    async with app.run_test(headless=not sys.stderr.isatty(), size=SIZE) as pilot:
        await pilot.pause()
        if kind == "history":
            return await scroll(app)
        return await stream(app, {"prose": prose, "fence": fence}[kind]())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("prose", "fence", "history"))
    kind = parser.parse_args().kind
    figures = asyncio.run(measure(kind))
    print(json.dumps({"kind": kind, "cpus": os.cpu_count(), **figures}))


if __name__ == "__main__":
    main()
