"""Answers queue, can be cancelled from anywhere, and never outlive their model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest
from api_trials import Load

from edgespec.api import Message, Model, Speculation, Turn
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.errors import BadInput

ASK = "Tell me of the other model"
SOON_S = 20


def _ids(events: list[Event]) -> list[int]:
    return [t.token for event in events if isinstance(event, Round) for t in event.tokens]


def test_another_thread_can_cancel(pair: Model) -> None:
    events, running = list[Event](), threading.Event()

    def listen() -> None:
        for event in pair.stream(ASK, seed=1, temperature=0.0, max_tokens=400):
            events.append(event)
            if isinstance(event, Round):
                running.set()
                proceed.wait(SOON_S)

    proceed = threading.Event()
    thread = threading.Thread(target=listen)
    thread.start()
    assert running.wait(SOON_S)
    pair.cancel()
    proceed.set()
    thread.join(SOON_S)
    assert not thread.is_alive()
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.why is Stop.CANCELLED
    assert sum(isinstance(event, Round) for event in events) == 1


def test_an_answer_that_was_cancelled_is_the_start_of_the_whole_one(pair: Model) -> None:
    whole = pair.generate(ASK, seed=1, max_tokens=60)
    said, ids = "", list[int]()
    for event in pair.stream(ASK, seed=1, max_tokens=60):
        if isinstance(event, Round | Finished):
            said += event.text
        if isinstance(event, Round):
            ids += _ids([event])
            if len(ids) >= 12:
                pair.cancel()
    assert tuple(ids) == whole.token_ids[: len(ids)]
    assert whole.text.startswith(said.removesuffix("\ufffd"))
    assert pair.generate(ASK, seed=1, max_tokens=60).text == whole.text, "the next one is whole"


def test_reading_the_prompt_can_be_cancelled(pair: Model) -> None:
    events = pair.stream("word of the list " * 70, seed=1)
    assert isinstance(next(events), PromptRead)
    pair.cancel()
    assert [type(event) for event in events] == [Finished]


def test_cancelling_nothing_does_nothing_to_the_next_answer(pair: Model) -> None:
    pair.cancel()
    assert pair.generate(ASK, seed=1, max_tokens=5).finish_reason is Stop.LENGTH


def test_answers_of_several_threads_queue_and_are_those_of_one(pair: Model) -> None:
    asks = [f"Tell me of {name}" for name in ("one", "two", "three", "four")]
    pair.speculation = Speculation("draft", draft_tokens=4)
    alone = [pair.generate(ask, seed=n, max_tokens=40) for n, ask in enumerate(asks)]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(pair.generate, ask, seed=n, max_tokens=40) for n, ask in enumerate(asks)
        ]
        together = [job.result(timeout=60) for job in jobs]
    assert [r.token_ids for r in together] == [r.token_ids for r in alone]
    assert [r.stats.drafted for r in together] == [r.stats.drafted for r in alone]


def test_an_answer_that_waits_does_not_disturb_the_one_that_runs(pair: Model) -> None:
    """What drafts for both is told of the second answer only when its turn comes."""
    pair.speculation = Speculation("ngram", draft_tokens=5)
    for fixed in (5, None):  # a proposer of its own, and one that both share
        pair.speculation = Speculation("ngram", draft_tokens=fixed)
        first = pair.stream(ASK, seed=1, max_tokens=60)
        events = [next(first) for _ in range(6)]
        waiting = pair.stream("Something else", seed=1, max_tokens=60)
        source = pair.loaded.luck.ngram.proposer
        assert fixed or source._seen > 0, "it has read the first prompt and still knows it"
        events += list(first)
        assert len(_ids(events)) == len(_ids(list(waiting))) == 60
        assert not [event for event in events if isinstance(event, Round) and event.note]


def test_a_second_answer_inside_the_first_is_a_mistake_and_no_deadlock(pair: Model) -> None:
    first = pair.stream(ASK, seed=1, max_tokens=10)
    events = [next(first)]
    with pytest.raises(BadInput, match="still running"):
        next(pair.stream(ASK, seed=2, max_tokens=10))
    events += list(first)
    assert len(_ids(events)) == 10
    assert pair.generate(ASK, seed=2, max_tokens=3).finish_reason is Stop.LENGTH


def test_an_answer_that_other_threads_read_on_is_waited_for(pair: Model) -> None:
    """As servers do that read each event in any thread of a pool."""
    with (
        ThreadPoolExecutor(1) as one,
        ThreadPoolExecutor(1) as other,
        closing(pair.stream(ASK, seed=1, max_tokens=20)) as events,  # type: ignore[type-var]
    ):
        heard = [one.submit(next, events).result(SOON_S)]
        waiting = one.submit(pair.generate, ASK, seed=2, max_tokens=3)
        with pytest.raises(TimeoutError):
            waiting.result(0.3)
        heard += other.submit(list, events).result(SOON_S)
        assert len(waiting.result(SOON_S).token_ids) == 3
    assert len(_ids(heard)) == 20


def test_an_answer_is_waited_for_as_long_as_it_goes_on(
    pair: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that reads it may be the one in which another was asked for."""
    monkeypatch.setattr("edgespec.desk._READ_ON_WITHIN_S", 0.3)
    pair.speculation = Speculation("none")

    async def both(running: Iterator[Event]) -> tuple[list[Event], list[Event]]:
        heard = [next(running)]
        other = pair.astream(ASK, seed=2, max_tokens=3)
        waiting = asyncio.ensure_future(anext(other))
        while event := next(running, None):
            await asyncio.sleep(0.05)
            heard.append(event)
        return heard, [await waiting, *[event async for event in other]]

    with closing(pair.stream(ASK, seed=1, max_tokens=20)) as running:  # type: ignore[type-var]
        first, second = asyncio.run(both(running))
    assert (len(_ids(first)), len(_ids(second))) == (20, 3)


def test_an_answer_that_nobody_reads_on_frees_the_model(pair: Model) -> None:
    whole = pair.generate(ASK, seed=1, max_tokens=20)
    for heard in range(1, 6):
        events = pair.stream(ASK, seed=1, max_tokens=20)
        for _ in range(heard):
            next(events)
        del events
        assert pair.generate(ASK, seed=1, max_tokens=20).token_ids == whole.token_ids


async def test_async_events_are_those_of_the_stream(pair: Model) -> None:
    pair.speculation = Speculation("none")
    plain = list(pair.stream(ASK, seed=1, max_tokens=12))
    heard = [event async for event in pair.astream(ASK, seed=1, max_tokens=12)]
    assert _ids(heard) == _ids(plain)
    assert isinstance(heard[-1], Finished)


async def test_async_answers_queue(pair: Model) -> None:
    async def ids(seed: int) -> list[int]:
        return _ids([event async for event in pair.astream(ASK, seed=seed, max_tokens=20)])

    together = await asyncio.gather(*(ids(seed) for seed in range(3)))
    assert together == [_ids(list(pair.stream(ASK, seed=seed, max_tokens=20))) for seed in range(3)]


async def test_an_async_listener_that_leaves_stops_the_model(pair: Model) -> None:
    events = pair.astream(ASK, seed=1, max_tokens=400, temperature=0.0)
    async for event in events:
        if isinstance(event, Round):
            break
    await asyncio.wait_for(events.aclose(), SOON_S)  # type: ignore[attr-defined]
    reply = await asyncio.wait_for(asyncio.to_thread(pair.generate, ASK, max_tokens=3), SOON_S)
    assert len(reply.token_ids) == 3


async def test_an_async_listener_that_leaves_before_its_turn_is_let_go(pair: Model) -> None:
    running = pair.stream(ASK, seed=1, max_tokens=400)
    await asyncio.to_thread(next, running)
    try:
        events = pair.astream(ASK, seed=2, max_tokens=3)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.wait({waiting}, timeout=0.3)
        waiting.cancel()
        await asyncio.wait({waiting}, timeout=SOON_S)
        assert waiting.cancelled()
    finally:
        running.close()  # type: ignore[attr-defined]
    assert pair.generate(ASK, seed=2, max_tokens=3).finish_reason is Stop.LENGTH


async def test_a_listener_that_leaves_is_let_go_where_every_thread_waits(pair: Model) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    running = pair.stream(ASK, seed=1, max_tokens=400)
    await asyncio.to_thread(next, running)
    try:
        waiting = [
            asyncio.ensure_future(anext(pair.astream(ASK, seed=seed, max_tokens=3)))
            for seed in range(4)
        ]
        await asyncio.wait(waiting, timeout=0.3)
        for one in reversed(waiting):
            one.cancel()
            await asyncio.wait({one}, timeout=SOON_S)
            assert one.cancelled()
    finally:
        running.close()  # type: ignore[attr-defined]


async def test_async_errors_reach_the_listener(pair: Model) -> None:
    with pytest.raises(BadInput, match="the context holds"):
        async for _ in pair.astream("word " * 3000):
            pass
    with pytest.raises(BadInput, match="no setting"):
        async for _ in pair.astream(ASK, nothing=1):  # type: ignore[call-arg]
            pass


def test_a_closed_model_says_so(opened: Load) -> None:
    model = opened()
    with model as same:
        assert same is model
        chat = model.chat()
    model.close()
    for use in (
        lambda: model.generate(ASK),
        lambda: model.stream(ASK),
        lambda: model.count_tokens("a"),
        lambda: chat.send("Hi"),
        lambda: chat.end_names,
        lambda: chat.answer(Turn((Message("user", ASK),))),
        lambda: chat.explain(Turn((Message("user", ASK),)), (1, 2), 0),
        model.chat,
        model.forget,
    ):
        with pytest.raises(BadInput, match="closed"):
            use()


@pytest.mark.parametrize("use", ["count", "end names", "answer", "chat answer"])
def test_a_model_that_is_closed_while_a_text_is_split_is_freed_behind_it(
    opened: Load, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """Freed memory that is read ends the whole process."""
    model = opened()
    chat, tokenizer = model.chat(), model.loaded.models[0].tokenizer
    encode, order = tokenizer.encode, list[str]()

    def close() -> None:
        model.close()
        order.append("closed")

    closing = threading.Thread(target=close)

    def slowly(text: str, *, special: bool) -> list[int]:
        if closing.ident is None:
            closing.start()
        closing.join(0.2)
        order.append("split")
        return encode(text, special=special) if closing.is_alive() else []

    monkeypatch.setattr(tokenizer, "encode", slowly)
    uses: dict[str, Callable[[], object]] = {
        "count": lambda: model.count_tokens("a"),
        "end names": lambda: chat.end_names,
        "answer": lambda: model.stream(ASK),
        "chat answer": lambda: chat.answer(Turn((Message("user", ASK),))),
    }
    with suppress(BadInput):  # where more was to be done than to split it
        uses[use]()
    closing.join(SOON_S)
    assert order[-1] == "closed"
    assert "split" in order


def test_what_only_splits_a_text_does_not_wait_for_a_pass(pair: Model) -> None:
    with pair._desk._in_use:
        assert pair.count_tokens("a word") > 0


@pytest.mark.parametrize("heard", [0, 1, 2, 5])
def test_an_answer_that_outlives_its_model_ends_with_an_error_and_no_crash(
    opened: Load, heard: int
) -> None:
    model = opened()
    events = model.stream(ASK, seed=1, max_tokens=50)
    for _ in range(heard):
        next(events)
    model.close()
    with pytest.raises(BadInput, match="closed"):
        next(events)


def test_closing_from_another_thread_waits_for_the_round(opened: Load) -> None:
    model, running, ended = opened(), threading.Event(), list[BaseException]()

    def listen() -> None:
        try:
            for _ in range(50):
                for _event in model.stream(ASK, max_tokens=200):
                    running.set()
        except BadInput as error:
            ended.append(error)

    thread = threading.Thread(target=listen)
    thread.start()
    assert running.wait(SOON_S)
    model.close()
    thread.join(SOON_S)
    assert not thread.is_alive()
    assert "closed" in str(ended[0])
