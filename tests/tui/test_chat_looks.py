"""What it looks like, as pictures. Renew them with `pytest --snapshot-update` and look at them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from fake_model import FakeModel, guessed, plain, setup_for
from test_token_view import ViewApp
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.decoding.events import Event, Finished, PromptRead, Stop
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
    await wait_until(lambda: app.backstage.ready)
    await pilot.pause()


@pytest.mark.parametrize("size", [(90, 24), (60, 16)], ids=["wide", "narrow"])
def test_the_chat_before_the_first_question(snap_compare: Compare, size: tuple[int, int]) -> None:
    app = ChatApp(setup_for(FakeModel()))
    assert snap_compare(app, run_before=settle, terminal_size=size)
    assert app.backstage.close(5.0)


def test_the_help_screen(snap_compare: Compare) -> None:
    async def open_help(pilot: Pilot[None]) -> None:
        await settle(pilot)
        await pilot.press("f1")

    app = ChatApp(setup_for(FakeModel()))
    assert snap_compare(app, run_before=open_help, terminal_size=(90, 24))
    assert app.backstage.close(5.0)


TALK = (
    PromptRead(20, 20, 0, 0.1),
    guessed("Quicksort", " picks", " a", " pivot", accepted=3, plan="auto → draft \u00d73"),
    guessed(",", " splits", " around", " it", accepted=2, plan="auto → draft \u00d73"),
    plain(" and", plan="auto → plain: a guess does not pay here"),
    guessed(
        *(" sorts", " both", " halves"), accepted=2, plan="auto → n-gram \u00d72", source="ngram"
    ),
    plain(".\n\n```python\ndef sort(items):\n    return sorted(items)\n```\n"),
    Finished(Stop.END),
)
OTHER = (PromptRead(20, 20, 0, 0.1), plain("It sorts."), Finished(Stop.END))


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures hold no time that was measured, and no seed."""
    heard = itertools.count()
    monkeypatch.setattr(
        "edgespec.tui.engine.time", SimpleNamespace(perf_counter=lambda: next(heard) / 8)
    )
    still = SimpleNamespace(perf_counter=lambda: 0.0, monotonic=lambda: 0.0)
    for room in ("talking", "replay"):
        monkeypatch.setattr(f"edgespec.tui.{room}.time", still)


async def answered(pilot: Pilot[None], *keys: str) -> ChatApp:
    """One question was answered and the keys pressed."""
    await settle(pilot)
    app = pilot.app
    assert isinstance(app, ChatApp)
    await pilot.press(*"how does quicksort work?", "enter")
    await wait_until(lambda: "sort(items)" in app.view.transcript.text())
    await wait_until(lambda: not app.backstage.busy)
    for key in keys:
        await pilot.press(key)
        await wait_until(lambda: not app.backstage.busy)
    app.view._ghost = None
    app._forget_notice()
    app._show_status()
    await pilot.pause()
    return app


def looks_like(
    snap_compare: Compare,
    *keys: str,
    size: tuple[int, int] = (130, 30),
    theme: str = "",
    scripts: tuple[tuple[Event, ...], ...] = (TALK, OTHER),
) -> None:
    app = ChatApp(setup_for(FakeModel(scripts=scripts)))
    if theme:
        app.theme = theme

    async def drive(pilot: Pilot[None]) -> None:
        await answered(pilot, *keys)

    assert snap_compare(app, run_before=drive, terminal_size=size)
    assert app.backstage.close(5.0)


pictured = pytest.mark.usefixtures("stopped_clock")


@pictured
def test_an_answer_as_tokens(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f6")


@pictured
def test_an_answer_as_markdown(snap_compare: Compare) -> None:
    looks_like(snap_compare)


@pictured
def test_the_inspector_with_a_token(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f3", "up", "up", "left")


@pictured
def test_the_figures_in_the_light(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f2", "f6", theme=LIGHT.name)


@pictured
def test_a_second_branch(snap_compare: Compare) -> None:
    looks_like(snap_compare, "ctrl+r")


@pictured
def test_the_inspector_on_a_small_screen(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f3", "up", size=(60, 16))


@pictured
def test_the_chat_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    looks_like(snap_compare, "f6", "f2")


@pictured
def test_the_chat_in_the_colours_of_the_terminal(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f3", "up", theme="ansi-dark")


@pictured
def test_a_replay_side_by_side(snap_compare: Compare) -> None:
    looks_like(snap_compare, "f5", scripts=(TALK,))
