"""The engine's thread: loading, faults, and that it always ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partialmethod

import pytest
from fake_model import FakeModel, endless, setup_for
from textual.app import App
from waiting import PATIENCE_S

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import NotFound
from edgespec.tui.app import ChatApp, run_chat
from edgespec.tui.engine import Crashed, Ended, Engine, Heard, Ready, Said


def listen(engine: Engine, enough: Callable[[list[Said]], bool]) -> list[Said]:
    said: list[Said] = []
    deadline = time.monotonic() + PATIENCE_S
    while not enough(said):
        assert time.monotonic() < deadline, said[-3:]
        said += engine.drain()
        time.sleep(0.005)
    return said


def ended(said: list[Said]) -> bool:
    return any(isinstance(one, Ended) for one in said)


def test_an_answer_cancelled_before_it_began_ends_too() -> None:
    engine = Engine(setup_for(FakeModel(scripts=(endless(),), pace_s=0.001)))
    engine.ask(1, "hi")
    engine.cancel()
    engine.start()
    said = listen(engine, ended)
    assert any(isinstance(one, Heard) and one.event == Finished(Stop.CANCELLED) for one in said)
    assert engine.stop(PATIENCE_S)


def test_a_screen_that_stands_still_loses_no_text_and_does_not_keep_the_thread() -> None:
    model = FakeModel(scripts=(endless(),))
    engine = Engine(setup_for(model))
    engine.start()
    engine.ask(1, "hi")
    said = listen(engine, lambda said: len(said) > 100)
    time.sleep(0.2)
    said += listen(engine, lambda said: len(said) > 8000)
    texts = "".join(
        token.text
        for one in said
        if isinstance(one, Heard) and hasattr(one.event, "tokens")
        for token in one.event.tokens
    )
    assert texts.startswith("".join(f" word{n}" for n in range(7000)))
    assert engine.stop(PATIENCE_S)
    assert model.closed


def test_the_model_is_used_in_one_thread_only() -> None:
    threads: set[str] = set()

    class Watching(FakeModel):
        def __exit__(self, *_: object) -> None:
            threads.add(threading.current_thread().name)

    def load(report: Callable[[str], None]) -> FakeModel:
        threads.add(threading.current_thread().name)
        return Watching()

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    listen(engine, lambda said: any(isinstance(one, Ready) for one in said))
    assert engine.stop(PATIENCE_S)
    assert threads == {"edgespec-engine"}


def test_closing_while_the_model_loads_stops_the_loading() -> None:
    started = threading.Event()

    def load(report: Callable[[str], None]) -> FakeModel:
        for number in range(10_000):
            report(f"part {number}")
            started.set()
            time.sleep(0.002)
        raise AssertionError("loading went on")

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    assert started.wait(PATIENCE_S)
    assert engine.stop(PATIENCE_S)
    assert not any(isinstance(one, Crashed) for one in engine.drain())


async def test_a_fault_while_loading_closes_the_chat_and_is_handed_on() -> None:
    fault = NotFound("no pair is called 'dmeo'; see them with: edgespec pairs")

    def load(report: Callable[[str], None]) -> FakeModel:
        report("looking for the pair")
        raise fault

    app = ChatApp(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    await app.run_async(headless=True)
    assert app.crash is fault
    app.engine.stop(PATIENCE_S)


def test_run_chat_raises_what_loading_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(report: Callable[[str], None]) -> FakeModel:
        raise NotFound("not here; fetch it with: edgespec pull demo")

    monkeypatch.setattr(ChatApp, "run", partialmethod(App.run, headless=True))
    with pytest.raises(NotFound, match="fetch it with"):
        run_chat(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]


def test_importing_edgespec_does_not_import_textual() -> None:
    code = "import sys, edgespec; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
