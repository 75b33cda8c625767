"""The chat as a user drives it: every key that is not about answers, branches or history."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import pytest
from chatting import ANSWER, WIDE, answered, chatting, command, notice, running, shown, status
from fake_model import SHORT, FakeModel, endless, plain, setup_for
from textual import events
from waiting import wait_until

from edgespec.decoding.events import Finished, PromptRead, Stop
from edgespec.tui.app import ChatApp
from edgespec.tui.conversations_screen import ConversationsScreen
from edgespec.tui.help_screen import HelpScreen
from edgespec.tui.keys import ACTIONS, KEYS, USES
from edgespec.tui.theme import DARK, LIGHT
from edgespec.tui.token_view import Marking


async def test_control_c_copies_a_selection_instead() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await answered(app, pilot)
        app.view.text_select_all()
        await pilot.press("ctrl+c")
        assert ANSWER in app.clipboard
        assert notice(app) == "copied"
        await pilot.press(*"mine", "shift+home", "ctrl+c")
        assert app.clipboard == "mine"


async def test_control_y_copies_the_answer_also_while_it_is_written() -> None:
    model = FakeModel(scripts=(SHORT, endless()), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await pilot.press("ctrl+y")
        assert "no answer" in notice(app)
        await answered(app, pilot)
        await pilot.press("ctrl+y")
        assert app.clipboard == ANSWER
        await running(app, pilot)
        await pilot.press("ctrl+y")
        assert app.clipboard.startswith(" word0 word1")


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


async def test_control_t_goes_from_tint_to_inspect_to_off() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        seen = [app.view.marking]
        for _ in range(3):
            await pilot.press("ctrl+t")
            seen.append(app.view.marking)
        assert seen == [Marking.TINT, Marking.INSPECT, Marking.OFF, Marking.TINT]


async def test_f3_opens_the_rounds_beside_and_escape_gives_the_keys_back() -> None:
    async with chatting(FakeModel(), WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3")
        await wait_until(lambda: app.inspector.region.width > 40)
        assert app.view.marking is Marking.INSPECT
        assert app.view.region.right <= app.inspector.region.x
        await pilot.press("escape", "x")
        assert app.prompt.text == "x"
        await pilot.press("f3")
        await wait_until(lambda: not app.inspector.is_on_screen)
        assert app.view.marking is Marking.TINT


async def test_the_rounds_name_the_token_that_ended_the_answer() -> None:
    model = FakeModel(scripts=((plain("Hi"), plain(""), Finished(Stop.END)),))
    model.end_names = {1: "<|im_end|>"}
    async with chatting(model, WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3")
        listed = app.inspector.list
        await wait_until(
            lambda: any(
                "<|im_end|>" in listed.render_line(y).text for y in range(listed.size.height)
            )
        )


async def test_f2_shows_the_figures_beside_and_on_a_narrow_screen_below() -> None:
    async with chatting(FakeModel(), WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f2")
        await wait_until(lambda: app.figures.region.width > 40)
        assert app.figures.region.y == app.view.region.y
        await pilot.resize_terminal(70, 30)
        await wait_until(lambda: app.figures.region.y >= app.view.region.bottom > 0)
        await pilot.press("f2")
        await wait_until(lambda: not app.query_one("#side").display)


async def test_control_s_switches_show_mode_and_labels_it() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await pilot.press("ctrl+s")
        assert "show mode: drafting even where it does not pay" in status(app)
        assert model.speculation.always_draft
        await pilot.press("ctrl+s")
        assert "show mode" not in status(app)
        assert not model.speculation.always_draft


async def test_show_mode_switched_during_an_answer_takes_effect_at_once() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+s")
        assert model.speculation.always_draft
        assert "from the next round" in notice(app)


async def test_f4_goes_through_the_ways_to_guess_also_during_an_answer() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        seen = []
        for _ in range(6):
            await pilot.press("f4")
            seen.append(model.speculation.proposer)
        assert seen == ["none", "ngram", "draft", "tree", "recycling", "auto"]
        await pilot.press("f4")
        assert "spec off: you turned it off" in status(app)


async def test_f4_passes_over_a_proposer_that_the_model_has_not() -> None:
    model = FakeModel(lacks=("draft",))
    async with chatting(model) as (_, pilot):
        seen = []
        for _ in range(5):
            await pilot.press("f4")
            seen.append(model.speculation.proposer)
        assert seen == ["none", "ngram", "tree", "recycling", "auto"]


async def test_f4_turns_speculation_on_again_after_a_command_turned_it_off() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/spec 0")
        await wait_until(lambda: "speculation off" in notice(app))
        seen = []
        for _ in range(6):
            await pilot.press("f4")
            seen.append((model.speculation.proposer, "off" in notice(app)))
        assert seen == [
            ("ngram", False),
            ("draft", False),
            ("tree", False),
            ("recycling", False),
            ("auto", False),
            ("none", True),
        ]
        assert model.speculation.draft_tokens is None


async def test_a_number_of_guesses_turns_speculation_on_that_was_off() -> None:
    model = FakeModel()
    async with chatting(model) as (app, pilot):
        await command(app, pilot, "/spec off")
        await command(app, pilot, "/spec 4")
        await wait_until(lambda: model.speculation.draft_tokens == 4)
        assert model.speculation.proposer == "auto"
        assert "off" not in notice(app)
        await command(app, pilot, "/spec ngram")
        await command(app, pilot, "/spec 3")
        await wait_until(lambda: model.speculation.draft_tokens == 3)
        assert model.speculation.proposer == "ngram"


async def test_f6_shows_whole_answers_as_tokens_and_back() -> None:
    markdown = (plain("**bold** text"), Finished(Stop.END))
    async with chatting(FakeModel(scripts=(markdown,))) as (app, pilot):
        await answered(app, pilot)
        await wait_until(lambda: shown(app).endswith("bold text"))
        await pilot.press("f6")
        assert shown(app).endswith("**bold** text")
        assert "tokens" in notice(app)
        await pilot.press("f6")
        assert shown(app).endswith("\nbold text")


async def test_f7_unfolds_what_the_model_thought() -> None:
    thought = (plain("<think>"), plain("hidden way"), plain("</think>"), plain("42"))
    async with chatting(FakeModel(scripts=((*thought, Finished(Stop.END)),))) as (app, pilot):
        await answered(app, pilot)
        assert "hidden way" not in shown(app)
        await pilot.press("f7")
        assert "hidden way" in shown(app)


async def test_a_thought_that_the_prompt_opened_is_folded_from_the_first_token_on() -> None:
    thought = (PromptRead(20, 20, 0, 0.1, thinking=True), plain("hidden way"), plain(" on"))
    async with chatting(FakeModel(scripts=((*thought, Finished(Stop.LENGTH)),))) as (app, pilot):
        await answered(app, pilot)
        assert "thought for 2 tokens" in shown(app)
        assert "hidden way" not in shown(app)
        app.backstage.talking.show()  # as it was kept
        assert "hidden way" not in shown(app)
        await pilot.press("f7")
        assert "hidden way on" in shown(app)


async def test_f1_shows_every_key_and_escape_closes_it() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("f1")
        await wait_until(lambda: isinstance(app.screen, HelpScreen))
        help_text = str(app.screen.query_one("#help").render())
        assert "n-gram, draft model, earlier answers, recycling, tree" in help_text
        for key in KEYS:
            assert key.label in help_text
            assert key.meaning in help_text
        await pilot.press("escape")
        await wait_until(lambda: not isinstance(app.screen, HelpScreen))
        assert app.backstage.busy, "Escape closed the help, it must not have stopped the answer"


async def test_every_key_of_the_table_does_what_stands_there_and_no_key_stands_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []

    def recorder(name: str, action: Callable[..., None]) -> Callable[..., None]:
        @wraps(action)  # which says how much it is given
        def act(app: ChatApp, *given: object) -> None:
            done.append(f"{name}({', '.join(map(repr, given))})" if given else name)

        return act

    for name in ACTIONS:
        recorded = recorder(name, getattr(ChatApp, f"action_{name}"))
        monkeypatch.setattr(ChatApp, f"action_{name}", recorded)
    async with chatting(FakeModel()) as (app, pilot):
        app.view.marking = Marking.INSPECT  # where the arrows go from token to token
        for _, use in USES:
            await pilot.press(use.key)
        assert done == [use.action for _, use in USES]
        assert len({use.key for _, use in USES}) == len(USES)


async def test_the_palette_lists_every_action_and_every_command() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        titles = [command.title for command in app.get_system_commands(app.screen)]
        assert {use.title for _, use in USES if use.title} <= set(titles)
        assert "/set NAME VALUE" in titles
        assert "/delete" in titles
        await pilot.press("ctrl+p")
        await wait_until(lambda: app.screen is not app.screen_stack[0])
        await pilot.press(*"figures", "enter")
        await wait_until(lambda: app.figures.has_class("-open"), "the figures")


async def test_the_hint_at_the_edge_opens_help_with_the_mouse() -> None:
    async with chatting(FakeModel()) as (app, pilot):
        bottom = app.prompt.region.bottom - 1
        right = app.prompt.region.right
        await pilot.click(offset=(right - 5, bottom))
        await wait_until(lambda: isinstance(app.screen, HelpScreen), "the help")


async def test_page_keys_scroll_the_conversation_from_the_prompt() -> None:
    lines = (plain("\n\n".join(f"line {n}" for n in range(200))), Finished(Stop.END))
    async with chatting(FakeModel(scripts=(lines,))) as (app, pilot):
        await answered(app, pilot)
        await wait_until(lambda: app.view.scroll_offset.y == app.view.max_scroll_y > 0)
        end = app.view.max_scroll_y
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
            await answered(app, pilot, text)
        await pilot.press(*"dr", "ctrl+j", *"aft", "up")
        assert app.prompt.text == "dr\naft", "the cursor only moved up a row"
        await pilot.press("up")
        assert app.prompt.text == "second"
        await pilot.press("up", "up")
        assert app.prompt.text == "first"
        await pilot.press("down", "down")
        assert app.prompt.text == "dr\naft"


async def test_it_works_on_a_small_screen() -> None:
    async with chatting(FakeModel(), size=(60, 16)) as (app, pilot):
        await answered(app, pilot)
        for key in ("f1", "escape", "f2", "f3", "escape"):
            await pilot.press(key)
            await pilot.pause()
        assert app.view.size.height >= 3
        assert app.status.region.bottom <= 16
        await pilot.press("f2", "f3")
        await wait_until(lambda: app.view.size.height >= 8)


async def test_letters_that_are_typed_beside_the_rounds_are_not_lost() -> None:
    async with chatting(FakeModel(), WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3")
        assert not app.prompt.has_focus
        await pilot.press("h", "i", "space", "7")
        assert app.prompt.text == "hi 7"
        assert app.prompt.has_focus


async def test_what_is_pasted_beside_the_rounds_is_not_lost_and_before_a_dialog_is_no_message() -> (
    None
):
    async with chatting(FakeModel(), WIDE) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("f3")
        assert not app.prompt.has_focus
        app.post_message(events.Paste("some\x1b[2J text"))
        await wait_until(lambda: app.prompt.text == "some text")
        assert app.prompt.has_focus
        app.set_focus(None)
        app.post_message(events.Paste(", more"))
        await wait_until(lambda: app.prompt.text == "some text, more")
        await pilot.press("f1")
        await wait_until(lambda: isinstance(app.screen, HelpScreen))
        app.post_message(events.Paste("hidden"))
        await pilot.pause()
        await pilot.press("escape")
        assert app.prompt.text == "some text, more"


async def test_control_c_copies_what_is_selected_in_the_line_of_a_dialog() -> None:
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model) as (app, pilot):
        await running(app, pilot)
        await pilot.press("ctrl+o")
        await wait_until(lambda: isinstance(app.screen, ConversationsScreen))
        await pilot.press(*"abc", "shift+home", "ctrl+c")
        assert app.clipboard == "abc"
        assert app.backstage.busy
        await pilot.press("ctrl+c")
        await wait_until(lambda: not app.backstage.busy, "the stop, as nothing is selected now")
