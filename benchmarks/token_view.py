"""What showing 3,000 tokens at 300 a second costs: CPU seconds, and how late the event loop is.

    python benchmarks/token_view.py [prose|fence]

Shows the whole chat in a terminal of 120 by 40 cells with a scripted model, then prints one line
of JSON. `lag` is how much later than asked a sleep of 20 ms ends.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from chat_view import fence, prose

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
from edgespec.options import AnswerOptions, Speculation, Turn
from edgespec.tui.app import ChatApp, ChatSetup

TOKENS = 3000
PER_SECOND = 300.0
PER_ROUND = 3


@dataclass(frozen=True)
class Info:
    pair: str = "benchmark"
    target: str = "script"
    draft: str | None = None
    backend: str = "none"
    device: str = "cpu"
    context: int = 8192
    exactness: str = "bit-exact"
    notes: tuple[str, ...] = ()
    memory: str = ""


@dataclass
class ScriptedModel:
    """Speaks its tokens in rounds at a fixed speed, like a model that always drafts two."""

    texts: list[str]
    info: Info = Info()
    speculation: Speculation = field(default_factory=Speculation)
    plain_tokens_per_second: float | None = 100.0
    context_used: int = 0
    late_s: list[float] = field(default_factory=list)

    def __enter__(self) -> ScriptedModel:
        return self

    def __exit__(self, *_: object) -> None: ...

    def chat(self, system: str, options: object) -> ScriptedModel:
        return self

    def cancel(self) -> None: ...

    def answer(self, turn: Turn) -> Iterator[Event]:
        yield PromptRead(10, 10, 0, 0.0)
        started = time.perf_counter()
        for index in range(0, len(self.texts), PER_ROUND):
            due = started + index / PER_SECOND
            time.sleep(max(due - time.perf_counter(), 0.0))
            self.late_s.append(time.perf_counter() - due)
            yield self.round(index)
        yield Finished(Stop.END)

    def round(self, index: int) -> Round:
        *guessed, own = self.texts[index : index + PER_ROUND]
        right = (index // PER_ROUND) % 4 != 0
        kinds = Kind.ACCEPTED if right else Kind.PLAIN, Kind.BONUS if right else Kind.CORRECTION
        tokens = [Committed(0, kinds[0], "draft", text) for text in guessed]
        guesses = [
            Guess(0, n - 1, "draft", n == 0 or right, right, text) for n, text in enumerate(guessed)
        ]
        committed = (*tokens, Committed(0, kinds[1], text=own))
        return Round(index, committed, tuple(guesses), 0.001, 0.008, 0.01, "draft, 2 long")


async def measure(app: ChatApp, model: ScriptedModel) -> dict[str, object]:
    lags: list[float] = []
    async with app.run_test(headless=not sys.stderr.isatty(), size=(120, 40)) as pilot:
        while not app.backstage.ready:
            await asyncio.sleep(0.05)
        await pilot.press("g", "o")
        await asyncio.sleep(0.5)
        before, began = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        await pilot.press("enter")
        while not app.backstage.busy and app.view.transcript.text().count("\n") < 20:
            await asyncio.sleep(0.005)
        while app.backstage.busy:
            asked = time.perf_counter()
            await asyncio.sleep(0.02)
            lags.append(time.perf_counter() - asked - 0.02)
        wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
    lags.sort()
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "tokens": TOKENS,
        "wall_s": round(wall_s, 2),
        "cpu_s": round(cpu_s, 2),
        "lag_p50_ms": round(lags[len(lags) // 2] * 1e3, 1),
        "lag_p95_ms": round(lags[int(len(lags) * 0.95)] * 1e3, 1),
        "lag_max_ms": round(lags[-1] * 1e3, 1),
        "decoding_late_max_ms": round(max(model.late_s) * 1e3, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", nargs="?", choices=("prose", "fence"), default="prose")
    kind = parser.parse_args().kind
    tokens = {"prose": prose, "fence": fence}[kind]()
    model = ScriptedModel(list(itertools.islice(tokens, TOKENS)))
    setup = ChatSetup(lambda report: model, "", AnswerOptions(), "benchmark")  # type: ignore[arg-type,return-value]
    app = ChatApp(setup)
    figures = asyncio.run(measure(app, model))
    app.backstage.close(5.0)
    print(json.dumps({"kind": kind, "cpus": os.cpu_count(), **figures}))


if __name__ == "__main__":
    main()
