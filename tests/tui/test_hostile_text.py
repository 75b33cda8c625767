"""Whatever a model says, the view hands nothing to the terminal but text that can be seen."""

from __future__ import annotations

import unicodedata

import pytest
from counting import calls
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_token_view import ViewApp
from textual.selection import SELECT_ALL

from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Voice

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "\x1b\x9b\x9d\x90\x07\x9c\x00\x7f\x08\r\n\t[]()@=52;c?*`#&|<>!\u202e\u2066"
        ),
        st.characters(),
    ),
    max_size=40,
)
SAID = st.lists(NASTY, min_size=1, max_size=6)
FORBIDDEN = {*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u2028", "\u2029", "\u200b"}
FORBIDDEN |= {*"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"}


def assert_harmless(view: TokenView) -> None:
    for y in range(view.size.height):
        strip = view.render_line(y)
        assert strip.cell_length == view.scrollable_content_region.width
        for text, style, control in strip:
            assert not control
            assert not FORBIDDEN & set(text)
            assert not [char for char in text if unicodedata.category(char) == "Cs"]
            assert style is None or (style.link is None and set(style.meta) <= {"offset"})


async def test_nothing_hostile_reaches_the_terminal_in_any_manner() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 24)):
        view = app.view

        @settings(
            deadline=None,
            max_examples=60,
            suppress_health_check=[HealthCheck.function_scoped_fixture],
        )
        @given(said=SAID, label=NASTY)
        def say(said: list[str], label: str) -> None:
            view.show(())
            view.say(Voice.USER, said[0])
            view.begin(Voice.ANSWER, 1)
            for text in said:
                view.append(text, Mark.ACCEPTED)
            view.label(1, label)
            view.haunt("⟨".join(said), now=0.0)
            view.update_rows(0.0)
            assert_harmless(view)
            view.end(1)
            view.update_rows(1.0)
            for marking in (Marking.INSPECT, Marking.OFF, Marking.TINT):
                view.set_marking(marking)
                view.select(1, 0)
                assert_harmless(view)
            copied = view.get_selection(SELECT_ALL)
            assert copied is not None
            assert not (FORBIDDEN - {"\n"}) & set(copied[0])

        say()


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (("a\x1b]52;c;", "aGk=", "\x07b"), "ab"),
        (("a\x1b", "[31mb"), "ab"),
        (("a\x9b3", "1mb"), "ab"),
        (("a\x1b]0;", "b\x1b\\"), "a"),
    ],
    ids=["clipboard", "colour", "C1", "title"],
)
async def test_a_sequence_is_dropped_also_where_tokens_cut_it(
    pieces: tuple[str, ...], shown: str
) -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 5)):
        app.view.begin(Voice.ANSWER, 1)
        for piece in pieces:
            app.view.append(piece)
        app.view.update_rows(0.0)
        assert app.view.render_line(0).text.strip() == shown


async def test_markup_in_a_text_is_text() -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 5)) as pilot:
        app.view.begin(Voice.ANSWER, 1)
        app.view.append("[@click=app.quit]click me[/] [bold red]not red")
        app.view.end(1)
        app.view.update_rows(0.0)
        assert "[@click=app.quit]click me[/] [bold red]not red" in app.view.render_line(0).text
        await pilot.click(app.view, offset=(22, 0))
        assert app.is_running


@pytest.mark.parametrize("piece", ["x", "\u0301", "漢", "[", "`", "* a"], ids=ascii)
async def test_a_line_without_end_costs_twice_what_half_of_it_costs(piece: str) -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 24)):
        view = app.view

        def say(characters: int) -> None:
            text = piece * (characters // len(piece))
            view.show(())
            view.begin(Voice.ANSWER, 1)
            for at in range(0, len(text), 10_000):
                view.append(text[at : at + 10_000])
            view.update_rows(0.0)
            view.end(1)
            view.update_rows(0.0)

        half = calls(lambda: say(100_000))  # more than is set as Markdown
        assert calls(lambda: say(200_000)) < 2.2 * half
        assert_harmless(view)
