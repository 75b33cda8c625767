"""Conversations that outlive the chat: kept while they are written, found again, opened."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from chatting import ANSWER, answered, ask, chatting, labels, notice, running, shown, status
from fake_model import SHORT, FakeModel, endless, plain, setup_for
from textual.widgets import Input, OptionList
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.errors import EdgespecError
from edgespec.history import Conversation, History, State, Summary
from edgespec.tui.app import ChatApp
from edgespec.tui.conversations_screen import ConversationsScreen, ago
from edgespec.tui.file_names import file_name, free_file_name
from edgespec.tui.questions import AskText, Confirm


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def kept(place: Path) -> Conversation:
    """The latest conversation, as another process reads it."""
    history = History.open(place)
    try:
        return history.load(history.recent(1)[0].id)
    finally:
        history.close()


def talk_about(history: History, *words: str) -> int:
    conversation = history.new()
    for word in words:
        conversation.say(word)
        answer = conversation.begin_answer("demo", 1)
        conversation.finish(answer.id, f"About {word}.", [1], State.WHOLE, {})
    return conversation.id


async def test_what_was_said_is_on_the_disk_with_its_figures(place: Path) -> None:
    async with chatting(FakeModel(), history=History.open(place)) as (app, pilot):
        await answered(app, pilot, "what is sorting?")
        said, answer = kept(place).path
        assert said.content == "what is sorting?"
        assert (answer.content, answer.state, answer.model) == (ANSWER, State.WHOLE, "demo")
        assert answer.ids == (1, 0, 1, 99, 0, 1, 2, 99, 0, 99)
        assert answer.stats["finish_reason"] == "stop"
        assert answer.stats["completion_tokens"] == 10
        assert answer.seed is not None


async def test_a_running_answer_is_kept_about_once_a_second(place: Path) -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, history=History.open(place)) as (app, pilot):
        await running(app, pilot)
        await wait_until(lambda: "word" in kept(place).path[-1].content, "the first second")
        assert app.backstage.busy


async def test_what_came_until_the_chat_was_closed_is_kept(place: Path) -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, history=History.open(place)) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+q")
    answer = kept(place).path[-1]
    assert "word3" in answer.content
    assert answer.state is State.CUT


async def test_an_answer_that_a_killed_process_left_is_shown_as_cut_off(place: Path) -> None:
    history = History.open(place)
    conversation = history.new()
    conversation.say("hi")
    answer = conversation.begin_answer("demo", 5)
    conversation.write(answer.id, "Half", [1])
    history.close()
    rest = FakeModel(scripts=((plain(" done"), Finished(Stop.END)),))
    async with chatting(
        rest, history=History.open(place), change=lambda setup: replace(setup, reopen=True)
    ) as (app, pilot):
        assert "Half" in shown(app)
        assert labels(app) == ["cut off · Ctrl+G continues"]
        await pilot.press("ctrl+g")
        await wait_until(lambda: "Half done" in shown(app) and not app.backstage.busy)
        assert rest.turns[0].begun == (1,)
        assert rest.turns[0].options.overrides["seed"] == 5


async def test_a_chat_begins_anew_unless_it_is_told_to_go_on(place: Path) -> None:
    history = History.open(place)
    talk_about(history, "sorting")
    async with chatting(FakeModel(), history=history) as (app, pilot):
        assert "sorting" not in shown(app)
        await pilot.press("up")
        assert app.prompt.text == "sorting", "earlier messages stand behind the arrow key"
    async with chatting(
        FakeModel(), history=History.open(place), change=lambda setup: replace(setup, reopen=True)
    ) as (app, pilot):
        assert "About sorting." in shown(app)
        await answered(app, pilot, "more")
        assert len(kept(place).path) == 4


async def test_a_reopened_conversation_is_counted_before_its_first_answer(place: Path) -> None:
    talk_about(History.open(place), "sorting")
    async with chatting(
        FakeModel(), history=History.open(place), change=lambda setup: replace(setup, reopen=True)
    ) as (app, _):
        await wait_until(lambda: "context 3/4096" in status(app), "its size in the status line")


async def test_going_on_without_anything_kept_says_so() -> None:
    async with chatting(FakeModel(), change=lambda setup: replace(setup, reopen=True)) as (app, _):
        assert "no conversation was kept yet" in shown(app)


async def test_control_o_lists_finds_and_opens_a_conversation(place: Path) -> None:
    history = History.open(place)
    for word in ("apples", "pears", "plums"):
        talk_about(history, word)
    async with chatting(FakeModel(), history=history) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        found = app.screen.query_one(OptionList)
        assert found.option_count == 3
        await pilot.press(*"pears")
        await wait_until(lambda: found.option_count == 1)
        await pilot.press("enter")
        await wait_until(lambda: "About pears." in shown(app))
        assert "pears" in str(app.prompt.border_title)
        await answered(app, pilot, "go on")
        assert [one.content for one in history.load(2).path][-2:] == ["go on", ANSWER]


async def test_a_conversation_is_opened_with_the_mouse(place: Path) -> None:
    history = History.open(place)
    talk_about(history, "apples")
    async with chatting(FakeModel(), history=history) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.pause()
        await pilot.click(OptionList, offset=(3, 0))
        await wait_until(lambda: "About apples." in shown(app))


async def test_opening_another_conversation_leaves_the_answer_that_runs(place: Path) -> None:
    history = History.open(place)
    talk_about(history, "apples")
    model = FakeModel(scripts=(endless(), SHORT), pace_s=0.002)
    async with chatting(model, history=history) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press("down", "enter")
        await wait_until(lambda: "About apples." in shown(app))
        assert not app.backstage.busy
        await answered(app, pilot, "go on")
        assert "word" not in shown(app)
        left = history.load(2).path[-1]
        assert left.state is State.CUT
        assert "word3" in left.content


async def test_to_open_what_is_open_or_was_deleted_meanwhile_leaves_the_answer_that_runs_alone(
    place: Path,
) -> None:
    history = History.open(place)
    apples = talk_about(history, "apples")
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, history=history) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press("enter")
        await wait_until(lambda: not isinstance(app.screen, ConversationsScreen))
        await pilot.pause()
        assert app.backstage.busy
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        with closing(History.open(place)) as other:
            other.delete(apples)
        await pilot.press("down", "enter")
        await wait_until(lambda: "There is no conversation" in shown(app))
        assert app.backstage.busy


async def test_a_time_that_no_clock_tells_as_a_foreign_file_may_hold_does_not_end_the_chat(
    place: Path,
) -> None:
    history = History.open(place)
    talk_about(history, "apples")
    with closing(sqlite3.connect(place)) as file, file:
        file.execute("UPDATE conversations SET changed_s = -9e999")
    async with chatting(FakeModel(), history=history) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        found = app.screen.query_one(OptionList)
        assert "long ago" in str(found.get_option_at_index(0).prompt)


async def test_a_conversation_is_renamed_exported_and_deleted_from_the_list(
    place: Path, tmp_path: Path
) -> None:
    history = History.open(place)
    talk_about(history, "apples")
    async with chatting(FakeModel(), history=history) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press("ctrl+r")
        await wait_until(lambda: isinstance(app.screen, AskText))
        app.screen.query_one(Input).value = "About fruit"
        await pilot.press("enter")
        await wait_until(lambda: history.recent(1)[0].title == "About fruit")
        await pilot.press("ctrl+x")
        await wait_until(lambda: isinstance(app.screen, AskText))
        assert app.screen.query_one(Input).value == "about-fruit.md"
        app.screen.query_one(Input).value = str(tmp_path / "fruit.md")
        await pilot.press("enter")
        await wait_until((tmp_path / "fruit.md").exists)
        assert "About apples." in (tmp_path / "fruit.md").read_text()
        await pilot.press("ctrl+d")
        await wait_until(lambda: isinstance(app.screen, Confirm))
        await pilot.press("enter")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        assert history.recent(1), "Enter is no"
        await pilot.press("ctrl+d")
        await wait_until(lambda: isinstance(app.screen, Confirm))
        await pilot.click("#yes")
        await wait_until(lambda: not history.recent(1))


async def test_deleting_the_open_conversation_in_mid_answer_begins_a_new_one(place: Path) -> None:
    history = History.open(place)
    model = FakeModel(scripts=(endless(), SHORT), pace_s=0.002)
    async with chatting(model, history=history) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press("ctrl+d")
        await wait_until(lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await wait_until(lambda: not history.recent(1))
        await pilot.press("escape")
        await wait_until(lambda: not isinstance(app.screen, ConversationsScreen))
        assert shown(app) == ""
        await answered(app, pilot, "fresh")
        assert [one.content for one in kept(place).path] == ["fresh", ANSWER]


async def test_two_chats_on_one_database_keep_their_messages_apart(place: Path) -> None:
    models = (FakeModel(), FakeModel())
    apps = [ChatApp(replace(setup_for(one), history=History.open(place))) for one in models]
    async with apps[0].run_test() as first, apps[1].run_test() as second:
        for app in apps:
            await wait_until(lambda app=app: app.backstage.ready)
        for number in range(3):
            for app, pilot, name in ((apps[0], first, "one"), (apps[1], second, "two")):
                await answered(app, pilot, f"{name}{number}")
    for app in apps:
        assert app.backstage.close(5.0)
    history = History.open(place)
    talks = [history.load(summary.id) for summary in history.recent(9)]
    said = {tuple(one.content for one in talk.path if one.role == "user") for talk in talks}
    assert said == {("one0", "one1", "one2"), ("two0", "two1", "two2")}
    history.close()


async def test_branches_are_there_after_a_restart(place: Path) -> None:
    other = (plain("Another"), Finished(Stop.END))
    async with chatting(FakeModel(scripts=(SHORT, other)), history=History.open(place)) as (
        app,
        pilot,
    ):
        await answered(app, pilot)
        await pilot.press("ctrl+r")
        await wait_until(lambda: "Another" in shown(app) and not app.backstage.busy)
        await pilot.press("alt+left")
    async with chatting(
        FakeModel(), history=History.open(place), change=lambda setup: replace(setup, reopen=True)
    ) as (app, pilot):
        assert labels(app) == ["branch 1 of 2"]
        await pilot.press("alt+right")
        assert "Another" in shown(app)


async def test_the_list_says_when_nothing_is_found() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        said = app.screen.query_one("#said")
        assert "no conversation was kept yet" in str(said.render())
        await pilot.press("x", "enter", "ctrl+r", "ctrl+d", "ctrl+x", "down")
        assert "nothing is found" in str(said.render())
        await pilot.press("ctrl+o")
        await wait_until(lambda: not isinstance(app.screen, ConversationsScreen))
        await ask(app, pilot)
        await wait_until(lambda: not app.backstage.busy)
        assert "still" not in notice(app)


async def test_a_list_that_cannot_be_read_any_more_opens_nothing_and_says_why(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.open(place)
    for word in ("apples", "pears"):
        talk_about(history, word)

    def fail(*_: object) -> list[Summary]:
        raise EdgespecError("The history cannot be read (disk I/O error).")

    async with chatting(FakeModel(), history=history) as (app, pilot):
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        found = app.screen.query_one(OptionList)
        assert found.option_count == 2
        late = OptionList.OptionSelected(found, found.get_option_at_index(1), 1)
        monkeypatch.setattr(history, "search", fail)
        await pilot.press("p", "enter", "down", "enter", "ctrl+r", "ctrl+x", "ctrl+d")
        assert found.option_count == 0
        assert "disk I/O error" in str(app.screen.query_one("#said").render())
        found.post_message(late)
        await pilot.pause()
        assert isinstance(app.screen, ConversationsScreen)
        monkeypatch.undo()
        await pilot.press("backspace", "down", "enter")
        await wait_until(lambda: "About apples." in shown(app))


async def test_a_history_that_cannot_be_read_does_not_keep_the_chat_from_opening(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History.open(place)

    def fail(*_: object) -> list[str]:
        raise EdgespecError("The history cannot be read (disk I/O error).")

    monkeypatch.setattr(history, "inputs", fail)
    async with chatting(FakeModel(), history=history) as (app, pilot):
        assert "disk I/O error" in shown(app)
        await answered(app, pilot)
        assert len(kept(place).path) == 2


async def test_an_answer_to_nothing_as_a_foreign_file_may_hold_is_not_made_anew(
    place: Path,
) -> None:
    history = History.open(place)
    talk_about(history, "apples")
    with closing(sqlite3.connect(place)) as file, file:
        file.execute("UPDATE messages SET role = 'assistant'")
    async with chatting(
        FakeModel(), history=history, change=lambda setup: replace(setup, reopen=True)
    ) as (app, pilot):
        await pilot.press("ctrl+r")
        await wait_until(lambda: "no message to answer" in shown(app))
        assert not app.backstage.busy


def test_times_and_file_names_are_in_words() -> None:
    assert [ago(s) for s in (-3, 5, 90, 7200, 100_000, 400_000, 1e300, math.inf, math.nan)] == [
        "0 s ago", "5 s ago", "2 min ago", "2 h ago", "yesterday", "4 days ago", *3 * ["long ago"],
    ]  # fmt: skip
    assert file_name("What is “sorting”?\n/etc") == "what-is-sorting-etc.md"
    assert file_name("…") == "conversation.md"


def test_a_name_of_today_is_made_of_the_same_words_and_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first = free_file_name("Two_Words \x1b[31mRed")
    assert first == f"two-words-red-{date.today():%Y-%m-%d}.md"
    Path(first).touch()
    assert free_file_name("Two_Words red") == first.replace(".md", "-2.md")
