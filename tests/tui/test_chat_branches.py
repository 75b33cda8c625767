"""Answers made anew in the chat: again, further, edited, steered, replayed; and their branches."""

from __future__ import annotations

from pathlib import Path

import pytest
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
)
from fake_model import SHORT, FakeModel, endless, guessed, plain
from waiting import wait_until

from edgespec.decoding.events import Alternative, Finished, PromptRead, Stop
from edgespec.errors import BackendFailed
from edgespec.history import History
from edgespec.tui.attach import Attached
from edgespec.tui.token_view import Marking

OTHER = (plain("Another"), plain(" answer"), Finished(Stop.END))
CUT = (plain("Half"), plain(" of"), Finished(Stop.LENGTH))
REST = (plain(" it"), Finished(Stop.END))


async def test_control_r_answers_again_and_keeps_the_old_answer_as_a_branch() -> None:
    model = FakeModel(scripts=(SHORT, OTHER))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("ctrl+r")
        await wait_until(lambda: shown(app).endswith("Another answer"))
        await wait_until(lambda: labels(app) == ["branch 2 of 2"])
        first, second = model.turns
        assert first.messages == second.messages
        assert first.options.overrides["seed"] == second.options.overrides["seed"]
        assert (first.options.branch, second.options.branch) == (0, 1)


async def test_alt_and_arrows_walk_the_branches() -> None:
    model = FakeModel(scripts=(SHORT, OTHER))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("ctrl+r")
        await wait_until(lambda: not app.backstage.busy and "Another" in shown(app))
        await pilot.press("alt+left")
        assert shown(app).endswith(ANSWER)
        assert labels(app) == ["branch 1 of 2"]
        await pilot.press("alt+left")
        assert "no branch" in notice(app)
        await pilot.press("alt+right")
        assert shown(app).endswith("Another answer")


async def test_what_is_said_next_follows_the_branch_that_is_open() -> None:
    model = FakeModel(scripts=(SHORT, OTHER))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("ctrl+r")
        await wait_until(lambda: not app.backstage.busy and "Another" in shown(app))
        await pilot.press("alt+left")
        await answered(app, pilot, "more")
        assert [m.content for m in model.turns[-1].messages] == ["hi", ANSWER, "more"]


async def test_regenerating_while_an_answer_runs_has_to_wait() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await pilot.press("ctrl+r")
        assert "no answer yet" in notice(app)
        await running(app, pilot)
        for key in ("ctrl+r", "f5"):
            await pilot.press(key)
            assert "still answering" in notice(app)
        assert len(model.turns) == 1


async def test_control_g_goes_on_with_an_answer_that_was_cut_off() -> None:
    model = FakeModel(scripts=(CUT, REST))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        assert labels(app) == ["ended at the token limit · Ctrl+G continues"]
        await pilot.press("ctrl+g")
        await wait_until(lambda: shown(app).endswith("Half of it"))
        await wait_until(lambda: not labels(app))
        before, after = model.turns
        assert after.begun == (1, 1)
        assert after.options.overrides["seed"] == before.options.overrides["seed"]
        (_, saved) = app.backstage.shelf.current.path
        assert (saved.content, saved.ids) == ("Half of it", (1, 1, 1))


async def test_an_answer_cut_inside_a_character_goes_on_with_the_whole_one(tmp_path: Path) -> None:
    half = (plain("Un caf"), plain(""), Finished(Stop.LENGTH, "\ufffd"))
    model = FakeModel(scripts=(half, (plain("é"), Finished(Stop.LENGTH)), REST))
    history = History.open(tmp_path / "history.sqlite3")
    async with chatting(model, history=history) as (app, pilot):
        await answered(app, pilot)
        assert shown(app).endswith("Un caf\ufffd")
        await pilot.press("ctrl+g")
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        assert shown(app).endswith("Un café")
        await pilot.press("ctrl+g")
        await wait_until(lambda: shown(app).endswith("Un café it"))
        await wait_until(lambda: not app.backstage.busy)
        talk = history.load(history.recent(1)[0].id)
        assert (talk.path[-1].content, talk.path[-1].ids) == ("Un café it", (1, 1, 1, 1))
        runs = app.backstage.talking.runs_of(talk.path[-1].id)
        assert [text for text, _ in runs] == ["Un caf", "", "é", " it"]
        await answered(app, pilot, "more")
        assert model.turns[-1].messages[1].content == "Un café it"


async def test_text_that_might_have_been_a_stop_string_is_said_once() -> None:
    held = (plain("Half"), plain(" "), plain(""), Finished(Stop.LENGTH, "<e"))
    model = FakeModel(scripts=(held, (plain("<em>"), Finished(Stop.END))))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        assert shown(app).endswith("Half <e")
        await pilot.press("ctrl+g")
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        assert shown(app).endswith("Half <em>")
        assert app.backstage.shelf.current.path[-1].content == "Half <em>"


async def test_what_stands_stays_where_the_prompt_is_not_read_to_its_end() -> None:
    failing = BackendFailed("the model failed; try again")
    model = FakeModel(scripts=((plain("Half"), Finished(Stop.LENGTH, "\ufffd")), (failing,)))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        model.said.clear()
        await pilot.press("ctrl+g")
        await wait_until(lambda: "the model failed" in shown(app))
        assert app.backstage.shelf.current.path[-1].content == "Half\ufffd"


async def test_half_a_character_that_was_chosen_is_said_with_its_other_half() -> None:
    rest = (PromptRead(0, 3, 0, 0.0, begun=("Sorting", "")), plain("é"), Finished(Stop.END))
    model = FakeModel(scripts=(SHORT, rest))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        key = app.backstage.shelf.current.path[-1].id
        app.backstage.steering.resteer(key, 1, Alternative(195, -1.0, "\ufffd"))
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        assert shown(app).endswith("Sortingé")
        assert app.backstage.shelf.current.path[-1].content == "Sortingé"


async def test_a_whole_answer_is_not_continued() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("ctrl+g")
        assert "whole" in notice(app)
        assert len(model.turns) == 1


async def test_control_e_edits_the_last_message_as_a_branch() -> None:
    model = FakeModel(scripts=(SHORT, OTHER))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot, "two")
        await pilot.press("ctrl+e")
        assert app.prompt.text == "two"
        assert "editing" in str(app.prompt.border_title)
        await pilot.press(*"fold", "enter")
        await wait_until(lambda: not app.backstage.busy and "Another" in shown(app))
        assert [m.content for m in model.turns[-1].messages] == ["twofold"]
        assert labels(app) == ["branch 2 of 2"]
        assert "editing" not in str(app.prompt.border_title)
        await pilot.press("alt+left")
        assert shown(app).strip() == f"two\n\n{ANSWER}"


async def test_escape_leaves_editing_and_the_next_message_is_a_new_one() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await answered(app, pilot, "one")
        await pilot.press("ctrl+e", "escape")
        assert app.prompt.text == ""
        await answered(app, pilot, "two")
        assert [m.content for m in model.turns[-1].messages] == ["one", ANSWER, "two"]


@pytest.mark.parametrize("way", ["escape", "send", "new chat", "another"])
async def test_a_draft_waits_with_its_attachments_while_an_earlier_message_is_edited(
    way: str,
) -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await answered(app, pilot, "one")
        app.composer.attach(Attached("notes.md", "text", 1))
        await pilot.press(*"draft", "ctrl+e")
        assert app.prompt.text == "one"
        assert app.composer.attached == ()
        if way == "escape":
            await pilot.press("escape")
        elif way == "send":
            await pilot.press("enter")
            await wait_until(lambda: len(model.turns) == 2)
            assert [m.content for m in model.turns[-1].messages] == ["one"]
        elif way == "new chat":
            await pilot.press("ctrl+n")
        else:
            await pilot.press("ctrl+e", "x", "escape")
        await wait_until(lambda: app.prompt.text == "draft", "the draft")
        assert [one.name for one in app.composer.attached] == ["notes.md"]
        assert app.backstage.editing is None


async def test_a_command_begins_editing_too_and_keeps_what_is_attached() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await answered(app, pilot, "one")
        app.composer.attach(Attached("notes.md", "text", 1))
        await command(app, pilot, "/edit")
        await wait_until(lambda: app.prompt.text == "one")
        await pilot.press("escape")
        assert app.prompt.text == ""
        assert [one.name for one in app.composer.attached] == ["notes.md"]


async def test_an_alternative_rewrites_the_answer_from_its_token_on() -> None:
    steered = (guessed(" things", " apart", accepted=1), Finished(Stop.END))
    model = FakeModel(scripts=(SHORT, steered))
    async with chatting(model, WIDE) as (app, pilot):
        await pilot.press("f3", "escape")
        await answered(app, pilot)
        (_, saved) = app.backstage.shelf.current.path
        app.view.select(saved.id, 1)
        app.inspector.select(saved.id, 1, " means")
        app.inspector.focus_rows()
        await wait_until(lambda: app.inspector.alternatives.choices)
        chosen = app.inspector.alternatives.choices[1]
        await pilot.press("2")
        assert app.prompt.text == ""
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        turn = model.turns[1]
        assert turn.begun == (saved.ids[0], chosen.token)
        assert turn.expected == saved.ids[2:]
        assert turn.options.overrides["seed"] == saved.seed
        assert shown(app).endswith(f"Sorting{chosen.text} things apart")
        assert labels(app) == ["branch 2 of 2"]
        key = app.backstage.shelf.current.path[-1].id
        texts = [[t.text for t in row.event.tokens] for row in app.inspector.rounds.of(key)]
        assert texts == [["Sorting"], [chosen.text], [" things", " apart"]]
        await pilot.press("escape", "alt+left")
        assert shown(app).endswith(ANSWER)


async def test_steering_an_answer_that_runs_leaves_it_for_the_new_one() -> None:
    model = FakeModel(scripts=(endless(), OTHER), pace_s=0.002)
    async with chatting(model, WIDE) as (app, pilot):
        await pilot.press("f3", "escape")
        await running(app, pilot)
        key = app.backstage.talking.now.key  # type: ignore[union-attr]
        app.inspector.select(key, 2, " word2")
        await wait_until(lambda: app.inspector.alternatives.choices)
        app.inspector.focus_rows()
        await pilot.press("3")
        await wait_until(lambda: len(model.turns) == 2 and not app.backstage.busy)
        assert len(model.turns[1].begun) == 3
        assert "word0 word1 twoAnother answer" in shown(app)


async def test_a_token_of_an_answer_without_alternatives_is_asked_for() -> None:
    model = FakeModel()
    async with chatting(model, WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3")
        await pilot.press("up")
        await wait_until(lambda: app.inspector.alternatives.choices, "the alternatives")
        turn, ids, at = model.explained[-1]
        assert ids == app.backstage.shelf.current.path[-1].ids
        assert app.inspector.selected == (app.backstage.shelf.current.path[-1].id, at)
        assert turn.messages == model.turns[0].messages
        assert app.view.selected == app.inspector.selected


async def test_a_token_that_was_pointed_at_during_an_answer_is_asked_for_once_that_has_ended() -> (
    None
):
    model = FakeModel(scripts=(SHORT, endless()), pace_s=0.002)
    async with chatting(model, WIDE) as (app, pilot):
        await answered(app, pilot)
        await running(app, pilot)
        key = app.backstage.shelf.current.path[1].id
        app.inspector.select(key, 1, " means")
        await wait_until(lambda: "known once" in str(app.inspector.detail.content))
        assert model.explained == []
        await pilot.press("escape")
        await wait_until(lambda: app.inspector.alternatives.choices, "the alternatives")
        assert model.explained[-1][2] == 1


async def test_the_arrows_go_from_token_to_token_while_the_prompt_is_empty() -> None:
    model = FakeModel()
    async with chatting(model, WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3", "escape")
        assert app.view.marking is Marking.INSPECT
        await pilot.press("left")
        await wait_until(lambda: app.inspector.selected is not None)
        last = app.inspector.selected
        await pilot.press("left")
        await wait_until(lambda: app.inspector.selected != last)
        await pilot.press("x", "left")
        assert app.prompt.cursor_location == (0, 0), "with a text the arrows are the prompt's"


async def test_f5_replays_without_speculation_and_shows_both_times() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await pilot.press("f5")
        assert "no answer to replay" in notice(app)
        await answered(app, pilot)
        await pilot.press("f5")
        await wait_until(lambda: "the same text, token for token" in shown(app), "the replay")
        first, replay = model.turns
        assert replay.speculation is not None
        assert replay.speculation.proposer == "none"
        assert replay.messages == first.messages
        assert replay.options.overrides == first.options.overrides
        head = next(line for line in shown(app).splitlines() if "as answered" in line)
        assert head.split() == ["as", "answered", "plain"]
        assert "tokens / s" in shown(app)
        assert len(app.backstage.shelf.current.path) == 2, "a replay is no branch"


async def test_f5_replays_under_the_system_prompt_that_the_answer_was_given_under() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        app.backstage.set_system("Be brief.")
        await answered(app, pilot)
        app.backstage.set_system("Talk like a pirate.")
        await pilot.press("f5")
        await wait_until(lambda: "the same text, token for token" in shown(app), "the replay")
        first, replay = model.turns
        assert [m.content for m in replay.messages] == ["Be brief.", "hi"]
        assert replay.messages == first.messages


async def test_a_replay_that_differs_tells_where_and_by_how_much() -> None:
    model = FakeModel(
        scripts=(OTHER, (plain("Another"), guessed(" way", accepted=0), Finished(Stop.END)))
    )
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f5")
        await wait_until(lambda: "first difference at token 2" in shown(app), "the replay")
        assert "apart in log-probability" in " ".join(shown(app).split())
        turn, ids, at = model.explained[-1]
        assert (ids, at) == ((1, 99), 1)
        assert turn.begun == ()


async def test_escape_stops_a_replay() -> None:
    model = FakeModel(scripts=(SHORT, endless()), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f5")
        await wait_until(lambda: "replaying" in app.backstage.situation.phase)
        await ask(app, pilot, "x")
        assert "still answering" in notice(app)
        await pilot.press("escape")
        await wait_until(lambda: not app.backstage.busy)
