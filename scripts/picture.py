"""Draw the picture of the README: the real chat, the demo model, one question in show mode.

uv run python scripts/picture.py assets/chat.svg
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

from edgespec import AnswerOptions, Model, Sampling, Speculation, load
from edgespec.tui.app import ChatApp, ChatSetup

SIZE = (132, 32)
QUESTION = "Write a Python function that adds two numbers, then one that adds three numbers."
PATIENCE_S = 120


def demo(report: Callable[[str], None]) -> Model:
    return load("demo", report=report, speculation=Speculation(always_draft=True))


async def draw(file: Path) -> None:
    sampling = Sampling(temperature=0.0, seed=1)
    options = AnswerOptions(sampling=sampling, max_tokens=150)
    app = ChatApp(ChatSetup(demo, "", options, "demo"))
    async with app.run_test(size=SIZE) as pilot:
        await until(lambda: app.backstage.ready)
        await pilot.press("f3", "escape")  # the rounds beside, the keys back with the prompt
        await pilot.press(*QUESTION)
        await pilot.press("enter")
        await until(lambda: app.backstage.busy)
        await until(lambda: not app.backstage.busy)
        await pilot.pause(1.0)  # the last rejected guess fades
        app.inspector.focus_rows()
        await pilot.press(*["up"] * 6)
        await until(lambda: app.inspector.alternatives.choices)
        await pilot.pause(0.5)
        file.write_text(app.export_screenshot(title="edgespec chat demo"), encoding="utf-8")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(draw(Path(sys.argv[1])))
