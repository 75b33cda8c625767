"""Choosing tokens in the view: with the mouse, by steps and by rows."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from test_token_view import ViewApp, painted
from textual.app import ComposeResult

from edgespec.tui.painting import GUTTER_CELLS
from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Voice

WORDS = ("one", " two", " three", "\n", "four", " five")


class ChoosingApp(ViewApp):
    """Remembers what was said to have been chosen."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[int, int]] = []

    def compose(self) -> ComposeResult:
        yield from super().compose()

    def on_token_view_token_selected(self, message: TokenView.TokenSelected) -> None:
        assert message.control is self.view
        self.heard.append((message.key, message.index))


def talk(view: TokenView) -> None:
    view.say(Voice.USER, "count")
    view.begin(Voice.ANSWER, 7)
    for word in WORDS:
        view.append(word, Mark.ACCEPTED)
    view.end(7)
    view.begin(Voice.ANSWER, 9)
    for word in ("<think>", "hm", "</think>", "six", " seven"):
        view.append(word)
    view.end(9)
    view.set_marking(Marking.INSPECT)
    view.update_rows(0.0)


def lit(view: TokenView) -> list[str]:
    """The pieces of text that are highlighted."""
    chosen = view.get_component_rich_style("token-view--chosen", partial=True)
    return [
        segment.text
        for y in range(view.size.height)
        for segment in view.render_line(y)
        if segment.style is not None and segment.style.bgcolor == chosen.bgcolor
    ]


async def test_a_click_chooses_the_token_under_it() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        talk(app.view)
        assert painted(app.view)[2] == "  one two three"
        await pilot.click(app.view, offset=(7, 2))
        assert app.heard == [(7, 1)]
        assert app.view.selected == (7, 1)
        assert lit(app.view) == [" two"]
        await pilot.click(app.view, offset=(2, 3))
        assert app.view.selected == (7, 4)
        await pilot.click(app.view, offset=(30, 3))
        assert app.view.selected == (7, 5)


@pytest.mark.parametrize(
    "grapheme",
    ["👨\u200d👩\u200d👧", "❤\ufe0f", "e\u0301", "漢"],
    ids=["joined", "wide", "mark", "two"],
)
async def test_clicks_and_steps_count_cells_as_they_are_drawn(grapheme: str) -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.view.begin(Voice.ANSWER, 1)
        for word in (grapheme, " a", "b", "c", "\n", grapheme, " a", "b", "c"):
            app.view.append(word)
        app.view.set_marking(Marking.INSPECT)
        app.view.update_rows(0.0)
        cells = cell_len(grapheme)
        for word, cell in ((0, cells - 1), (1, cells), (1, cells + 1), (2, cells + 2)):
            await pilot.click(app.view, offset=(GUTTER_CELLS + cell, 0))
            assert app.view.selected == (1, word)
        for word in (2, 3):
            app.view.select(1, word)
            app.view.move_selection(rows=1)
            assert app.view.selected == (1, word + 5)


async def test_a_click_beside_the_tokens_chooses_nothing() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        talk(app.view)
        await pilot.click(app.view, offset=(5, 0))
        await pilot.click(app.view, offset=(5, 1))
        await pilot.click(app.view, offset=(5, 11))
        assert app.heard == []
        app.view.set_marking(Marking.TINT)
        await pilot.click(app.view, offset=(7, 2))
        assert app.view.selected is None


async def test_a_drag_selects_text_and_chooses_no_token() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        talk(app.view)
        await pilot.mouse_down(app.view, offset=(2, 2))
        await pilot.hover(app.view, offset=(9, 2))
        await pilot.mouse_up(app.view, offset=(9, 2))
        await pilot.pause()
        assert app.heard == []


async def test_without_a_choice_the_first_step_takes_the_last_token() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        talk(app.view)
        app.view.move_selection(tokens=-1)
        await pilot.pause()
        assert app.heard == [(9, 4)]


async def test_steps_go_from_token_to_token_and_over_folded_thoughts() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)) as pilot:
        talk(app.view)
        app.view.select(9, 4)
        for _ in range(4):
            app.view.move_selection(tokens=-1)
        await pilot.pause()
        assert app.heard == [(9, 3), (7, 5), (7, 4), (7, 3)]
        assert lit(app.view) == ["⏎"]
        app.view.move_selection(tokens=3)
        assert app.view.selected == (9, 3)
        app.view.move_selection(tokens=9)
        assert app.view.selected == (9, 4)


async def test_steps_by_rows_keep_to_the_column_and_leave_out_what_has_no_tokens() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)):
        talk(app.view)
        app.view.select(7, 1)
        app.view.move_selection(rows=1)
        assert app.view.selected == (7, 4)
        app.view.move_selection(rows=1)
        assert app.view.selected == (9, 3)
        app.view.move_selection(rows=1)
        assert app.view.selected == (9, 3)
        app.view.move_selection(rows=-2)
        assert app.view.selected == (7, 0)


async def test_the_highlight_is_seen_only_while_tokens_can_be_chosen() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 12)):
        talk(app.view)
        app.view.select(7, 2)
        assert lit(app.view) == [" three"]
        app.view.set_marking(Marking.TINT)
        assert lit(app.view) == []
        assert app.view.selected == (7, 2)
        app.view.move_selection(tokens=1)
        assert app.view.selected == (7, 2)


async def test_a_token_that_is_broken_over_rows_is_highlighted_on_all_of_them() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(20, 12)):
        app.view.begin(Voice.ANSWER, 1)
        app.view.append("a ")
        app.view.append("word" * 8)
        app.view.append(" b")
        app.view.set_marking(Marking.INSPECT)
        app.view.update_rows(0.0)
        app.view.select(1, 1)
        assert "".join(lit(app.view)) == "word" * 8
        assert len(lit(app.view)) > 1


async def test_choosing_a_token_far_away_brings_it_into_view() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.view.begin(Voice.ANSWER, 1)
        for number in range(100):
            app.view.append(f"line {number}\n")
        app.view.set_marking(Marking.INSPECT)
        app.view.update_rows(0.0)
        app.view.select(1, 3)
        await pilot.pause()
        assert "  line 3" in painted(app.view)
        assert not app.view.following


async def test_where_another_conversation_is_shown_no_token_is_chosen() -> None:
    app = ChoosingApp()
    async with app.run_test(size=(40, 10)):
        talk(app.view)
        app.view.select(7, 4)
        app.view.show(())
        assert app.view.selected is None
