"""How full the context is, as the chat tells it before an answer has."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from chatting import answered, ask, chatting, command, shown, status
from fake_model import SHORT, FakeInfo, FakeModel, plain
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import BackendFailed
from edgespec.history import Attachment, History, State
from edgespec.tui.app import ChatApp
from edgespec.tui.attach import Attached
from edgespec.tui.engine import ChatSetup

WORDS = 150


class Slow(FakeModel):
    """Counts once it is let go, so that other things happen first."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = threading.Event()

    def count_tokens(self, text: str) -> int:
        self.let_go.wait(9.0)
        return super().count_tokens(text)


def reopened(setup: ChatSetup) -> ChatSetup:
    return replace(setup, reopen=True)


def kept_in(place: Path, *attachments: Attachment) -> History:
    """A history with one conversation of WORDS words, without what is attached to them."""
    history = History.open(place)
    conversation = history.new()
    conversation.say("what is this?", attachments)
    answer = conversation.begin_answer("demo", 1)
    conversation.finish(answer.id, "word " * (WORDS - 3), [1], State.WHOLE, {})
    return history


async def all_counted(app: ChatApp) -> None:
    """What was asked to be counted before this was heard: counts come in the order of asking."""
    app.composer.attach(Attached("last.txt", "x"))
    await wait_until(lambda: app.composer.attached[-1].tokens is not None, "the last count")


async def test_what_is_attached_to_a_reopened_conversation_is_counted_too(tmp_path: Path) -> None:
    history = kept_in(tmp_path / "history.sqlite3", Attachment("notes.txt", "all of it", 3))
    framed = '<document name="notes.txt">\nall of it\n</document>'
    whole = WORDS + len(framed.split())
    async with chatting(FakeModel(), history=history, change=reopened) as (app, _):
        await wait_until(lambda: f"context {whole}/4096" in status(app), "its size")


async def test_a_count_of_one_conversation_is_not_taken_for_that_of_another(tmp_path: Path) -> None:
    history, model = kept_in(tmp_path / "history.sqlite3"), Slow()
    async with chatting(model, history=history, change=reopened) as (app, pilot):
        await pilot.press("ctrl+n")
        model.let_go.set()
        await all_counted(app)
        assert app.backstage.situation.context_used == 0
        app.backstage.open(history.recent(1)[0].id)
        await wait_until(lambda: app.backstage.situation.context_used == WORDS)


async def test_a_message_that_fails_in_a_new_chat_leaves_it_empty() -> None:
    failing = (BackendFailed("the model failed; try again"),)
    model = FakeModel(scripts=(SHORT, failing))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        assert app.backstage.situation.context_used == 30, "20 of the prompt, 10 of the answer"
        await pilot.press("ctrl+n")
        await ask(app, pilot)
        await wait_until(lambda: "the model failed" in shown(app))
        await all_counted(app)
        assert app.backstage.situation.context_used == 0


async def test_where_another_answer_fails_the_one_before_it_takes_no_room() -> None:
    failing = (BackendFailed("the model failed; try again"),)
    model = FakeModel(scripts=(SHORT, SHORT, failing))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        first = sum(len(one.content.split()) for one in app.backstage.shelf.current.path)
        await answered(app, pilot, "on")
        await pilot.press("ctrl+r")
        await wait_until(lambda: "the model failed" in shown(app))
        await all_counted(app)
        assert app.backstage.situation.context_used == first


async def test_a_message_that_is_edited_takes_no_room_from_what_it_becomes(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("word " * 60)
    answer = (plain("Another"), Finished(Stop.END))
    model = FakeModel(scripts=(answer,), info=replace(FakeInfo(), context=100))
    async with chatting(model) as (app, pilot):

        async def counted() -> None:
            await wait_until(lambda: [one.tokens for one in app.composer.attached] == [63])

        await command(app, pilot, f"/file {notes}")
        await counted()
        await answered(app, pilot, "sum")
        await pilot.press("ctrl+e")
        await counted()
        await pilot.press("x", "enter")
        await wait_until(lambda: len(model.turns) == 2, "the edited message")
        await wait_until(lambda: not app.backstage.busy)
        assert model.asked[-1].endswith("sumx")
        await pilot.press("ctrl+e", "escape")
        await command(app, pilot, f"/file {notes}")
        await counted()
        await pilot.press(*"more", "enter")
        await wait_until(lambda: "35 of 100 are free" in " ".join(shown(app).split()))
        assert len(model.turns) == 2
