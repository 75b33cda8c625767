"""What one template may use, and how much of it is left."""

from __future__ import annotations

import time
from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_VIEWS = (KeysView, ValuesView, ItemsView)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one template may use.

    source: characters of the template. size: characters or items of any one value, the output
    included. total: of all values of one rendering together. seconds: processor time.
    """

    source: int = 256 * 1024
    size: int = 4 * 1024 * 1024
    total: int = 256 * 1024 * 1024
    seconds: float = 2.0


DEFAULT_LIMITS = Limits()


class LimitReached(Exception):
    """A template used more than it may; the message names the limit."""


class Budget:
    """What is left of the limits in one rendering."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._left = limits.total
        # the thread's own processor time: a busy machine must not fail a template
        self._deadline_s = time.thread_time() + limits.seconds

    def tick(self) -> bool:
        if time.thread_time() > self._deadline_s:
            raise LimitReached(f"runs for longer than {self.limits.seconds:g} seconds")
        return True

    def fits(self, size: int) -> None:
        if size > self.limits.size:
            raise LimitReached(
                f"makes a text or list of more than {self.limits.size:,} characters or items"
            )

    def measure(self, value: Any) -> Any:
        """`value`, once it is known to be small enough; what is nested in it counts."""
        self.tick()
        self.fits(weight(value, self.limits.size))
        self._left -= len(value) if isinstance(value, (str, bytes, list, tuple, dict)) else 1
        if self._left < 0:
            raise LimitReached(f"makes more than {self.limits.total:,} characters in all")
        return value

    def join(self, pieces: Iterable[Any]) -> str:
        """All pieces as one text; stops reading as soon as it would grow too long."""
        parts: list[str] = []
        length = 0
        for piece in pieces:
            self.tick()
            parts.append(str(self.measure(piece)))
            length += len(parts[-1])
            self.fits(length)
        return "".join(parts)


_current: ContextVar[Budget] = ContextVar("edgespec_template_budget")


@contextmanager
def limited(limits: Limits) -> Iterator[Budget]:
    budget = Budget(limits)
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)


def current() -> Budget:
    """The budget of the rendering that runs in this thread."""
    return _current.get()


def weight(value: Any, most: int) -> int:
    """Characters and items in `value`, nested ones counted as often as they occur.

    Counting ends soon after `most`.
    """
    total, open_values = 0, [value]
    while open_values and total <= most:
        item = open_values.pop()
        if isinstance(item, (str, bytes, range)):
            total += len(item)
        elif isinstance(item, int):
            total += 1 + item.bit_length() // 3
        elif isinstance(item, dict):
            total += 1
            open_values += item.keys()
            open_values += item.values()
        elif isinstance(item, (list, tuple, set, frozenset, *_VIEWS)):
            total += 1
            open_values += item
        else:
            total += 1
    return total
