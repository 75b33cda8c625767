"""A chat with a scripted model, as tests drive it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

from fake_model import FakeModel, setup_for
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.history import History
from edgespec.tui.app import ChatApp
from edgespec.tui.engine import ChatSetup
from edgespec.tui.status import SEPARATOR

ANSWER = "Sorting means giving items a fixed order.\n\nTake"
WIDE = (130, 30)


@asynccontextmanager
async def chatting(
    model: FakeModel,
    size: tuple[int, int] = (90, 30),
    *,
    history: History | None = None,
    change: Callable[[ChatSetup], ChatSetup] = lambda setup: setup,
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    """change: of what the chat begins with."""
    setup = setup_for(model)
    if history is not None:
        setup = replace(setup, history=history)
    app = ChatApp(change(setup))
    async with app.run_test(size=size) as pilot:
        await wait_until(lambda: app.backstage.ready, "loading")
        yield app, pilot
    assert app.backstage.close(5.0), "the engine's thread did not end"
    assert model.closed


def shown(app: ChatApp) -> str:
    return app.view.transcript.text()


def status(app: ChatApp) -> str:
    return SEPARATOR.join(part.text for part in app.status._parts)


def notice(app: ChatApp) -> str:
    return str(app.prompt.border_subtitle)


def labels(app: ChatApp) -> list[str]:
    return [block.label for block in app.view.transcript.blocks if block.label]


async def ask(app: ChatApp, pilot: Pilot[None], text: str = "hi") -> None:
    """Write a message, send it, and see it begin."""
    await pilot.press(*text, "enter")
    await wait_until(lambda: app.backstage.busy or text in shown(app))


async def answered(app: ChatApp, pilot: Pilot[None], text: str = "hi") -> None:
    """Ask, and wait until the answer is whole."""
    await ask(app, pilot, text)
    await wait_until(lambda: not app.backstage.busy, "the end of the answer")


async def running(app: ChatApp, pilot: Pilot[None]) -> None:
    """An answer that does not end has begun to appear."""
    await ask(app, pilot)
    await wait_until(lambda: "word3" in shown(app), "the answer")


async def command(app: ChatApp, pilot: Pilot[None], line: str) -> None:
    """Write a command and have it done, whatever the list above the prompt offers."""
    app.prompt.text = line
    app.prompt.move_cursor(app.prompt.document.end)
    await pilot.pause()
    app.composer.close_completion()
    await pilot.press("enter")
    await wait_until(lambda: app.prompt.text != line, f"{line} to be taken")
    await pilot.pause()
