"""Work beside the screen that ends, fails, or never comes back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from waiting import wait_until

from edgespec.errors import NotFound
from edgespec.tui.aside import Failed, aside

_PATIENCE_S = 60  # for a program that is over at once, unless it waits for ever
_LEAVES = """
import asyncio, threading
from edgespec.tui.aside import aside

async def leaves():
    waiting = asyncio.create_task(aside(threading.Event().wait))
    await asyncio.sleep(0)
    waiting.cancel()

asyncio.run(leaves())
print("left")
"""


async def test_work_beside_the_screen_gives_what_it_found() -> None:
    assert await aside(lambda: threading.current_thread().daemon) is True


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (NotFound("no such\nmodel\x1b[31m"), "no such model"),
        (
            ValueError("a library\x07 broke"),
            "this failed unexpectedly (ValueError: a library broke)",
        ),
    ],
    ids=["expected", "unexpected"],
)
async def test_work_that_fails_gives_the_reason_in_one_line(fault: Exception, reason: str) -> None:
    def fail() -> None:
        raise fault

    assert await aside(fail) == Failed(reason)


async def test_work_that_nobody_waits_for_any_more_disturbs_nobody() -> None:
    goes_on, over, told = threading.Event(), threading.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def work() -> None:
        goes_on.wait()
        over.set()

    waiting = asyncio.create_task(aside(work))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    goes_on.set()
    await wait_until(lambda: over.is_set() and not _works())
    assert told == []


def test_a_program_ends_though_its_work_never_does() -> None:
    program = [sys.executable, "-c", _LEAVES]
    # asyncio.to_thread() would wait for the work twice: in asyncio.run(), and at the very end
    told = subprocess.check_output(program, text=True, timeout=_PATIENCE_S)
    assert told == "left\n"


def _works() -> bool:
    return any(thread.name == "aside" for thread in threading.enumerate())
