"""Waiting for something to become true, instead of for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 10.0


async def wait_until(predicate: Callable[[], object], what: str = "the condition") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not predicate():
        assert time.monotonic() < deadline, f"{what} did not come true in {PATIENCE_S} s"
        await asyncio.sleep(0.01)
