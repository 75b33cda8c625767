"""The engine's thread: loading, faults, and that it always ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partialmethod

import pytest
from fake_model import SHORT, FakeModel, endless, plain, setup_for
from textual.app import App
from waiting import PATIENCE_S

from edgespec.decoding.events import Finished, Round, Stop
from edgespec.errors import BackendFailed, BadInput, ModelFileError, NotFound
from edgespec.options import AnswerOptions, Speculation, Turn
from edgespec.text.template import Message
from edgespec.tui.app import ChatApp, run_chat
from edgespec.tui.engine import (
    Counted,
    Crashed,
    Ended,
    Engine,
    Explanation,
    Heard,
    LoadFailed,
    Progress,
    Ready,
    Said,
    Uncounted,
)


def listen(engine: Engine, enough: Callable[[list[Said]], bool]) -> list[Said]:
    said: list[Said] = []
    deadline = time.monotonic() + PATIENCE_S
    while not enough(said):
        assert time.monotonic() < deadline, said[-3:]
        said += engine.drain()
        time.sleep(0.005)
    return said


TURN = Turn((Message("user", "hi"),))


def ended(said: list[Said]) -> bool:
    return any(isinstance(one, Ended) for one in said)


def ready(said: list[Said]) -> bool:
    return any(isinstance(one, Ready) for one in said)


def rounds(said: list[Said]) -> list[Round]:
    return [one.event for one in said if isinstance(one, Heard) and isinstance(one.event, Round)]


def test_an_answer_cancelled_before_it_began_ends_too() -> None:
    engine = Engine(setup_for(FakeModel(scripts=(endless(),), pace_s=0.001)))
    engine.ask(1, TURN)
    engine.cancel()
    engine.start()
    said = listen(engine, ended)
    assert any(isinstance(one, Heard) and one.event == Finished(Stop.CANCELLED) for one in said)
    assert engine.stop(PATIENCE_S)


def test_a_screen_that_stands_still_loses_no_text_and_does_not_keep_the_thread() -> None:
    model = FakeModel(scripts=(endless(),))
    engine = Engine(setup_for(model))
    engine.start()
    engine.ask(1, TURN)
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
    assert app.backstage.crash is fault
    app.backstage.close(PATIENCE_S)


def test_run_chat_raises_what_loading_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(report: Callable[[str], None]) -> FakeModel:
        raise NotFound("not here; fetch it with: edgespec pull demo")

    monkeypatch.setattr(ChatApp, "run", partialmethod(App.run, headless=True))
    with pytest.raises(NotFound, match="fetch it with"):
        run_chat(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]


def test_importing_edgespec_does_not_import_textual() -> None:
    code = "import sys, edgespec; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_turn_is_answered_as_it_was_asked() -> None:
    model = FakeModel()
    engine = Engine(setup_for(model))
    engine.start()
    turn = replace(TURN, begun=(7, 8), options=AnswerOptions(alternatives=5))
    engine.ask(1, turn)
    told = rounds(listen(engine, ended))
    assert model.turns == [turn]
    assert told[0].index == 2
    assert all(len(token.alternatives) == 5 for round_ in told for token in round_.tokens)
    assert engine.stop(PATIENCE_S)


def test_speculation_changes_at_once_and_what_cannot_be_is_refused() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.001, lacks=("draft",))
    engine = Engine(setup_for(model))
    with pytest.raises(BadInput, match="No model is loaded yet"):
        engine.set_speculation(Speculation("none"))
    engine.start()
    said = listen(engine, ready)
    engine.ask(1, TURN)
    said += listen(engine, lambda said: len(rounds(said)) > 3)
    engine.set_speculation(Speculation("ngram", draft_tokens=3))
    assert model.speculation == Speculation("ngram", draft_tokens=3)
    with pytest.raises(BadInput, match="has no draft model"):
        engine.set_speculation(Speculation("draft"))
    assert model.speculation == Speculation("ngram", draft_tokens=3)
    assert not ended(said)
    assert engine.stop(PATIENCE_S)


def test_tokens_are_explained_and_what_cannot_be_says_why() -> None:
    model = FakeModel()
    engine = Engine(setup_for(model))
    engine.start()
    engine.explain(4, TURN, [5, 6, 7], 1)
    engine.explain(5, TURN, [5, 6, 7], 3)
    said = listen(engine, lambda said: sum(isinstance(one, Explanation) for one in said) == 2)
    good, bad = [one for one in said if isinstance(one, Explanation)]
    assert good.explained is not None
    assert (good.tag, good.explained.at, good.explained.token, good.error) == (4, 1, 6, "")
    assert len(good.explained.alternatives) == 5
    assert (bad.tag, bad.explained) == (5, None)
    assert "no token 3" in bad.error
    assert model.explained[0] == (TURN, (5, 6, 7), 1)
    assert engine.stop(PATIENCE_S)


def test_texts_are_counted_while_an_answer_runs() -> None:
    engine = Engine(setup_for(FakeModel(scripts=(endless(),), pace_s=0.001)))
    engine.start()
    engine.ask(1, TURN)
    said = listen(engine, lambda said: len(rounds(said)) > 3)
    engine.count("a file", "one two three")
    engine.count("half a character", "\ud800")
    said += listen(engine, lambda said: sum(isinstance(one, Counted) for one in said) == 2)
    assert [one for one in said if isinstance(one, Counted)] == [
        Counted("a file", 3),
        Counted("half a character", 1),
    ]
    assert not ended(said)
    assert engine.stop(PATIENCE_S)


class Uncounting(FakeModel):
    def count_tokens(self, text: str) -> int:
        if "odd" in text:
            raise BackendFailed("the tokenizer failed; shorten the text")
        return super().count_tokens(text)


def test_a_text_that_cannot_be_counted_ends_neither_the_answer_nor_the_chat() -> None:
    engine = Engine(setup_for(Uncounting(scripts=(endless(), SHORT), pace_s=0.001)))
    engine.start()
    engine.count("before", "odd ü")
    engine.ask(1, TURN)
    said = listen(engine, lambda said: len(rounds(said)) > 3)
    engine.count("during", "odd")
    engine.count("after it", "one two")
    said += listen(engine, lambda said: any(isinstance(one, Counted) for one in said))
    why = "the tokenizer failed; shorten the text"
    assert [one for one in said if isinstance(one, Uncounted)] == [
        Uncounted("before", 6, why),
        Uncounted("during", 3, why),
    ]
    assert Counted("after it", 2) in said
    assert not ended(said)
    engine.cancel()
    engine.ask(2, TURN)
    said = listen(engine, lambda said: any(isinstance(x, Ended) and x.answer == 2 for x in said))
    assert not any(
        isinstance(one, Crashed) or (isinstance(one, Ended) and one.error) for one in said
    )
    assert engine.stop(PATIENCE_S)


def test_another_model_takes_the_place_of_the_first() -> None:
    first = FakeModel(scripts=(endless(),), pace_s=0.001)
    second = FakeModel(scripts=((plain("from the second"), Finished(Stop.END)),))
    engine = Engine(setup_for(first))

    def load(report: Callable[[str], None]) -> FakeModel:
        assert first.closed, "two models might not fit into memory"
        report("loading the second")
        return second

    engine.start()
    engine.ask(1, TURN)
    said = listen(engine, lambda said: len(rounds(said)) > 3)
    engine.load(load)  # type: ignore[arg-type]
    engine.ask(2, TURN)
    said += listen(engine, lambda said: any(isinstance(x, Ended) and x.answer == 2 for x in said))
    assert Progress("loading the second") in said
    last = [one.event for one in said if isinstance(one, Heard) and one.answer == 1][-1]
    assert last == Finished(Stop.CANCELLED), "the running answer ended for it"
    (told,) = [one for one in said if isinstance(one, Heard) and one.answer == 2][:1]
    assert isinstance(told.event, Round)
    assert told.event.text == "from the second"
    assert engine.stop(PATIENCE_S)
    assert second.closed


def test_nothing_of_a_model_is_held_while_the_next_one_is_loaded() -> None:
    made, held = list[weakref.ref[FakeModel]](), list[bool]()

    def load(report: Callable[[str], None]) -> FakeModel:
        held.extend(model() is not None for model in made)
        model = FakeModel(scripts=(SHORT,))
        made.append(weakref.ref(model))
        return model

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    engine.ask(1, TURN)
    listen(engine, ended)
    engine.load(load)  # type: ignore[arg-type]
    listen(engine, ready)
    assert held == [False]
    assert engine.stop(PATIENCE_S)


def test_a_model_that_cannot_be_loaded_leaves_the_chat_with_the_one_before() -> None:
    loads: list[FakeModel] = []

    def load(report: Callable[[str], None]) -> FakeModel:
        loads.append(FakeModel(scripts=(SHORT,)))
        return loads[-1]

    def damaged(report: Callable[[str], None]) -> FakeModel:
        raise ModelFileError("the file is cut short; fetch it again")

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    said = listen(engine, ready)
    engine.load(damaged)  # type: ignore[arg-type]
    said = listen(engine, ready)
    (failed,) = [one for one in said if isinstance(one, LoadFailed)]
    assert failed.error == "the file is cut short; fetch it again"
    engine.ask(1, TURN)
    assert rounds(listen(engine, ended))
    assert [model.closed for model in loads] == [True, False]
    assert engine.stop(PATIENCE_S)


def test_the_model_before_guesses_again_as_it_did_where_it_still_can() -> None:
    lacking = iter([(), (), ("ngram",)])

    def load(report: Callable[[str], None]) -> FakeModel:
        return FakeModel(lacks=next(lacking))

    def damaged(report: Callable[[str], None]) -> FakeModel:
        raise ModelFileError("the file is cut short; fetch it again")

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    listen(engine, ready)
    asked, found = [Speculation("none"), Speculation("ngram")], []
    for speculation in asked:
        engine.set_speculation(speculation)
        engine.load(damaged)  # type: ignore[arg-type]
        found += [one.speculation for one in listen(engine, ready) if isinstance(one, Ready)]
    assert found == [asked[0], Speculation()], "the second time it lacks what was set"
    assert engine.stop(PATIENCE_S)


def test_nothing_of_a_model_that_failed_to_load_is_held_while_the_one_before_is_loaded() -> None:
    class Half:
        pass

    made, held = list[weakref.ref[Half]](), list[bool]()

    def load(report: Callable[[str], None]) -> FakeModel:
        held.extend(half() is not None for half in made)
        return FakeModel()

    def damaged(report: Callable[[str], None]) -> FakeModel:
        half = Half()
        made.append(weakref.ref(half))
        raise ModelFileError("the file is cut short; fetch it again")

    engine = Engine(replace(setup_for(FakeModel()), load=load))  # type: ignore[arg-type]
    engine.start()
    listen(engine, ready)
    engine.load(damaged)  # type: ignore[arg-type]
    listen(engine, ready)
    assert held == [False]
    assert engine.stop(PATIENCE_S)


def test_where_the_first_model_cannot_be_loaded_one_chosen_meanwhile_is() -> None:
    chosen, let_go = FakeModel(scripts=(SHORT,)), threading.Event()

    def damaged(report: Callable[[str], None]) -> FakeModel:
        assert let_go.wait(PATIENCE_S)
        raise ModelFileError("the file is cut short; fetch it again")

    engine = Engine(replace(setup_for(FakeModel()), load=damaged))  # type: ignore[arg-type]
    engine.start()
    engine.count("a text", "of three words")
    engine.load(lambda _: chosen)  # type: ignore[arg-type,return-value]
    let_go.set()
    said = listen(engine, ready)
    assert LoadFailed("the file is cut short; fetch it again", goes_back=False) in said
    assert [one.load for one in said if isinstance(one, Ready)] == [engine.latest_load]
    engine.ask(1, TURN)
    assert rounds(listen(engine, ended))
    assert engine.stop(PATIENCE_S)


def test_where_the_model_before_cannot_be_loaded_again_the_chat_is_over() -> None:
    model = FakeModel()
    first = iter([model])

    def load(report: Callable[[str], None]) -> FakeModel:
        for one in first:
            return one
        raise NotFound("the file is gone; name another")

    engine = Engine(replace(setup_for(model), load=load))  # type: ignore[arg-type]
    engine.start()
    listen(engine, ready)
    engine.load(load)  # type: ignore[arg-type]
    said = listen(engine, lambda said: any(isinstance(one, Crashed) for one in said))
    assert [type(one) for one in said] == [LoadFailed, Crashed]
    assert engine.stop(PATIENCE_S)
