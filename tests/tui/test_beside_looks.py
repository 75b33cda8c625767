"""What stands beside the conversation, as pictures. Renew with `--snapshot-update` and look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from beside import ANSWER, AT_3, BesideApp, in_order
from fake_model import guessed, plain
from test_figures import GUESSED, GUESSING, SITUATION, folded
from textual.containers import Vertical
from textual.pilot import Pilot
from textual.theme import Theme

from edgespec.tui.figures_panel import FiguresPanel
from edgespec.tui.inspector import Inspector
from edgespec.tui.status import Drafting, Situation, status_parts
from edgespec.tui.status_bar import StatusBar
from edgespec.tui.theme import DARK, LIGHT

Compare = Callable[..., bool]
NGRAM = guessed(" a", " small", " example", " of", " what", " repeats", " here", ".", accepted=6)
MORE = tuple(
    in_order(
        *ANSWER,
        plain(" It", plan="auto → plain: the draft model is right 41% of the time"),
        replace(NGRAM, guesses=tuple(replace(g, source="ngram") for g in NGRAM.guesses)),
        guessed(" 漢字", " too", "!", accepted=2),
    )
)


def inspecting(theme: Theme = DARK) -> BesideApp:
    inspector = Inspector()
    for event in MORE:
        inspector.rounds.add(1, event)
    return BesideApp(inspector, theme)


async def inspect(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, BesideApp)
    inspector = app.widget
    assert isinstance(inspector, Inspector)
    inspector.follow(1)
    inspector.select(1, 3)
    inspector.explained(1, 3, AT_3)
    inspector.focus_rows()
    await pilot.pause()


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_inspector(snap_compare: Compare, theme: Theme) -> None:
    assert snap_compare(inspecting(theme), run_before=inspect, terminal_size=(60, 30))


def test_the_inspector_on_a_small_screen(snap_compare: Compare) -> None:
    assert snap_compare(inspecting(), run_before=inspect, terminal_size=(40, 14))


def test_the_inspector_without_colour(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(inspecting(), run_before=inspect, terminal_size=(60, 30))


def test_the_inspector_in_the_colours_of_the_terminal(snap_compare: Compare) -> None:
    app = inspecting()
    app.theme = "ansi-dark"
    assert snap_compare(app, run_before=inspect, terminal_size=(60, 30))


async def measure(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, BesideApp)
    panel = app.widget
    assert isinstance(panel, FiguresPanel)
    for number in range(1, len(GUESSED) + 1):
        panel.show(folded(*GUESSED[:number], every_s=0.3, plain_speed=12.0), SITUATION, GUESSING)
    await pilot.pause()


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_the_figures(snap_compare: Compare, theme: Theme) -> None:
    app = BesideApp(FiguresPanel(), theme)
    assert snap_compare(app, run_before=measure, terminal_size=(60, 30))


def test_the_figures_on_a_small_screen(snap_compare: Compare) -> None:
    app = BesideApp(FiguresPanel())
    assert snap_compare(app, run_before=measure, terminal_size=(40, 14))


def test_the_figures_without_colour(snap_compare: Compare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = BesideApp(FiguresPanel())
    assert snap_compare(app, run_before=measure, terminal_size=(60, 30))


PARKED = Drafting().after(MORE[4]).after(MORE[4])
FULL = replace(SITUATION, context_used=3700, exactness="same up to rounding: by at most 0.5")
LINES = (
    status_parts(None, Drafting(), Situation(phase="loading")),
    status_parts(None, Drafting(), SITUATION),
    status_parts(folded(*ANSWER), GUESSING, SITUATION),
    status_parts(folded(*GUESSED, plain_speed=40.0), GUESSING, FULL),
    status_parts(folded(*ANSWER), PARKED, SITUATION),
    status_parts(folded(*ANSWER), GUESSING, replace(SITUATION, show_mode=True)),
    status_parts(folded(*ANSWER), GUESSING, replace(FULL, context_used=4096, proposer="none")),
)


def lines(theme: Theme = DARK) -> BesideApp:
    return BesideApp(Vertical(*(StatusBar() for _ in LINES)), theme)


async def show_lines(pilot: Pilot[None]) -> None:
    for bar, parts in zip(pilot.app.query(StatusBar), LINES, strict=True):
        bar.show(parts)
    await pilot.pause()


@pytest.mark.parametrize("width", [100, 60])
def test_status_lines(snap_compare: Compare, width: int) -> None:
    assert snap_compare(lines(), run_before=show_lines, terminal_size=(width, 8))


def test_status_lines_in_the_light(snap_compare: Compare) -> None:
    assert snap_compare(lines(LIGHT), run_before=show_lines, terminal_size=(100, 8))


def test_status_lines_without_colour(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(lines(), run_before=show_lines, terminal_size=(100, 8))
