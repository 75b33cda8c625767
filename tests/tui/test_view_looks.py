"""What the view looks like, as pictures. Renew them with `pytest --snapshot-update` and look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from test_token_view import ViewApp
from textual.pilot import Pilot
from textual.theme import Theme

from edgespec.tui.blocks import BlockContent
from edgespec.tui.theme import DARK, LIGHT
from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Voice

Compare = Callable[..., bool]
Run = Callable[[Pilot[None]], Awaitable[None]]
MARKDOWN = """\
# Quicksort

It **splits** the list around a *pivot*, in `O(n log n)` on average:

```python
def sort(items):  # one line per case
    if not items:
        return []
    pivot, *rest = items
    return sort([x for x in rest if x < 7])
```

- the list is split
- both halves are sorted, which for a long list takes a few steps more

1. first
2. second

> A quote, from [a page](http://example.org).

| case | steps |
|---|--:|
| best | 120 |
| worst | 4950 |

---
漢字 too, and <b>markup</b>.
"""
TOKENS = (
    ("<think>", Mark.PLAIN),
    ("Sort", Mark.PLAIN),
    (" by", Mark.ACCEPTED),
    (" pivot", Mark.ACCEPTED),
    (".</think>", Mark.BONUS),
    ("Pick", Mark.PLAIN),
    (" a", Mark.ACCEPTED),
    (" **pivot**", Mark.CORRECTION),
    (",", Mark.BONUS),
    (" split", Mark.ACCEPTED),
    (" the list", Mark.ACCEPTED),
    (" around", Mark.BONUS),
    (" it", Mark.PLAIN),
    (".\n", Mark.ACCEPTED),
    ("Done", Mark.CORRECTION),
)


def on(app: ViewApp, act: Callable[[TokenView], None]) -> Run:
    async def run(pilot: Pilot[None]) -> None:
        await pilot.pause()
        act(app.view)
        app.view.update_rows(0.0)
        await pilot.pause()

    return run


def read(view: TokenView) -> None:
    """A question, and an answer that is whole."""
    view.show(
        [
            BlockContent(1, Voice.USER, (("How does quicksort work?", Mark.PLAIN),), "edited"),
            BlockContent(2, Voice.ANSWER, ((MARKDOWN, Mark.PLAIN),), "branch 2 of 3"),
        ]
    )
    view.scroll_home(animate=False)


def write(view: TokenView) -> None:
    """A question, and an answer that is being written."""
    view.say(Voice.NOTE, "demo: bit-exact at every draft length")
    view.say(Voice.USER, "How does quicksort work?")
    view.begin(Voice.ANSWER, 2)
    for text, mark in TOKENS:
        view.append(text, mark)


def inspect(view: TokenView) -> None:
    write(view)
    view.end(2)
    view.say(Voice.ERROR, "the model was lost")
    view.set_marking(Marking.INSPECT)
    view.select(2, 7)


def think(view: TokenView) -> None:
    view.say(Voice.USER, "Think!")
    view.begin(Voice.ANSWER, 2)
    for text in ("<think>", "What is there\n", "to be said about", " it?"):
        view.append(text, Mark.ACCEPTED)


def unfold(view: TokenView) -> None:
    write(view)
    view.end(2)
    view.set_folded(False)


STATES = {"reading": read, "writing": write, "inspecting": inspect, "thinking": think}


@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
@pytest.mark.parametrize("state", ["reading", "inspecting", "thinking"])
def test_the_view(snap_compare: Compare, state: str, theme: Theme) -> None:
    app = ViewApp(theme)
    assert snap_compare(app, run_before=on(app, STATES[state]), terminal_size=(80, 36))


def test_the_view_with_a_thought_unfolded(snap_compare: Compare) -> None:
    app = ViewApp()
    assert snap_compare(app, run_before=on(app, unfold), terminal_size=(60, 16))


@pytest.mark.parametrize("state", ["reading", "inspecting"])
def test_the_view_on_a_small_screen(snap_compare: Compare, state: str) -> None:
    app = ViewApp()
    assert snap_compare(app, run_before=on(app, STATES[state]), terminal_size=(60, 16))


@pytest.mark.parametrize("state", ["reading", "writing", "inspecting"])
def test_the_view_without_colour(
    snap_compare: Compare, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = ViewApp()
    assert snap_compare(app, run_before=on(app, STATES[state]), terminal_size=(80, 36))


@pytest.mark.parametrize("theme", ["ansi-dark", "ansi-light"])
@pytest.mark.parametrize("state", ["reading", "inspecting"])
def test_the_view_in_the_colours_of_the_terminal(
    snap_compare: Compare, state: str, theme: str
) -> None:
    app = ViewApp()
    app.theme = theme
    assert snap_compare(app, run_before=on(app, STATES[state]), terminal_size=(80, 36))
