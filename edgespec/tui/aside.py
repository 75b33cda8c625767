"""Work that may never end, such as reading from a disk that does not answer, beside the screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def aside(work: Callable[[], T]) -> T:
    """What `work` gives, or raises, from a thread that the program does not wait for at its end.

    (Those of asyncio.to_thread() would keep a chat running that was left while they wait.)
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as fault:  # whoever waits for it is told
            done.set_exception(fault)

    threading.Thread(target=run, daemon=True, name="aside").start()
    return await asyncio.wrap_future(done)
