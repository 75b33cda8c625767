"""The view of the conversation: painting, following, ghosts, selection, resizing."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import SELECT_ALL, Selection
from textual.theme import Theme
from waiting import wait_until

from edgespec.tui.theme import DARK, LIGHT, token_colours
from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Voice


class ViewApp(App[None]):
    """Nothing but a view."""

    def __init__(self, theme: Theme = DARK) -> None:
        super().__init__()
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = theme.name
        self.view = TokenView()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return token_colours(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self.view


def painted(view: TokenView) -> list[str]:
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


def fill(view: TokenView, lines: int) -> None:
    view.begin(Voice.ANSWER)
    view.append("\n".join(f"line {n} of many" for n in range(lines)))
    view.update_rows(0.0)


async def test_marks_are_painted_with_attributes_as_well_as_colour() -> None:
    app = ViewApp()
    async with app.run_test():
        app.view.begin(Voice.ANSWER)
        for mark in (Mark.ACCEPTED, Mark.CORRECTION, Mark.BONUS, Mark.PLAIN):
            app.view.append(mark.value, mark)
        app.view.update_rows(0.0)
        styles = {s.text: s.style for s in app.view.render_line(0) if s.style is not None}
        base = styles["plain"].bgcolor
        assert styles["accepted"].bgcolor != base
        assert styles["correction"].underline
        assert styles["bonus"].bold
        assert not styles["plain"].underline
        assert not styles["plain"].bold


@pytest.mark.parametrize(
    ("no_color", "theme"),
    [("1", DARK.name), ("1", "ansi-dark"), ("", "ansi-dark"), ("", "ansi-light")],
    ids=["grey", "no colour", "ansi-dark", "ansi-light"],
)
async def test_without_colours_of_ours_every_mark_has_an_attribute_of_its_own(
    monkeypatch: pytest.MonkeyPatch, no_color: str, theme: str
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", no_color)
    app = ViewApp()
    app.theme = theme
    async with app.run_test():
        view, marks = app.view, (Mark.ACCEPTED, Mark.CORRECTION, Mark.BONUS, Mark.PLAIN)
        view.begin(Voice.ANSWER, 1)
        for mark in marks:
            view.append(mark.value, mark)
        view.haunt("⟨rejected⟩", now=0.0)
        view.update_rows(0.0)
        styles = {s.text: s.style for s in view.render_line(0) if s.style is not None}
        kinds = [styles[name] for name in (*marks, "⟨rejected⟩")]
        attributes = {(s.bold, s.italic, s.underline, s.strike, s.reverse) for s in kinds}
        assert len(attributes) == len(kinds)


async def test_marking_off_paints_all_tokens_alike() -> None:
    app = ViewApp()
    async with app.run_test():
        app.view.begin(Voice.ANSWER)
        app.view.append("right", Mark.ACCEPTED)
        app.view.append("wrong", Mark.CORRECTION)
        app.view.update_rows(0.0)
        app.view.set_marking(Marking.OFF)
        styles = {s.text: s.style for s in app.view.render_line(0) if s.style is not None}
        assert styles["right"].bgcolor == styles["wrong"].bgcolor
        assert not styles["wrong"].underline


async def test_a_ghost_is_painted_and_vanishes_and_nothing_reflows() -> None:
    app = ViewApp()
    async with app.run_test(size=(30, 8)):
        view = app.view
        view.begin(Voice.ANSWER)
        view.append("the quick brown fox jumps over the lazy")
        view.update_rows(0.0)
        before, size = [list(row.runs) for row in view.transcript.rows], view.virtual_size
        view.haunt("⟨ dog and more of it⟩", now=1.0)
        view.update_rows(1.0)
        assert "⟨ dog" in "\n".join(painted(view))
        strip = next(view.render_line(y) for y in range(8) if "⟨" in view.render_line(y).text)
        assert any(s.style and s.style.strike and "dog" in s.text for s in strip)
        assert [list(row.runs) for row in view.transcript.rows] == before
        assert view.virtual_size == size
        view.update_rows(1.2)
        assert "⟨ dog" in "\n".join(painted(view))
        view.update_rows(1.6)
        assert "⟨" not in "\n".join(painted(view))


async def test_no_ghosts_where_animations_are_unwanted() -> None:
    app = ViewApp()
    async with app.run_test():
        app.animation_level = "none"
        app.view.say(Voice.ANSWER, "text")
        app.view.haunt("⟨ghost⟩", now=0.0)
        app.view.update_rows(0.0)
        assert "ghost" not in "\n".join(painted(app.view))


async def test_the_view_follows_the_end_unless_the_user_scrolled_up() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)):
        view = app.view
        fill(view, 30)
        assert view.scroll_offset.y == view.max_scroll_y > 0
        view.scroll_to(y=5, animate=False, force=True)
        await wait_until(lambda: view.scroll_offset.y == 5)
        view.append("\nmore\nand more")
        view.update_rows(0.0)
        assert view.scroll_offset.y == 5
        view.scroll_end(animate=False)
        await wait_until(lambda: view.following)
        view.append("\nlast")
        view.update_rows(0.0)
        assert view.scroll_offset.y == view.max_scroll_y


async def test_resizing_keeps_the_text_and_the_place() -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.view
        text = "\n".join(f"line {n} " + "with some words " * 6 for n in range(40))
        view.begin(Voice.ANSWER)
        view.append(text)
        view.update_rows(0.0)
        view.scroll_to(y=20, animate=False, force=True)
        await wait_until(lambda: view.scroll_offset.y == 20)
        top = view.transcript.rows[20].text[:10]
        await pilot.resize_terminal(30, 12)
        await wait_until(lambda: view.transcript.width < 30)
        assert view.transcript.text() == text
        await wait_until(
            lambda: top.strip() in view.transcript.rows[view.scroll_offset.y].text, "the place"
        )
        await pilot.resize_terminal(80, 20)
        await wait_until(lambda: view.transcript.width > 60)
        assert view.transcript.text() == text


async def test_a_selection_copies_plain_text_without_gutter_or_wrapping() -> None:
    app = ViewApp()
    async with app.run_test(size=(24, 10)):
        view = app.view
        view.say(Voice.USER, "hello there my good friend")
        view.update_rows(0.0)
        assert view.get_selection(SELECT_ALL) == ("hello there my good friend", "\n")
        assert view.get_selection(Selection(Offset(8, 0), Offset(4, 1))) == (
            view.transcript.rows[0].text[6:] + view.transcript.rows[1].text[:2],
            "\n",
        )


async def test_dragging_with_the_mouse_selects_what_is_under_it() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)) as pilot:
        app.view.say(Voice.ANSWER, "select these words please")
        app.view.update_rows(0.0)
        await pilot.mouse_down(app.view, offset=(9, 0))
        await pilot.hover(app.view, offset=(20, 0))
        await pilot.mouse_up(app.view, offset=(20, 0))
        await wait_until(app.screen.get_selected_text)
        assert (app.screen.get_selected_text() or "").strip() == "these words"
        selected = [s.text for s in app.view.render_line(0) if s.text.strip() == "these words"]
        assert selected


async def test_a_line_without_end_costs_no_more_per_token_as_it_grows() -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 24)):
        app.view.begin(Voice.ANSWER)
        for _ in range(3000):
            app.view.append("token")
            app.view.update_rows(0.0)
        await asyncio.sleep(0)
        app.view.append("token")
        change = app.view.transcript.take_change()
        assert change is not None
        assert change.row == len(app.view.transcript.rows) - 1
