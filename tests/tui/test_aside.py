"""Work beside the screen that ends, fails, or never comes back."""

from __future__ import annotations

import asyncio
import threading

import pytest

from edgespec.tui.aside import aside


async def test_work_beside_the_screen_gives_what_it_found() -> None:
    assert await aside(lambda: threading.current_thread().daemon) is True


async def test_work_that_fails_says_so_where_it_is_waited_for() -> None:
    with pytest.raises(OSError, match="no such disk"):
        await aside(_fail)


async def test_work_that_nobody_waits_for_any_more_disturbs_nobody() -> None:
    goes_on, over = threading.Event(), threading.Event()

    def work() -> None:
        goes_on.wait()
        over.set()

    waiting = asyncio.create_task(aside(work))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    goes_on.set()
    while not over.is_set():
        await asyncio.sleep(0.01)


def test_a_program_ends_though_its_work_never_does() -> None:
    never = threading.Event()

    async def leaves() -> None:
        waiting = asyncio.create_task(aside(never.wait))
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(leaves())  # asyncio.to_thread() would wait here for five minutes
    never.set()


def _fail() -> None:
    raise OSError("no such disk")
