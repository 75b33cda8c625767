"""A scripted model with the shape of the real one: no weights, any speed, any fault."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

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
from edgespec.tui.app import ChatSetup, run_chat


@dataclass(frozen=True)
class FakeInfo:
    pair: str = "demo"
    target: str = "SmolLM2-135M"
    draft: str | None = "SmolLM2-7M"
    backend: str = "llamacpp"
    device: str = "cpu"
    context: int = 4096
    exactness: str = "bit-exact at every draft length"
    notes: tuple[str, ...] = ()
    memory: str = ""


@dataclass(frozen=True)
class FakeSpeculation:
    proposer: str = "auto"
    always_draft: bool = False


def guessed(*texts: str, accepted: int, plan: str = "draft \N{MULTIPLICATION SIGN}4") -> Round:
    """A round that guessed a chain, of which `accepted` were right; the last text is the target's
    own: `guessed(" a", " b", " c", accepted=1)` says " a c" and turns " b" down."""
    *chain, own = texts
    kind = Kind.BONUS if accepted == len(chain) else Kind.CORRECTION
    tokens = [Committed(n, Kind.ACCEPTED, "draft", t) for n, t in enumerate(chain[:accepted])]
    guesses = [
        Guess(n, n - 1, "draft", tested=n <= accepted, accepted=n < accepted, text=t)
        for n, t in enumerate(chain)
    ]
    own_token = Committed(99, kind, text=own)
    return Round(0, (*tokens, own_token), tuple(guesses), 0.001, 0.004, 0.006, plan)


def plain(text: str, plan: str = "", note: str = "") -> Round:
    return Round(0, (Committed(1, Kind.PLAIN, text=text),), (), 0.0, 0.004, 0.005, plan, note)


SHORT: tuple[Event | EdgespecError, ...] = (
    PromptRead(0, 20, 0, 0.0),
    PromptRead(20, 20, 0, 0.1),
    plain("Sorting"),
    guessed(" means", " giving", " things", " items", accepted=2),
    guessed(" a", " fixed", " order", ".", accepted=3),
    guessed("\n\n", "First", "Take", accepted=1),
    Finished(Stop.END),
)


@dataclass
class FakeChat:
    model: FakeModel
    context_used: int = 0

    def stream(self, text: str) -> Iterator[Event]:
        self.model.asked.append(text)
        self.model.cancelled.clear()
        script = self.model.scripts[min(len(self.model.asked), len(self.model.scripts)) - 1]
        for step in script:
            if isinstance(step, Exception):
                raise step
            if self.model.cancelled.wait(self.model.pace_s):
                yield Finished(Stop.CANCELLED)
                return
            self.context_used += len(step.tokens) if isinstance(step, Round) else 0
            yield step

    def reset(self) -> None:
        self.model.resets += 1
        self.context_used = 0


@dataclass
class FakeModel:
    """Answers with one script after the other, the last one again and again."""

    scripts: tuple[tuple[Event | EdgespecError, ...], ...] = (SHORT,)
    pace_s: float = 0.0
    info: FakeInfo = field(default_factory=FakeInfo)
    speculation: FakeSpeculation = field(default_factory=FakeSpeculation)
    plain_tokens_per_second: float | None = 23.0
    asked: list[str] = field(default_factory=list)
    resets: int = 0
    closed: bool = False
    system: str = ""
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> FakeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def chat(self, system: str, options: object) -> FakeChat:
        self.system = system
        return FakeChat(self)

    def cancel(self) -> None:
        self.cancelled.set()


def endless() -> tuple[Event, ...]:
    return (PromptRead(20, 20, 0, 0.1), *(plain(f" word{n}") for n in range(20_000)))


def setup_for(
    model: FakeModel, *, notes: tuple[str, ...] = ("loading weights",), title: str = "demo"
) -> ChatSetup:
    def load(report: Callable[[str], None]) -> FakeModel:
        for note in notes:
            report(note)
        return model

    return ChatSetup(load=load, system="", options=None, title=title)  # type: ignore[arg-type]


def main() -> None:
    """A chat by hand: `python -m tests.tui.fake_model [seconds per round]`."""
    pace_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    run_chat(setup_for(FakeModel(scripts=(SHORT, endless()), pace_s=pace_s)))


if __name__ == "__main__":
    main()
