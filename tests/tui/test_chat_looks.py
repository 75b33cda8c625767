"""What it looks like, as pictures. Renew them with `pytest --snapshot-update` and look at them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_model import FakeModel, setup_for
from test_token_view import ViewApp
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.tui.app import ChatApp
from edgespec.tui.theme import LIGHT
from edgespec.tui.token_view import Marking
from edgespec.tui.transcript import Mark, Voice

Compare = Callable[..., bool]
ANSWER = (
    ("Here", Mark.PLAIN),
    (" is a small", Mark.ACCEPTED),
    (" quicksort", Mark.CORRECTION),
    (":", Mark.BONUS),
    ("\n\ndef sort(items):\n    if not items:\n        return", Mark.ACCEPTED),
    (" []", Mark.BONUS),
    ("\n    pivot, *rest =", Mark.ACCEPTED),
    (" items", Mark.CORRECTION),
    ("\n\nIt picks a pivot, splits the list around it and sorts both", Mark.ACCEPTED),
    (" halves", Mark.CORRECTION),
    (" the same way. 漢字 too", Mark.ACCEPTED),
    (".", Mark.PLAIN),
)


async def talk(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, ViewApp)
    view = app.view
    view.say(Voice.NOTE, "demo: bit-exact at every draft length")
    view.say(Voice.USER, "write a quicksort in Python, as short as you can make it")
    view.begin(Voice.ANSWER)
    for text, mark in ANSWER:
        view.append(text, mark)
    view.haunt("⟨ Each half⟩", now=0.0)
    view.update_rows(0.0)
    await pilot.pause()


def test_the_view_in_the_dark(snap_compare: Compare) -> None:
    assert snap_compare(ViewApp(), run_before=talk)


def test_the_view_in_the_light(snap_compare: Compare) -> None:
    assert snap_compare(ViewApp(LIGHT), run_before=talk)


def test_the_view_on_a_small_screen(snap_compare: Compare) -> None:
    assert snap_compare(ViewApp(), run_before=talk, terminal_size=(60, 16))


def test_the_view_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(ViewApp(), run_before=talk)


def test_the_view_in_the_colours_of_the_terminal(snap_compare: Compare) -> None:
    app = ViewApp()
    app.theme = "ansi-dark"
    assert snap_compare(app, run_before=talk)


def test_the_view_without_marks(snap_compare: Compare) -> None:
    app = ViewApp()
    app.view.marking = Marking.OFF
    assert snap_compare(app, run_before=talk)


async def settle(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, ChatApp)
    app.prompt.cursor_blink = False
    await wait_until(lambda: app.ready)
    await pilot.pause()


@pytest.mark.parametrize("size", [(90, 24), (60, 16)], ids=["wide", "narrow"])
def test_the_chat_before_the_first_question(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = ChatApp(setup_for(FakeModel()))
    assert snap_compare(app, run_before=settle, terminal_size=size)
    assert app.engine.stop(5.0)


def test_the_help_screen(snap_compare: Compare) -> None:
    async def open_help(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("f1")

    app = ChatApp(setup_for(FakeModel()))
    assert snap_compare(app, run_before=open_help, terminal_size=(90, 24))
    assert app.engine.stop(5.0)
