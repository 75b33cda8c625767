"""Work that may never end, such as reading from a disk that does not answer, beside the screen."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from edgespec.errors import EdgespecError
from edgespec.text.sanitize import clean

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failed:
    """Work that came to nothing. reason: one line, fit to be shown."""

    reason: str


async def aside(work: Callable[[], T]) -> T | Failed:
    """What `work` gives, from a thread that the program does not wait for at its end.

    (Those of asyncio.to_thread() would keep a chat running that was left while they wait.) It
    raises nothing: an error in a worker of the screen would end the chat.
    """
    done: Future[T | Failed] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except EdgespecError as fault:
            done.set_result(Failed(clean(str(fault), one_line=True)))
        except Exception as fault:  # of a library, say; whoever waits for it is told
            told = f"{type(fault).__name__}: {fault}"
            done.set_result(Failed(f"this failed unexpectedly ({clean(told, one_line=True)})"))

    threading.Thread(target=run, daemon=True, name="aside").start()
    return await asyncio.wrap_future(done)
