"""What the history has to tell stands below the conversation, whatever is shown anew."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from chatting import answered, chatting, running, shown
from fake_model import SHORT, FakeModel, endless, plain
from waiting import wait_until

from edgespec.decoding.events import Finished, Stop
from edgespec.history import History
from edgespec.history import place as places
from edgespec.tui import talking
from edgespec.tui.app import ChatApp

OTHER = (plain("Another"), plain(" answer"), Finished(Stop.END))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite3"


def delete_elsewhere(place: Path) -> None:
    """What is open here, by another chat."""
    with closing(History.open(place)) as other:
        other.delete(other.recent(1)[0].id)


def told(app: ChatApp) -> str:
    return " ".join(shown(app).split())


@pytest.mark.parametrize("keys", [("ctrl+r",), ("ctrl+e", "enter"), ("alt+left",)], ids="-".join)
async def test_that_a_conversation_is_kept_no_more_is_told_beside_what_is_shown_anew(
    place: Path, keys: tuple[str, ...]
) -> None:
    model = FakeModel(scripts=(SHORT, OTHER))
    async with chatting(model, history=History.open(place)) as (app, pilot):
        await answered(app, pilot)
        await pilot.press("ctrl+r")
        await wait_until(lambda: not app.backstage.busy and "Another" in shown(app))
        delete_elsewhere(place)
        await pilot.press(*keys)
        await wait_until(lambda: "“hi” goes on in memory only" in told(app), "the warning")
        await wait_until(lambda: not app.backstage.busy)
        assert "“hi” goes on in memory only" in told(app)


async def test_that_an_answer_that_was_left_is_not_kept_is_told_in_the_next_conversation(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "_SAVED_EVERY_S", 1e9)  # the end of the answer is what fails
    model = FakeModel(scripts=(endless(),), pace_s=0.002)
    async with chatting(model, history=History.open(place)) as (app, pilot):
        await running(app, pilot)
        delete_elsewhere(place)
        await pilot.press("ctrl+n")
        await wait_until(lambda: "“hi” goes on in memory only" in told(app), "the warning")
        assert "word3" not in shown(app)


async def test_what_is_wrong_with_the_file_is_told_beside_the_conversation_that_is_reopened(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(History.open(place)) as history:
        history.new().say("apples")
    monkeypatch.setattr(places, "_PATIENCE_S", 0.05)
    with places.opening(place):
        held = History.open(place)
    async with chatting(
        FakeModel(), history=held, change=lambda setup: replace(setup, reopen=True)
    ) as (app, _):
        await wait_until(lambda: "so nothing is kept" in told(app), "the warning")
        assert "apples" in shown(app)
