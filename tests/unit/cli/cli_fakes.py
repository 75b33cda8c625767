"""A scripted model behind the command line: no weights, and every fault on demand.

Run as a program it is `edgespec` with that model in place of the real one; FAKE_SCRIPT names the
script. Subprocess tests use it so.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from edgespec import api
from edgespec.decoding.events import (
    Committed,
    Event,
    Finished,
    Guess,
    Kind,
    PromptRead,
    Round,
    Stop,
)
from edgespec.errors import EdgespecError


def words(*texts: str, note: str = "") -> Round:
    """A round whose first tokens were guessed and accepted; the last is the target's own."""
    *guessed, own = texts
    committed = [Committed(n, Kind.ACCEPTED, "ngram", text) for n, text in enumerate(guessed)]
    guesses = [Guess(n, n - 1, "ngram", True, True, text) for n, text in enumerate(guessed)]
    return Round(
        0,
        (*committed, Committed(99, Kind.BONUS, text=own)),
        tuple(guesses),
        0.001,
        0.004,
        0.006,
        "auto: n-gram",
        note,
    )


ANSWER: tuple[Event | Exception, ...] = (
    PromptRead(0, 7, 0, 0.0),
    PromptRead(7, 7, 0, 0.1),
    words("Paris"),
    words(" is", " the", " capital"),
    words(" of", " France"),
    Finished(Stop.END, "."),
)
TEXT = "Paris is the capital of France."


def endless_reading() -> Iterator[Event]:
    for read in range(10_000):
        yield PromptRead(read, 10_000, 0, 0.01)


def endless_answer() -> Iterator[Event]:
    yield PromptRead(7, 7, 0, 0.1)
    while True:
        yield words(" so")


@dataclass
class FakeModel:
    """Answers with a script; keeps what it was asked."""

    script: Callable[[], Any] = lambda: iter(ANSWER)
    pause_s: float = 0.0
    plain_tokens_per_second: float | None = 20.0
    notes: tuple[str, ...] = ()
    speculation: Any = None
    asked: list[tuple[Any, Any]] = field(default_factory=list)
    loaded: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)
    closed: bool = False
    stopped: bool = False

    @property
    def info(self) -> api.ModelInfo:
        return api.ModelInfo(
            pair="demo",
            target="SmolLM2\x1b]0;owned\x07-135M",
            draft=None,
            backend="llamacpp",
            device="CPU",
            context=2048,
            exactness="bit-exact at every draft length",
            notes=self.notes,
        )

    def load(self, *names: Any, **options: Any) -> FakeModel:
        self.loaded.append((names, options))
        options["report"]("measuring this machine")
        return self

    def __enter__(self) -> FakeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def cancel(self) -> None:
        self.stopped = True

    def stream(self, prompt: Any, options: Any) -> Iterator[Event]:
        self.asked.append((prompt, options))
        self.stopped = False
        for event in self.script():
            if self.stopped:
                yield Finished(Stop.CANCELLED)
                return
            if isinstance(event, Exception):
                raise event
            time.sleep(self.pause_s)
            yield event

    def chat(self, system: str = "", options: Any = None) -> FakeChat:
        return FakeChat(self, system, options)


@dataclass
class FakeChat:
    model: FakeModel
    system: str
    options: Any

    def stream(self, text: str) -> Iterator[Event]:
        return self.model.stream(text, self.options)


SCRIPTS: dict[str, Callable[[], Any]] = {
    "answer": lambda: iter(ANSWER),
    "reading": endless_reading,
    "endless": endless_answer,
    "umlaut": lambda: iter([words("größer"), Finished(Stop.END)]),
    "screen": lambda: iter(ANSWER),
    "error": lambda: iter([words("half"), EdgespecError("The cache\nburst.\x1b[31m Try again.")]),
}


def show_setup(setup: Any) -> None:
    """In place of the screen: what it would have been given."""
    model = setup.load(lambda _: None)
    print(
        f"title {setup.title}, system {setup.system}, max_tokens {setup.options.max_tokens},"
        f" loaded {model.info.pair}"
    )


if __name__ == "__main__":
    from edgespec.cli import main

    name = os.environ["FAKE_SCRIPT"]
    api.load = FakeModel(SCRIPTS[name], pause_s=0.02).load  # type: ignore[assignment]
    if name == "screen":
        import edgespec.tui.app as screen

        screen.run_chat = show_setup
    main()
