"""An answer in the chat, from its question to its end: whole, stopped, failed, or too long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chatting import (
    ANSWER,
    WIDE,
    answered,
    ask,
    chatting,
    command,
    labels,
    notice,
    running,
    shown,
    status,
)
from fake_model import SHORT, FakeInfo, FakeModel, endless, guessed, plain, setup_for
from textual import events
from waiting import wait_until

from edgespec.decoding.events import Finished, PromptRead, Stop
from edgespec.errors import BackendFailed
from edgespec.tui.app import ChatApp
from edgespec.tui.chips import Chips
from edgespec.tui.status import Tone


async def test_a_question_is_answered() -> None:
    model = FakeModel()
    async with chatting(model, WIDE) as (app, pilot):
        await answered(app, pilot, "what is sorting?")
        assert model.asked == ["what is sorting?"]
        assert shown(app).endswith(f"what is sorting?\n\n{ANSWER}")
        assert app.prompt.text == ""
        await wait_until(lambda: "tok/round" in status(app))


async def test_the_screen_is_there_while_the_model_still_loads() -> None:
    model = FakeModel()
    app = ChatApp(setup_for(model, notes=("opening the weights", "measuring")))
    async with app.run_test() as pilot:
        await wait_until(lambda: "opening the weights\nmeasuring" in shown(app))
        await pilot.press("x")
        assert app.prompt.text == "x"
        await wait_until(lambda: app.backstage.ready)
        assert "bit-exact" in shown(app)
    app.backstage.close(5.0)


async def test_enter_on_a_blank_line_asks_nothing() -> None:
    model = FakeModel()
    async with chatting(model) as (_, pilot):
        await pilot.press("space", "enter")
        assert model.asked == []


async def test_escape_stops_the_answer_and_the_chat_goes_on() -> None:
    model = FakeModel(scripts=(endless(), SHORT), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("escape")
        await wait_until(lambda: not app.backstage.busy, "the stop")
        assert labels(app) == ["stopped · Ctrl+G continues"]
        await ask(app, pilot, "again")
        await wait_until(lambda: shown(app).endswith(ANSWER), "the second answer")


async def test_an_answer_that_is_told_to_stop_says_so_while_the_prompt_is_read_on() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.5)
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        talking = app.backstage.talking
        assert talking.now is not None
        talking.hear(talking.now.number, PromptRead(5, 20, 0, 0.1), 0.0)
        assert app.backstage.situation.phase == "reading the prompt 25%"
        talking.stopping()
        talking.hear(talking.now.number, PromptRead(10, 20, 0, 0.2), 0.0)
        assert app.backstage.situation.phase == "stopping"


async def test_enter_while_an_answer_runs_keeps_the_text_and_says_why() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("x", "enter")
        await wait_until(lambda: "still answering" in notice(app))
        assert app.prompt.text == "x"
        assert model.asked == ["hi"]


async def test_control_c_cancels_and_asks_once_more_before_it_quits() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+c")
        assert "again to quit" in notice(app)
        await wait_until(lambda: not app.backstage.busy, "the stop")
        assert app.is_running
        await pilot.press("ctrl+c")
        await wait_until(lambda: not app.is_running, "quitting")


async def test_closing_while_an_answer_runs_stops_it_and_ends_the_thread() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+q")
    assert model.closed


async def test_control_n_starts_anew_even_in_the_middle_of_an_answer() -> None:
    model = FakeModel(scripts=(endless(), SHORT), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+n")
        assert shown(app) == ""
        await ask(app, pilot, "fresh")
        await wait_until(lambda: shown(app) == f"fresh\n\n{ANSWER}", "the new answer")
        assert [m.content for m in model.turns[-1].messages] == ["fresh"]


async def test_an_engine_error_is_one_line_and_the_chat_stays_usable() -> None:
    fault = BackendFailed("the device\nran out of \x1b[31mmemory; use fewer --gpu-layers")
    model = FakeModel(scripts=((plain("Half"), fault), SHORT))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        assert labels(app) == ["cut off · Ctrl+G continues"]
        last = app.view.transcript.blocks[-1]
        assert last.source == "the device ran out of memory; use fewer --gpu-layers"
        assert last.voice.value == "error"
        await ask(app, pilot, "again")
        await wait_until(lambda: shown(app).endswith(ANSWER))


async def test_a_message_that_failed_before_its_answer_began_is_not_sent_again() -> None:
    model = FakeModel(scripts=((BackendFailed("too long; shorten it"),), SHORT))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot, "long")
        assert labels(app) == ["not answered · Ctrl+R tries again"]
        await answered(app, pilot, "short")
        assert [m.content for m in model.turns[-1].messages] == ["short"]


async def test_a_fault_of_the_drafter_is_told_once_after_the_answer() -> None:
    faulty = plain("a", note="the draft ran out of context")
    model = FakeModel(scripts=((faulty, faulty, plain("b"), Finished(Stop.END)),))
    async with chatting(model) as (app, pilot):
        for _ in range(2):
            await answered(app, pilot)
        assert shown(app).count("the draft ran out of context") == 1
        assert "aab" in shown(app)


async def test_a_full_context_says_what_to_do() -> None:
    model = FakeModel(scripts=((plain("a"), Finished(Stop.CONTEXT)),))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        assert labels(app) == ["the context is full · Ctrl+N starts a new chat"]
        await pilot.press("ctrl+g")
        assert "context is full" in notice(app)


async def test_the_context_meter_warns_when_it_is_nearly_full() -> None:
    model = FakeModel(
        scripts=((PromptRead(90, 90, 0, 0.1), *endless()[1:]),),
        pace_s=0.002,
        info=replace(FakeInfo(), context=100),
    )
    async with chatting(model, WIDE) as (app, pilot):
        await running(app, pilot)
        await wait_until(
            lambda: any(
                "context" in part.text and part.tone is Tone.WARNING for part in app.status._parts
            ),
            "the warning",
        )


async def test_text_held_back_until_the_end_is_shown() -> None:
    model = FakeModel(scripts=((plain("almost"), Finished(Stop.END, text=" done")),))
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: shown(app).endswith("almost done"))
        (_, answer) = app.backstage.shelf.current.path
        block = app.view.transcript.block(answer.id)
        assert block is not None
        assert block.count == len(answer.ids) == 1, "it is the last token's, not one of its own"


HOSTILE = "[@click=app.exit]boom[/] [red]x \x1b]0;title\x07\x1b[2J\x9b31m \u202eevil $primary"


async def test_hostile_text_is_neither_markup_nor_escape_sequence() -> None:
    info = replace(FakeInfo(), pair=f"p{HOSTILE}", target=HOSTILE, notes=(HOSTILE,))
    answer = (guessed("[b]bold[/b]", "[/]", "[@click=app.exit]own[/]", accepted=1),)
    model = FakeModel(scripts=((*answer, Finished(Stop.END)),), info=info)
    app = ChatApp(setup_for(model, notes=(HOSTILE,), title=HOSTILE))
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: app.backstage.ready)
        app.post_message(events.Paste(HOSTILE))
        await wait_until(lambda: app.prompt.text)
        assert not any(c in app.prompt.text for c in "\x1b\x07\x9b\u202e")
        await pilot.press("enter")
        await wait_until(lambda: model.asked and not app.backstage.busy)
        picture = app.export_screenshot(simplify=True)
        everything = shown(app) + status(app) + model.asked[0] + picture
        assert not any(c in everything for c in "\x1b\x07\x9b\u202e")
        assert shown(app).count("[@click=app.exit]boom[/] [red]x") == 4
        assert "[b]bold[/b][@click=app.exit]own[/]" in shown(app)
        for y in range(app.view.size.height):
            for segment in app.view.render_line(y):
                assert segment.style is None or "@click" not in segment.style.meta
    app.backstage.close(5.0)


class Uncounting(FakeModel):
    def count_tokens(self, text: str) -> int:
        raise BackendFailed("the tokenizer failed; shorten the text")


async def test_a_file_that_cannot_be_counted_is_said_and_can_still_be_sent(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("all of it")
    model = Uncounting()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, f"/file {tmp_path / 'notes.txt'}")
        await wait_until(lambda: "the tokenizer failed" in shown(app))
        assert "counting" not in str(app.composer.query_one(Chips).content)
        await answered(app, pilot)
        assert "all of it" in model.turns[0].messages[0].content
