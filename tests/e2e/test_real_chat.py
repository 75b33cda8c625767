"""The chat on the screen with a real model: what the scripted one of other tests stands for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edgespec import AnswerOptions, Model, load
from edgespec.decoding.events import Alternative
from edgespec.history import History
from edgespec.models.store import find_demo
from edgespec.tui.app import ChatApp, ChatSetup

sys.path.append(str(Path(__file__).parents[1] / "tui"))
from waiting import wait_until

pytestmark = pytest.mark.real_model

QUESTION = "Write a Python function that adds two numbers."
PATIENT = 120.0


def demo(report: Callable[[str], None]) -> Model:
    weights = find_demo()
    assert weights is not None, "the dev group brings the demo's weights"
    return load(target=str(weights), context=1024, threads=1, report=report)


async def test_an_answer_is_cut_continued_replayed_explained_and_steered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("waiting.PATIENCE_S", PATIENT)
    history = History.in_memory()
    options = AnswerOptions(overrides={"temperature": 0.8, "seed": 3}, max_tokens=12)
    app = ChatApp(ChatSetup(demo, "", options, "demo", history))
    back = app.backstage
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: back.ready, "loading")
        await pilot.press(*QUESTION, "enter")
        await wait_until(lambda: len(back.shelf.current.path) == 2 and not back.busy, "the answer")
        (_, half) = back.shelf.current.path
        assert len(half.ids) == 12
        assert half.content in app.view.transcript.block(half.id).source  # type: ignore[union-attr]

        back.options = replace(options, max_tokens=24)
        await pilot.press("ctrl+g")
        await wait_until(lambda: not back.busy, "the rest")
        (_, more) = back.shelf.current.path
        assert more.ids[:12] == half.ids
        assert len(more.ids) > 12
        assert more.content.startswith(half.content)

        await pilot.press("f5")
        await wait_until(lambda: not back.busy, "the replay")
        await wait_until(lambda: "the same text" in app.view.transcript.text())

        await pilot.press("f3", "escape")
        app.inspector.select(more.id, 5, "")
        await wait_until(lambda: len(app.inspector.alternatives.choices) == 5, "alternatives")
        stands, *others = app.inspector.alternatives.choices
        chosen: Alternative = next(one for one in (stands, *others) if one.token != more.ids[5])
        back.steering.resteer(more.id, 5, chosen)
        await wait_until(lambda: not back.busy, "the steered answer")
        (_, steered) = back.shelf.current.path
        assert steered.ids[:6] == (*more.ids[:5], chosen.token)
        assert back.shelf.current.siblings(steered.id) == (more.id, steered.id)

        await pilot.press("alt+left")
        assert back.shelf.current.path[-1].id == more.id
    assert back.close(10.0)
