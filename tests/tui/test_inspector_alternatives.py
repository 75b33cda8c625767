"""The inspector's detail: a token is explained, and another takes its place."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from beside import ANSWER, AT_3, Explained, alternatives
from inspecting import SIZE, choices, detail, explaining, filled, inspecting, opened, rows
from waiting import wait_until

from edgespec.tui.inspector import Inspector


async def test_a_token_whose_details_are_unknown_is_asked_for_once_the_cursor_rests() -> None:
    async with inspecting(*ANSWER) as (app, inspector, pilot):
        await pilot.press("home", "right", "right", "right")
        await wait_until(lambda: app.heard(Inspector.Wanted))
        wanted = app.heard(Inspector.Wanted)
        assert (wanted[-1].key, wanted[-1].index) == (1, 3)
        assert "asking the model…" in detail(inspector)


async def test_an_explanation_fills_in_the_probabilities_and_the_alternatives() -> None:
    async with explaining() as (_, inspector, pilot):
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
    async with inspecting(*ANSWER) as (app, inspector, pilot):
        inspector.select(1, 1)
        inspector.explained(1, 3, AT_3)
        assert choices(inspector) == []
        inspector.select(1, 3)
        assert len(choices(inspector)) == 5
        await pilot.pause(0.3)
        asked = [m.index for m in app.heard(Inspector.Wanted)]
        assert 3 not in asked


async def test_tokens_that_came_with_alternatives_are_never_asked_for() -> None:
    own = replace(ANSWER[0].tokens[0], logprob=-0.7, alternatives=AT_3.alternatives)
    async with inspecting(replace(ANSWER[0], tokens=(own,))) as (app, inspector, pilot):
        await pilot.press("up")
        await pilot.pause(0.3)
        assert len(choices(inspector)) == 5
        assert not app.heard(Inspector.Wanted)


async def test_why_a_token_cannot_be_explained_is_said_in_a_safe_line() -> None:
    async with inspecting(*ANSWER) as (_, inspector, pilot):
        inspector.select(1, 3)
        inspector.unexplained(1, 3, "the context changed\x1b[2J")
        await pilot.pause()
        assert "the context changed\\x1b[2J" in detail(inspector)
        assert "asking" not in detail(inspector)


@pytest.mark.parametrize("number", [2, 3, 4, 5])
async def test_a_number_rewrites_the_answer_with_that_alternative(number: int) -> None:
    async with explaining() as (app, _, pilot):
        await pilot.press(str(number))
        (steered,) = app.heard(Inspector.Resteer)
        assert (steered.key, steered.index) == (1, 3)
        assert steered.alternative is AT_3.alternatives[number - 1]


async def test_what_stands_there_already_cannot_be_chosen() -> None:
    async with explaining() as (app, _, pilot):
        await pilot.press("1")
        assert not app.heard(Inspector.Resteer)


async def test_enter_goes_to_the_alternatives_where_arrows_and_enter_choose() -> None:
    async with explaining() as (app, inspector, pilot):
        await pilot.press("enter", "down", "enter")
        (steered,) = app.heard(Inspector.Resteer)
        assert steered.alternative.text == " stuff"  # the first was skipped: it stands there
        assert inspector.list.has_focus


async def test_a_click_on_an_alternative_chooses_it() -> None:
    async with explaining() as (app, inspector, pilot):
        await pilot.pause()
        await pilot.click(inspector.alternatives, offset=(20, 3))
        (steered,) = app.heard(Inspector.Resteer)
        assert steered.alternative.text == " it"


async def test_a_token_that_the_user_chose_is_said_to_be_chosen() -> None:
    async with inspecting(*ANSWER) as (_, inspector, pilot):
        inspector.rounds.steer(1, 3, AT_3.alternatives[2])
        inspector.select(1, 3)
        inspector.update_rows()
        await pilot.pause()
        assert [line for line in rows(inspector) if line][-1].strip() == "→ stuff"
        assert "chosen by you" in detail(inspector)


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


async def test_a_cursor_that_only_passes_by_asks_nothing() -> None:
    async with inspecting(*ANSWER) as (app, inspector, _):
        inspector.select(1, 1)
        inspector.select(1, 2)
        inspector.follow(1)
        await asyncio.sleep(0.3)
        assert app.said == []


async def test_what_could_not_be_explained_is_asked_for_again_when_told_to() -> None:
    async with inspecting(*ANSWER) as (app, inspector, _):
        inspector.select(1, 3)
        inspector.unexplained(1, 3, "known once the answer has ended")
        inspector.ask_again()
        assert "asking the model…" in detail(inspector)
        await wait_until(lambda: app.said)
        assert isinstance(app.said[0], Inspector.Wanted)
