"""A signal that ends the process must leave the terminal as it was."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable


def leave_when_told_to(leave: Callable[[None, int], object]) -> None:
    """Have SIGTERM and SIGHUP call `leave(None, 128 + number)` in the running loop."""
    loop = asyncio.get_running_loop()
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, leave, None, 128 + number)
