"""Every command of the chat, as it is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import ANSWER, answered, ask, chatting, command, labels, notice, shown, status
from fake_model import SHORT, FakeInfo, FakeModel, plain
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.tui.commands import COMMANDS
from edgespec.tui.conversations_screen import ConversationsScreen
from edgespec.tui.help_screen import HelpScreen
from edgespec.tui.models_screen import ModelsScreen
from edgespec.tui.questions import Confirm

FENCES = "```python\nprint(1)\n```\n\nand\n\n```\ntwo\n```\n"
TRIED = {
    "set", "system", "file", "spec", "model", "new", "regenerate", "continue", "replay", "edit",
    "branch", "copy", "export", "search", "rename", "delete", "show", "help", "quit",
}  # fmt: skip


def test_every_command_is_tried_here() -> None:
    assert {one.name for one in COMMANDS} == TRIED


async def test_set_changes_the_next_answer_and_shows_what_holds() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/set temperature 0.3")
        told = " ".join(shown(app).split())
        assert "temperature 0.3 holds until you leave; to keep it, set temperature in" in told
        await command(app, pilot, "/set max_tokens 5")
        await command(app, pilot, "/set seed 42")
        await answered(app, pilot)
        options = model.turns[0].options
        assert options.overrides == {"temperature": 0.3, "seed": 42}
        assert options.max_tokens == 5
        assert app.backstage.shelf.current.path[-1].seed == 42
        await command(app, pilot, "/set temperature")
        assert shown(app).endswith("temperature 0.3")
        await command(app, pilot, "/set")
        assert "repeat_penalty" in shown(app)


async def test_a_wrong_value_is_told_and_changes_nothing() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        app.prompt.text = "/set top_p 7"
        await pilot.pause()
        app.composer.close_completion()
        await pilot.press("enter")
        await wait_until(lambda: "top_p" in shown(app))
        assert app.prompt.text == "/set top_p 7", "it can be put right"
        assert "top_p" not in app.backstage.options.overrides


async def test_an_unknown_command_names_the_nearest() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        app.prompt.text = "/regenrate"
        await pilot.press("enter")
        await wait_until(lambda: "did you mean /regenerate?" in " ".join(shown(app).split()))


async def test_a_message_with_two_slashes_is_sent_with_one() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await pilot.press(*"//etc", "enter")
        await wait_until(lambda: model.asked == ["/etc"])
        await wait_until(lambda: not app.backstage.busy)


async def test_system_holds_from_the_next_answer_on_and_for_new_chats() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/system")
        assert "no system prompt" in shown(app)
        await command(app, pilot, "/system Be brief.")
        await command(app, pilot, "/new")
        await answered(app, pilot)
        roles = [(m.role, m.content) for m in model.turns[0].messages]
        assert roles == [("system", "Be brief."), ("user", "hi")]
        await command(app, pilot, "/system -")
        await answered(app, pilot, "on")
        assert model.turns[1].messages[0].role == "user"


async def test_another_system_prompt_counts_at_once() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await answered(app, pilot)
        before = app.backstage.situation.context_used
        await command(app, pilot, "/system " + "word " * 500)
        await wait_until(lambda: app.backstage.situation.context_used >= 500 > before)


async def test_a_file_goes_along_with_the_next_message(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("one two three")
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, f"/file {notes}")
        await wait_until(lambda: [one.tokens for one in app.composer.attached] == [6])
        await answered(app, pilot, "sum")
        assert model.asked == ['<document name="notes.txt">\none two three\n</document>\n\nsum']
        assert "[notes.txt]\nsum" in shown(app)
        assert app.composer.attached == ()
        await command(app, pilot, "/edit")
        assert [one.name for one in app.composer.attached] == ["notes.txt"]


async def test_a_file_over_the_context_is_refused_with_numbers(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("word " * 200)
    model = FakeModel(info=replace(FakeInfo(), context=100))
    async with chatting(model) as (app, pilot):
        await command(app, pilot, f"/file {notes}")
        await wait_until(lambda: all(one.tokens for one in app.composer.attached))
        await pilot.press(*"sum", "enter")
        await wait_until(lambda: "of 100 are free" in " ".join(shown(app).split()))
        assert model.asked == []
        assert app.prompt.text == "sum"
        await command(app, pilot, "/file -")
        assert app.composer.attached == ()


async def test_spec_sets_the_proposer_and_the_length() -> None:
    model = FakeModel(lacks=("draft",))
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/spec ngram 6")
        assert (model.speculation.proposer, model.speculation.draft_tokens) == ("ngram", 6)
        await command(app, pilot, "/spec off")
        assert model.speculation.proposer == "none"
        assert "spec off" in status(app)
        await command(app, pilot, "/spec draft")
        assert "no draft model" in shown(app)
        assert model.speculation.proposer == "none"
        await command(app, pilot, "/spec")
        assert shown(app).endswith("speculation off")


async def test_new_and_regenerate_and_branch_and_copy() -> None:
    other = (plain(FENCES), Finished(Stop.END))
    model = FakeModel(scripts=(SHORT, other))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        await command(app, pilot, "/regenerate")
        await wait_until(lambda: "two" in shown(app) and not app.backstage.busy)
        await command(app, pilot, "/copy 2")
        assert app.clipboard.strip() == "two"
        await command(app, pilot, "/copy")
        assert app.clipboard == FENCES
        await command(app, pilot, "/copy 3")
        assert "2 code blocks" in notice(app)
        await command(app, pilot, "/branch 1")
        assert labels(app) == ["branch 1 of 2"]
        await command(app, pilot, "/branch next")
        assert labels(app) == ["branch 2 of 2"]
        await command(app, pilot, "/branch previous")
        assert shown(app).endswith(ANSWER)
        await command(app, pilot, "/branch 3")
        assert "no branch 3" in notice(app)
        await command(app, pilot, "/new")
        assert shown(app) == ""


async def test_continue_and_replay_and_edit() -> None:
    cut = (plain("Half"), Finished(Stop.LENGTH))
    rest = (plain(" done"), Finished(Stop.END))
    model = FakeModel(scripts=(cut, rest))
    async with chatting(model) as (app, pilot):
        await answered(app, pilot, "one")
        await command(app, pilot, "/continue")
        await wait_until(lambda: shown(app).endswith("Half done"))
        await wait_until(lambda: not app.backstage.busy)
        await command(app, pilot, "/replay")
        await wait_until(lambda: "token for token (2)" in shown(app))
        await answered(app, pilot, "two")
        await command(app, pilot, "/edit 2")
        assert app.prompt.text == "one"


@pytest.mark.parametrize("ending", ["md", "json"])
async def test_export_writes_a_new_private_file(tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"talk.{ending}"
    async with chatting(FakeModel()) as (app, pilot):
        await command(app, pilot, f"/export {file}")
        assert "nothing was said yet" in shown(app)
        await answered(app, pilot, "what is sorting?")
        await command(app, pilot, f"/export {file}")
        assert "written to" in shown(app)
        text = file.read_text()
        assert "what is sorting?" in text
        assert file.stat().st_mode & 0o077 == 0
        if ending == "json":
            assert "tokens_per_second" in json.dumps(json.loads(text))
        await command(app, pilot, f"/export {file}")
        assert "is there already" in " ".join(shown(app).split())
        assert file.read_text() == text


async def test_rename_search_and_delete() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await command(app, pilot, "/rename Too early")
        assert "nothing was said yet" in shown(app)
        await answered(app, pilot, "what is sorting?")
        assert "what is sorting?" in str(app.prompt.border_title)
        await command(app, pilot, "/rename Sorting explained")
        assert "Sorting explained" in str(app.prompt.border_title)
        await command(app, pilot, "/search explained")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press("escape")
        await command(app, pilot, "/delete")
        await wait_until(lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        assert "what is sorting?" in shown(app)
        await command(app, pilot, "/delete")
        await wait_until(lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await wait_until(lambda: shown(app) == "")
        assert app.backstage.shelf.history.recent(5) == []


async def test_model_without_a_name_lists_what_is_here() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await command(app, pilot, "/model")
        await wait_until(lambda: isinstance(app.screen, ModelsScreen))
        await pilot.press("escape")
        await wait_until(lambda: not isinstance(app.screen, ModelsScreen))
        await command(app, pilot, "/model other")
        assert "no other model can be loaded here" in shown(app)


async def test_show_help_and_quit() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/show")
        assert model.speculation.always_draft
        await command(app, pilot, "/help")
        await wait_until(lambda: isinstance(app.screen, HelpScreen))
        await pilot.press("escape")
        await wait_until(lambda: not isinstance(app.screen, HelpScreen))
        await ask(app, pilot)
        app.prompt.text = "/quit"
        await pilot.press("enter")
        await wait_until(lambda: not app.is_running, "quitting")


async def test_export_without_a_name_makes_one_and_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with chatting(FakeModel()) as (app, pilot):
        await answered(app, pilot, "How/does_it sort?")
        await command(app, pilot, "/export")
        await command(app, pilot, "/export")
        first, second = sorted(tmp_path.iterdir(), key=lambda file: len(file.name))
        assert first.name.startswith("how-does-it-sort-")
        assert second.name == f"{first.stem}-2.md"
        assert first.name in "".join(shown(app).split())
