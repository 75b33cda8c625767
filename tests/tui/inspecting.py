"""The inspector alone with the rounds of an answer, as tests drive it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from beside import ANSWER, AT_3, BesideApp
from textual.pilot import Pilot

from edgespec.decoding.events import Round
from edgespec.tui.inspector import Inspector

SIZE = (60, 30)
Inspecting = tuple[BesideApp, Inspector, Pilot[None]]


def filled(*events: Round) -> tuple[BesideApp, Inspector]:
    """The rounds are those of answer 1, which is not opened yet."""
    inspector = Inspector()
    for event in events:
        inspector.rounds.add(1, event)
    return BesideApp(inspector), inspector


async def opened(pilot: Pilot[None], inspector: Inspector, key: int = 1) -> None:
    inspector.follow(key)
    inspector.update_rows()
    inspector.focus_rows()
    await pilot.pause()


@asynccontextmanager
async def inspecting(*events: Round, size: tuple[int, int] = SIZE) -> AsyncIterator[Inspecting]:
    """Answer 1 is opened, with these rounds, and the keys go to its rows."""
    app, inspector = filled(*events)
    async with app.run_test(size=size) as pilot:
        await opened(pilot, inspector)
        yield app, inspector, pilot


@asynccontextmanager
async def explaining() -> AsyncIterator[Inspecting]:
    """The token at place 3 is selected, and what the engine says of it has come."""
    async with inspecting(*ANSWER) as (app, inspector, pilot):
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        yield app, inspector, pilot


def rows(inspector: Inspector) -> list[str]:
    """The lines of the list, as painted."""
    shown = inspector.list
    return [shown.render_line(y).text.rstrip() for y in range(shown.size.height)]


def detail(inspector: Inspector) -> str:
    return str(inspector.detail.content)


def choices(inspector: Inspector) -> list[str]:
    return [str(option.prompt) for option in inspector.alternatives.options]
