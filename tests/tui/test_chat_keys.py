"""The chat as a user drives it: every key, every fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from fake_model import SHORT, FakeInfo, FakeModel, endless, guessed, plain, setup_for
from textual import events
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import BackendFailed
from edgespec.tui.app import ChatApp
from edgespec.tui.help_screen import HelpScreen
from edgespec.tui.status import SEPARATOR
from edgespec.tui.theme import DARK, LIGHT
from edgespec.tui.token_view import Marking

ANSWER = "Sorting means giving items a fixed order.\n\nTake"


@asynccontextmanager
async def chatting(
    model: FakeModel, size: tuple[int, int] = (90, 30)
) -> AsyncIterator[tuple[ChatApp, Pilot[None]]]:
    app = ChatApp(setup_for(model))
    async with app.run_test(size=size) as pilot:
        await wait_until(lambda: app.ready, "loading")
        yield app, pilot
    assert app.engine.stop(5.0), "the engine's thread did not end"
    assert model.closed


def shown(app: ChatApp) -> str:
    return app.view.transcript.text()


def status(app: ChatApp) -> str:
    return SEPARATOR.join(part.text for part in app.status._parts)


async def ask(app: ChatApp, pilot: Pilot[None], text: str = "hi") -> None:
    await pilot.press(*text, "enter")
    await wait_until(lambda: app.busy or text in shown(app))


async def running(app: ChatApp, pilot: Pilot[None]) -> None:
    """An answer that does not end has begun to appear."""
    await ask(app, pilot)
    await wait_until(lambda: "word3" in shown(app), "the answer")


async def test_a_question_is_answered() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await ask(app, pilot, "what is sorting?")
        await wait_until(lambda: not app.busy, "the answer")
        assert model.asked == ["what is sorting?"]
        assert shown(app).endswith(f"what is sorting?\n\n{ANSWER}")
        assert app.prompt.text == ""
        assert "tok/round" in status(app)


async def test_the_screen_is_there_while_the_model_still_loads() -> None:
    model = FakeModel()
    app = ChatApp(setup_for(model, notes=("opening the weights", "measuring")))
    async with app.run_test() as pilot:
        await wait_until(lambda: "opening the weights\nmeasuring" in shown(app))
        await pilot.press("x")
        assert app.prompt.text == "x"
        await wait_until(lambda: app.ready)
        assert "bit-exact" in shown(app)
    app.engine.stop(5.0)


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
        await wait_until(lambda: not app.busy, "the stop")
        assert shown(app).endswith("stopped")
        await ask(app, pilot, "again")
        await wait_until(lambda: shown(app).endswith(ANSWER), "the second answer")


async def test_enter_while_an_answer_runs_keeps_the_text_and_says_why() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("x", "enter")
        assert app.prompt.text == "x"
        assert "still answering" in str(app.prompt.border_subtitle)
        assert model.asked == ["hi"]


async def test_control_c_cancels_and_asks_once_more_before_it_quits() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+c")
        assert "again to quit" in str(app.prompt.border_subtitle)
        await wait_until(lambda: not app.busy, "the stop")
        assert app.is_running
        await pilot.press("ctrl+c")
        await wait_until(lambda: not app.is_running, "quitting")


async def test_control_c_copies_a_selection_instead() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: not app.busy)
        app.view.text_select_all()
        await pilot.press("ctrl+c")
        assert ANSWER in app.clipboard
        assert str(app.prompt.border_subtitle) == "copied"
        await pilot.press(*"mine", "shift+home", "ctrl+c")
        assert app.clipboard == "mine"


async def test_closing_while_an_answer_runs_stops_it_and_ends_the_thread() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+q")
    assert model.closed


async def test_a_click_on_the_conversation_leaves_the_keys_with_the_prompt() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await pilot.click(app.view, offset=(5, 2))
        await pilot.press("x")
        assert app.prompt.text == "x"


async def test_the_theme_can_be_chosen_and_a_wrong_one_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for wanted, chosen in (("nonsense,edgespec-light", LIGHT.name), ("nonsense", DARK.name)):
        monkeypatch.setenv("TEXTUAL_THEME", wanted)
        assert ChatApp(setup_for(FakeModel())).theme == chosen


async def test_control_t_takes_the_marks_off_and_back() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await pilot.press("ctrl+t")
        assert app.view.marking is Marking.OFF
        await pilot.press("ctrl+t")
        assert app.view.marking is Marking.TINT


async def test_control_s_switches_show_mode_and_labels_it() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await pilot.press("ctrl+s")
        assert "show mode: drafting even where it does not pay" in status(app)
        await wait_until(lambda: model.speculation.always_draft)
        await pilot.press("ctrl+s")
        assert "show mode" not in status(app)
        await wait_until(lambda: not model.speculation.always_draft)


async def test_show_mode_switched_during_an_answer_waits_for_the_next() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+s")
        assert "from the next answer" in str(app.prompt.border_subtitle)
        assert not model.speculation.always_draft
        await pilot.press("escape")
        await wait_until(lambda: model.speculation.always_draft)


async def test_control_n_starts_anew_even_in_the_middle_of_an_answer() -> None:
    model = FakeModel(scripts=(endless(), SHORT), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+n")
        assert shown(app) == ""
        await ask(app, pilot, "fresh")
        await wait_until(lambda: shown(app) == f"fresh\n\n{ANSWER}", "the new answer")
        assert model.resets == 1


async def test_f1_shows_every_key_and_escape_closes_it() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("f1")
        await wait_until(lambda: isinstance(app.screen, HelpScreen))
        help_text = str(app.screen.query_one("#help").render())
        for key in ("Enter", "Ctrl+J", "Esc", "Ctrl+C", "Ctrl+T", "Ctrl+S", "Ctrl+N", "F1"):
            assert key in help_text
        await pilot.press("escape")
        await wait_until(lambda: not isinstance(app.screen, HelpScreen))
        assert app.busy, "Escape closed the help, it must not have stopped the answer"


async def test_page_keys_scroll_the_conversation_from_the_prompt() -> None:
    lines = (plain("\n".join(f"line {n}" for n in range(200))), Finished(Stop.END))
    async with chatting(FakeModel(scripts=(lines,))) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: not app.busy)
        end = app.view.max_scroll_y
        await wait_until(lambda: app.view.scroll_offset.y == app.view.max_scroll_y)
        await pilot.press("pageup")
        await wait_until(lambda: app.view.scroll_offset.y < end and not app.view.following)
        await pilot.press("pagedown")
        await wait_until(lambda: app.view.following)


async def test_control_j_makes_a_new_line_and_the_box_grows_to_a_limit() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        height = app.prompt.size.height
        await pilot.press("a", "ctrl+j", "b")
        assert app.prompt.text == "a\nb"
        await wait_until(lambda: app.prompt.size.height == height + 1)
        await pilot.press(*["ctrl+j"] * 20)
        await wait_until(lambda: app.prompt.outer_size.height == 8)
        await pilot.press("enter")
        await wait_until(lambda: model.asked == ["a\nb"])


async def test_a_paste_of_many_lines_never_submits() -> None:
    model = FakeModel()
    async with chatting(model) as (app, _):
        app.post_message(events.Paste("one\r\ntwo\rthree\n"))
        await wait_until(lambda: app.prompt.text == "one\ntwo\nthree\n")
        assert model.asked == []


async def test_arrows_recall_earlier_inputs_only_at_the_edge_rows() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        for text in ("first", "second"):
            await ask(app, pilot, text)
            await wait_until(lambda: not app.busy)
        await pilot.press(*"dr", "ctrl+j", *"aft", "up")
        assert app.prompt.text == "dr\naft", "the cursor only moved up a row"
        await pilot.press("up")
        assert app.prompt.text == "second"
        await pilot.press("up", "up")
        assert app.prompt.text == "first"
        await pilot.press("down", "down")
        assert app.prompt.text == "dr\naft"


async def test_an_engine_error_is_one_line_and_the_chat_stays_usable() -> None:
    fault = BackendFailed("the device\nran out of \x1b[31mmemory; use fewer --gpu-layers")
    model = FakeModel(scripts=((plain("Half"), fault), SHORT))
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: not app.busy)
        last = app.view.transcript.rows[-1]
        assert last.text == "the device ran out of memory; use fewer --gpu-layers"
        assert last.voice.value == "error"
        await ask(app, pilot, "again")
        await wait_until(lambda: shown(app).endswith(ANSWER))


async def test_a_fault_of_the_drafter_is_told_once_after_the_answer() -> None:
    faulty = plain("a", note="the draft ran out of context")
    model = FakeModel(scripts=((faulty, faulty, plain("b"), Finished(Stop.END)),))
    async with chatting(model) as (app, pilot):
        for _ in range(2):
            await ask(app, pilot)
            await wait_until(lambda: not app.busy)
        assert shown(app).count("the draft ran out of context") == 1
        assert "aab" in shown(app)


async def test_a_full_context_says_what_to_do() -> None:
    model = FakeModel(scripts=((plain("a"), Finished(Stop.CONTEXT)),))
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: not app.busy)
        assert "Ctrl+N starts a new chat" in shown(app)


async def test_text_held_back_until_the_end_is_shown() -> None:
    model = FakeModel(scripts=((plain("almost"), Finished(Stop.END, text=" done")),))
    async with chatting(model) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: shown(app).endswith("almost done"))


HOSTILE = "[@click=app.exit]boom[/] [red]x \x1b]0;title\x07\x1b[2J\x9b31m \u202eevil $primary"


async def test_hostile_text_is_neither_markup_nor_escape_sequence() -> None:
    info = replace(FakeInfo(), pair=f"p{HOSTILE}", target=HOSTILE, notes=(HOSTILE,))
    answer = (guessed("[b]bold[/b]", "[/]", "[@click=app.exit]own[/]", accepted=1),)
    model = FakeModel(scripts=((*answer, Finished(Stop.END)),), info=info)
    app = ChatApp(setup_for(model, notes=(HOSTILE,), title=HOSTILE))
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: app.ready)
        app.post_message(events.Paste(HOSTILE))
        await wait_until(lambda: app.prompt.text)
        assert not any(c in app.prompt.text for c in "\x1b\x07\x9b\u202e")
        await pilot.press("enter")
        await wait_until(lambda: model.asked and not app.busy)
        picture = app.export_screenshot(simplify=True)
        everything = shown(app) + status(app) + model.asked[0] + picture
        assert not any(c in everything for c in "\x1b\x07\x9b\u202e")
        assert shown(app).count("[@click=app.exit]boom[/] [red]x") == 4
        assert "[b]bold[/b][@click=app.exit]own[/]" in shown(app)
        for y in range(app.view.size.height):
            for segment in app.view.render_line(y):
                assert segment.style is None or "@click" not in segment.style.meta
    app.engine.stop(5.0)


async def test_it_works_on_a_small_screen() -> None:
    async with chatting(FakeModel(), size=(60, 16)) as (app, pilot):
        await ask(app, pilot)
        await wait_until(lambda: not app.busy)
        await pilot.press("f1")
        await pilot.press("escape")
        assert app.view.size.height >= 8
        assert app.status.region.bottom <= 16
