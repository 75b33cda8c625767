"""The inspector: rows and detail, every key, the mouse, hostile text, very long answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from beside import ANSWER, AT_3, BesideApp, Explained, alternatives, in_order
from fake_model import guessed, plain
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.decoding.events import Round
from edgespec.tui.inspector import Inspector
from edgespec.tui.round_list import RoundList

SIZE = (60, 30)


def filled(*events: Round, key: int = 1) -> tuple[BesideApp, Inspector]:
    inspector = Inspector()
    for event in events:
        inspector.rounds.add(key, event)
    return BesideApp(inspector), inspector


async def opened(pilot: Pilot[None], inspector: Inspector, key: int = 1) -> None:
    inspector.follow(key)
    inspector.update_rows()
    inspector.focus_rows()
    await pilot.pause()


def rows(inspector: Inspector) -> list[str]:
    """The lines of the list, as painted."""
    shown = inspector.list
    return [shown.render_line(y).text.rstrip() for y in range(shown.size.height)]


def detail(inspector: Inspector) -> str:
    return str(inspector.detail.content)


def choices(inspector: Inspector) -> list[str]:
    return [str(option.prompt) for option in inspector.alternatives.options]


async def test_each_round_is_two_lines_with_its_number_its_proposer_and_its_times() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        painted = rows(inspector)
        assert painted[2].split() == ["2", "draft", "model", "\N{MULTIPLICATION SIGN}3", "1.0+4.0"]
        assert painted[3].strip() == "✓ means ✓ giving ✗ things → items"


async def test_fates_are_painted_with_attributes_as_well_as_colour() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        styles = {s.text: s.style for y in (3, 5) for s in inspector.list.render_line(y) if s.style}
        assert styles["✗ things"].strike
        assert styles["→ items"].underline
        assert styles["+."].bold
        assert styles["✓ means"].bgcolor != styles["→ items"].bgcolor


async def test_before_the_first_answer_and_for_an_unknown_one_it_says_so() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        assert rows(inspector)[0] == "rounds appear here with the next answer"
        await opened(pilot, inspector, key=5)
        assert rows(inspector)[0] == "no rounds are known of this answer"


async def test_up_and_down_go_through_the_rounds_and_left_and_right_through_the_tokens() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        visited = []
        for key in ("up", "up", "up", "left", "right", "down", "home", "up", "end", "down"):
            await pilot.press(key)
            visited.append(inspector.selected)
        places = [9, 7, 3, 2, 3, 7, 0, 0, 9, 9]
        assert visited == [(1, index) for index in places]
        told = [m for m in app.said if isinstance(m, Inspector.TokenChosen)]
        assert [(m.key, m.index) for m in told] == visited


async def test_left_stops_at_the_first_token_and_right_at_the_last() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        await pilot.press("home", "left")
        assert inspector.selected == (1, 0)
        await pilot.press("end", "right")
        assert inspector.selected == (1, 9)


async def test_keys_without_any_rounds_do_nothing() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        await pilot.press("up", "down", "left", "right", "home", "end", "enter", "1", "pageup")
        assert inspector.selected is None
        assert app.said == []


async def test_a_click_selects_the_token_under_it() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        selected = []
        for word in ("✓ giving", "✗ things", "→ items", "✓ means"):
            x = inspector.list.render_line(3).text.index(word)
            await pilot.click(RoundList, offset=(x + 1, 3))
            selected.append(inspector.selected)
        assert selected == [(1, 2), (1, 3), (1, 3), (1, 1)]
        await pilot.click(RoundList, offset=(10, 4))
        assert inspector.selected == (1, 7)


async def test_the_selected_token_is_marked_and_its_round_too() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 2)
        await pilot.pause()
        assert rows(inspector)[2].startswith("▸")
        styles = {s.text: s.style for s in inspector.list.render_line(3) if s.style}
        assert styles["✓ giving"].reverse
        assert not styles["✓ means"].reverse


async def test_a_token_whose_details_are_unknown_is_asked_for_once_the_cursor_rests() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        await pilot.press("home", "right", "right", "right")
        await wait_until(lambda: any(isinstance(m, Inspector.Wanted) for m in app.said))
        wanted = [m for m in app.said if isinstance(m, Inspector.Wanted)]
        assert (wanted[-1].key, wanted[-1].index) == (1, 3)
        assert "asking the model…" in detail(inspector)


async def test_an_explanation_fills_in_the_probabilities_and_the_alternatives() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        await pilot.pause()
        text = detail(inspector)
        assert "“ items”  token 4, round 2" in text
        assert "probability: model 50.0%" in text
        assert "turned down: “ things” by draft model\n  model 25.0%" in text
        lines = choices(inspector)
        assert len(lines) == 5
        assert lines[0].endswith("50.0%  “ items” stands here")
        assert lines[1].endswith("25.0%  “ things”")
        assert lines[4].endswith("1.0%  “⏎”")


@pytest.mark.parametrize("loaded", ["<|im_end|>", "<end_of_turn>"])
async def test_an_alternative_that_ends_the_answer_has_the_name_its_own_model_gives_it(
    loaded: str,
) -> None:
    app, inspector = filled()
    inspector.rounds.ends = {2: "<|im_end|>"}
    for event in ANSWER:
        inspector.rounds.add(1, event)
    inspector.rounds.ends = {2: loaded}
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        best = alternatives((99, " items", 0.5), (2, "", 0.25))
        inspector.explained(1, 3, Explained(99, -0.7, best))
        assert choices(inspector)[1].endswith("25.0%  “<|im_end|>”")


async def test_an_explanation_of_another_token_waits_until_that_is_selected() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 1)
        inspector.explained(1, 3, AT_3)
        assert choices(inspector) == []
        inspector.select(1, 3)
        assert len(choices(inspector)) == 5
        await pilot.pause(0.3)
        asked = [m.index for m in app.said if isinstance(m, Inspector.Wanted)]
        assert 3 not in asked


async def test_tokens_that_came_with_alternatives_are_never_asked_for() -> None:
    own = replace(ANSWER[0].tokens[0], logprob=-0.7, alternatives=AT_3.alternatives)
    app, inspector = filled(replace(ANSWER[0], tokens=(own,)))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        await pilot.press("up")
        await pilot.pause(0.3)
        assert len(choices(inspector)) == 5
        assert not [m for m in app.said if isinstance(m, Inspector.Wanted)]


async def test_why_a_token_cannot_be_explained_is_said_in_a_safe_line() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.unexplained(1, 3, "the context changed\x1b[2J")
        await pilot.pause()
        assert "the context changed\\x1b[2J" in detail(inspector)
        assert "asking" not in detail(inspector)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
async def test_a_number_rewrites_the_answer_with_that_alternative(number: int) -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        await pilot.press(str(number))
        (steered,) = [m for m in app.said if isinstance(m, Inspector.Resteer)]
        assert (steered.key, steered.index) == (1, 3)
        assert steered.alternative is AT_3.alternatives[number - 1]


async def test_what_stands_there_already_cannot_be_chosen() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        await pilot.press("1")
        assert not [m for m in app.said if isinstance(m, Inspector.Resteer)]


async def test_enter_goes_to_the_alternatives_where_arrows_and_enter_choose() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        await pilot.press("enter", "down", "enter")
        (steered,) = [m for m in app.said if isinstance(m, Inspector.Resteer)]
        assert steered.alternative.text == " stuff"  # the first was skipped: it stands there
        assert inspector.list.has_focus


async def test_a_click_on_an_alternative_chooses_it() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        await pilot.pause()
        await pilot.click(inspector.alternatives, offset=(20, 3))
        (steered,) = [m for m in app.said if isinstance(m, Inspector.Resteer)]
        assert steered.alternative.text == " it"


async def test_after_steering_the_chosen_token_stands_there_and_nothing_outdated_is_shown() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.explained(1, 5, AT_3)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        inspector.steer(1, 3, AT_3.alternatives[2])
        inspector.update_rows()
        await pilot.pause()
        painted = [line for line in rows(inspector) if line]
        assert painted[-1].strip() == "→ stuff"
        assert len(painted) == 6
        assert "chosen by you" in detail(inspector)
        assert choices(inspector) == []
        inspector.rounds.add(1, replace(ANSWER[2], index=4))
        inspector.select(1, 5)
        assert choices(inspector) == []


async def test_a_selected_token_that_is_retracted_is_no_longer_shown() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 8)
        inspector.retract(1, 4)
        assert inspector.selected is None
        inspector.select(1, 2)
        inspector.retract(1, 3)
        assert inspector.selected == (1, 2)


async def test_a_token_of_an_older_conversation_can_be_explained_and_steered() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        inspector.select(7, 40, " items")
        assert "no round is known" in detail(inspector)
        await wait_until(lambda: app.said)
        inspector.explained(7, 40, AT_3)
        inspector.focus_rows()
        await pilot.press("2")
        steered = app.said[-1]
        assert isinstance(steered, Inspector.Resteer)
        assert (steered.key, steered.index, steered.alternative.text) == (7, 40, " things")


async def test_selecting_a_token_of_another_answer_shows_the_rounds_of_that_one() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        inspector.rounds.add(2, plain("other"))
        await opened(pilot, inspector, key=2)
        assert "→other" in rows(inspector)[1]
        inspector.select(1, 3)
        assert "✓ means" in rows(inspector)[3]


async def test_following_a_new_answer_leaves_the_old_token() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.follow(2)
        assert inspector.selected is None
        assert "asking" not in detail(inspector)


async def test_clear_forgets_everything() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.explained(1, 3, AT_3)
        inspector.clear()
        await pilot.pause()
        assert rows(inspector)[0] == "rounds appear here with the next answer"
        assert (inspector.selected, choices(inspector)) == (None, [])
        assert not inspector.rounds.of(1)


async def test_five_thousand_rounds_scroll_from_end_to_end_and_only_what_is_seen_is_painted() -> (
    None
):
    events = in_order(*[guessed(" a", " b", f" w{n}", accepted=1) for n in range(5000)])
    app, inspector = filled(*events)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        shown = inspector.list
        assert shown.virtual_size.height == 10_000
        await wait_until(lambda: "w4999" in "".join(rows(inspector)))
        await pilot.press("home")
        await wait_until(lambda: "w0" in rows(inspector)[1])
        for _ in range(20):
            await pilot.press("pagedown")
        assert inspector.selected is not None
        assert shown.scroll_offset.y > 100
        assert len(shown._painted) < 500
        await pilot.press("end")
        await wait_until(lambda: "w4999" in "".join(rows(inspector)))


async def test_it_stays_at_the_latest_round_until_the_user_goes_elsewhere() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        events = list(in_order(*[plain(f" w{n}") for n in range(200)]))
        for event in events[:100]:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        await wait_until(lambda: "w99" in "".join(rows(inspector)))
        await pilot.press("home")
        for event in events[100:]:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        await pilot.pause()
        assert "w0" in rows(inspector)[1]
        await pilot.press("end")
        await wait_until(lambda: "w199" in "".join(rows(inspector)))
        inspector.rounds.add(1, replace(plain(" more"), index=200))
        inspector.update_rows()
        await wait_until(lambda: "more" in "".join(rows(inspector)))


async def test_the_mouse_wheel_scrolls_and_the_end_is_followed_again() -> None:
    app, inspector = filled(*in_order(*[plain(f" w{n}") for n in range(200)]))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.list.scroll_up(animate=False, immediate=True)
        await pilot.pause()
        assert not inspector.list.following
        inspector.list.scroll_end(animate=False, immediate=True)
        await pilot.pause()
        assert inspector.list.following


HOSTILE = (
    "\x1b]52;c;AAAA\x07",
    "\x1b]0;owned\x07",
    "\x9b2J",
    "\u202eevil",
    "[@click=app.bell()]press[/]",
    "[bold red]x[/]",
    "\r\n\n",
    "a" * 100_000,
)


async def test_hostile_tokens_change_nothing_but_their_own_text() -> None:
    event = guessed(*HOSTILE, " own", accepted=1)
    own = replace(event.tokens[-1], text=HOSTILE[0] + HOSTILE[4])
    app, inspector = filled(replace(event, tokens=(*event.tokens[:-1], own), plan=HOSTILE[1]))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        texts = [(n, text, 0.1) for n, text in enumerate(HOSTILE[:5])]
        inspector.select(1, 1)
        inspector.explained(1, 1, Explained(99, -1.0, alternatives=alternatives(*texts)))
        await pilot.pause()
        everything = [*rows(inspector), *detail(inspector).split("\n"), *choices(inspector)]
        assert all(line.isprintable() for line in everything)
        assert "“[@click=app.bell()]press[/]”" in choices(inspector)[4]
        for widget in (inspector.list, inspector.detail, inspector.alternatives):
            for y in range(widget.size.height):
                metas = [s.style.meta for s in widget.render_line(y) if s.style]
                assert not any("@click" in meta for meta in metas)


async def test_a_narrow_panel_still_shows_marks_and_cuts_what_does_not_fit() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=(24, 16)) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        await pilot.pause()
        assert all(len(line) <= 22 for line in rows(inspector))
        text = "".join(rows(inspector))
        assert "→ items" in text
        assert "…" in text


async def test_a_hidden_inspector_keeps_up_when_it_is_shown_again() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.display = False
        await pilot.pause()
        for event in ANSWER:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        inspector.display = True
        inspector.update_rows()
        await pilot.pause()
        assert "✓ means" in "".join(rows(inspector))


async def test_a_cursor_that_only_passes_by_asks_nothing() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 1)
        inspector.select(1, 2)
        inspector.follow(1)
        await asyncio.sleep(0.3)
        assert app.said == []


async def test_what_could_not_be_explained_is_asked_for_again_when_told_to() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        inspector.select(1, 3)
        inspector.unexplained(1, 3, "known once the answer has ended")
        inspector.ask_again()
        assert "asking the model…" in detail(inspector)
        await wait_until(lambda: app.said)
        assert isinstance(app.said[0], Inspector.Wanted)


async def test_selecting_the_latest_token_once_more_still_follows_the_answer() -> None:
    app, inspector = filled(*in_order(*[plain(f" w{n}") for n in range(100)]))
    async with app.run_test(size=SIZE) as pilot:
        await opened(pilot, inspector)
        await pilot.press("end")
        inspector.select(1, 99)  # as the conversation does when it is told
        assert inspector.list.following
        inspector.select(1, 3)
        assert not inspector.list.following
