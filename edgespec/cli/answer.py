"""One answer as the command line follows it: its text, its figures, and Ctrl+C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from time import perf_counter
from types import FrameType
from typing import assert_never

from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.stats import Stats


class Answer:
    """What an answer has come to so far."""

    def __init__(self, plain_tokens_per_second: float | None) -> None:
        self.stats = Stats(started_s=perf_counter(), calibrated_plain_speed=plain_tokens_per_second)
        self.text = ""
        self.tail = ""  # what was held back until the end
        self.token_ids: list[int] = []
        self.why: Stop | None = None
        self.plan = ""
        self.faults: list[str] = []  # each told once

    def take(self, event: Event) -> str:
        """Follow one event; the text that the answer gains."""
        self.stats = self.stats.after(event, perf_counter())
        match event:
            case PromptRead():
                return ""
            case Round():
                self.token_ids += (token.token for token in event.tokens)
                self.plan = event.plan or self.plan
                if event.note and event.note not in self.faults:
                    self.faults.append(event.note)
            case Finished():
                self.why, self.tail = event.why, event.text
            case _:
                assert_never(event)
        self.text += event.text
        return event.text

    @property
    def cancelled(self) -> bool:
        return self.why is Stop.CANCELLED


def until_interrupted(stream: Iterator[Event], cancel: Callable[[], None]) -> Iterator[Event]:
    """The events of an answer; Ctrl+C asks it to end whole, a second one gives up waiting."""
    with CtrlC() as ctrl_c:
        told = False
        for event in stream:
            yield event
            # not from the handler, which may run while the model holds a lock
            if ctrl_c.pressed and not told:
                told = True
                cancel()


class CtrlC:
    """While it is open, the first Ctrl+C is only noted."""

    def __init__(self) -> None:
        self.pressed = False

    def __enter__(self) -> CtrlC:
        self._before = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self.pressed:
            raise KeyboardInterrupt
        self.pressed = True
