"""Lists that are filled but not laid out yet."""

from __future__ import annotations

import pytest
from chatting import chatting
from fake_model import FakeModel
from textual.app import App, ComposeResult
from textual.command import CommandList
from textual.pilot import Pilot
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from edgespec.tui.listing import Listing, Palette


class Listed(App[None]):
    def compose(self) -> ComposeResult:
        yield Listing()


@pytest.mark.parametrize("action", ["page_up", "page_down"])
async def test_no_page_key_ends_a_list_that_has_options_but_no_rows_yet(action: str) -> None:
    app = Listed()
    async with app.run_test(size=(40, 10)) as pilot:
        listing = app.query_one(Listing)
        await _fill(listing, pilot)
        await listing.run_action(action)
        assert listing.highlighted == 1


@pytest.mark.parametrize("action", ["page_up", "page_down"])
async def test_no_page_key_ends_a_palette_that_has_no_rows_yet(action: str) -> None:
    async with chatting(FakeModel()) as (app, pilot):
        await pilot.press("ctrl+p")
        assert isinstance(app.screen, Palette)
        listing = app.screen.query_one(CommandList)
        await _fill(listing, pilot)
        await app.screen.run_action(f"command_list('{action}')")
        assert listing.highlighted == 1


async def _fill(listing: OptionList, pilot: Pilot[None]) -> None:
    """As when what is listed was found just now, and nothing is laid out yet."""
    listing.display = False
    await pilot.pause()
    listing.clear_options()
    listing.add_options([Option("one"), Option("two"), Option("three")])
    listing.highlighted = 1
