"""Messages in the view: Markdown when they are whole, folding, labels, branches, long histories."""

from __future__ import annotations

import re

import pytest
from test_token_view import ViewApp, painted
from textual.geometry import Offset
from textual.pilot import Pilot
from textual.selection import SELECT_ALL, Selection
from waiting import wait_until

from edgespec.tui.blocks import BlockContent
from edgespec.tui.rendered import MarkdownSetter
from edgespec.tui.rows import Row
from edgespec.tui.theme import LIGHT
from edgespec.tui.token_view import Marking, TokenView
from edgespec.tui.transcript import Mark, Spot, Voice

MARKDOWN = "# Title\n\nSome **bold** words\n\n```python\nif x:\n    y\n```"


class CountingSetter(MarkdownSetter):
    """Counts how often Markdown is set."""

    times = 0

    def rows(self, text: str, width: int) -> list[Row] | None:
        CountingSetter.times += 1
        return super().rows(text, width)


def answer(view: TokenView, key: int, *tokens: str, whole: bool = True) -> None:
    view.begin(Voice.ANSWER, key)
    for token in tokens:
        view.append(token)
    if whole:
        view.end(key)
    view.update_rows(0.0)


def seen(view: TokenView) -> str:
    return "\n".join(painted(view)).rstrip()


def message(key: int, text: str, voice: Voice = Voice.ANSWER, label: str = "") -> BlockContent:
    return BlockContent(key, voice, ((text, Mark.PLAIN),), label)


async def test_an_answer_becomes_markdown_once_it_is_whole() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, MARKDOWN, whole=False)
        assert "**bold**" in seen(app.view)
        app.view.end(1)
        app.view.update_rows(0.0)
        assert "Some bold words" in seen(app.view)
        bold = [s for y in range(9) for s in app.view.render_line(y) if s.text == "bold"]
        assert bold[0].style is not None
        assert bold[0].style.bold


async def test_markdown_can_be_taken_back_to_tokens_and_forth() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, MARKDOWN)
        rendered = seen(app.view)
        app.view.set_rendered(False)
        assert app.view.transcript.text() == MARKDOWN
        assert "**bold**" in seen(app.view)
        app.view.set_rendered(True)
        assert seen(app.view) == rendered


async def test_what_the_user_wrote_is_never_markdown() -> None:
    app = ViewApp()
    async with app.run_test():
        app.view.show([message(1, "# why **this**?", Voice.USER)])
        assert "# why **this**?" in seen(app.view)


async def test_what_is_copied_is_what_is_seen() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, MARKDOWN)
        copied = app.view.get_selection(SELECT_ALL)
        assert copied == ("Title\n\nSome bold words\n\nif x:\n    y", "\n")


async def test_markdown_is_set_once_until_the_width_or_the_theme_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgespec.tui.token_view.MarkdownSetter", CountingSetter)
    CountingSetter.times = 0
    app = ViewApp()
    async with app.run_test(size=(60, 20)) as pilot:
        answer(app.view, 1, MARKDOWN)
        for _ in range(3):
            app.view.following = not app.view.following
            app.view.update_rows(0.0)
            await pilot.pause()
            seen(app.view)
        assert CountingSetter.times == 1
        await pilot.resize_terminal(40, 20)
        await wait_until(lambda: app.view.transcript.width < 40)
        assert CountingSetter.times == 2
        before = [s.style for s in app.view.render_line(0)]
        app.theme = LIGHT.name
        await wait_until(lambda: CountingSetter.times == 3)
        assert [s.style for s in app.view.render_line(0)] != before


async def test_an_answer_that_costs_too_much_to_set_stays_as_tokens() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, "# " + "word " * 20_000)
        assert painted(app.view)[-2:] != ["", ""]
        assert app.view.transcript.rows[0].text.startswith("# word")


async def test_thoughts_are_folded_until_they_are_wanted() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, "<think>", "deep", " thoughts", "</think>", "**4**")
        assert painted(app.view)[:2] == ["  ▸ thought for 2 tokens", "  4"]
        app.view.set_folded(False)
        assert painted(app.view)[:4] == ["  ▾ thought for 2 tokens", "  deep thoughts", "", "  4"]
        app.view.set_folded(True)
        assert painted(app.view)[:2] == ["  ▸ thought for 2 tokens", "  4"]


async def test_a_label_stands_at_the_right_edge_above_its_message() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)):
        app.view.show([message(1, "why?", Voice.USER), message(2, "because", label="cut off")])
        assert painted(app.view)[0].endswith("why?")
        assert painted(app.view)[1].endswith("  cut off")
        assert len(painted(app.view)[1]) == app.view.transcript.width + 2
        app.view.label(2, "branch 2 of 3, " + "very " * 20 + "long")
        app.view.update_rows(0.0)
        assert painted(app.view)[1].endswith("…")
        assert app.view.get_selection(SELECT_ALL) == ("why?\n\nbecause", "\n")


async def test_showing_another_conversation_replaces_everything() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 10)):
        answer(app.view, 1, "the old one")
        app.view.haunt("⟨ghost⟩", now=0.0)
        app.view.show([message(5, "a question", Voice.USER), message(6, "an answer")])
        assert seen(app.view).split()[1:] == ["a", "question", "an", "answer"]
        assert app.view.code_blocks(1) == []


@pytest.mark.parametrize(("block", "stays"), [(0, True), (1, False)], ids=["question", "answer"])
async def test_a_selection_ends_with_the_rows_it_was_made_in(block: int, stays: bool) -> None:
    app = ViewApp()
    async with app.run_test():
        app.view.say(Voice.USER, "a question")
        answer(app.view, 1, MARKDOWN, whole=False)
        line = Spot(block, block).line
        selection = Selection(Offset(3, line), Offset(6, line))
        app.screen.selections = {app.view: selection}
        app.view.end(1)
        assert app.view.text_selection == (selection if stays else None)


@pytest.mark.parametrize(
    ("tokens", "more", "stays"),
    [
        (("one\n", "two"), " three", True),
        (("one\n", "two"), "\n</think>", False),
        (("<think>", "one\n", "two"), " three", False),
    ],
    ids=["grown", "closed", "folded"],
)
async def test_a_selection_stays_while_text_is_added_behind_it_but_not_where_rows_change(
    tokens: tuple[str, ...], more: str, stays: bool
) -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, *tokens, whole=False)
        selection = Selection(Offset(3, 0), Offset(4, 1))
        app.screen.selections = {app.view: selection}
        app.view.append(more)
        assert app.view.text_selection == (selection if stays else None)


async def test_a_selection_stays_where_an_answer_ends_in_the_rows_it_had() -> None:
    app = ViewApp()
    async with app.run_test():
        app.view.set_rendered(False)
        answer(app.view, 1, MARKDOWN, whole=False)
        selection = Selection(Offset(3, 0), Offset(6, 2))
        app.screen.selections = {app.view: selection}
        app.view.end(1)
        assert app.view.text_selection == selection


async def test_code_is_given_as_it_was_written() -> None:
    app = ViewApp()
    async with app.run_test():
        answer(app.view, 1, "<think>```\nno\n```</think>", MARKDOWN, "\n\n```make\nall:\n\tx\n```")
        assert app.view.code_blocks(1) == ["if x:\n    y\n", "all:\n\tx\n"]


def history(count: int) -> list[BlockContent]:
    text = "Message {n} with **words** that go on for more than a single row.\n\n- one\n- two"
    voices = (Voice.USER, Voice.ANSWER)
    return [message(n, text.format(n=n), voices[n % 2]) for n in range(count)]


def laid_out(view: TokenView) -> int:
    transcript = view.transcript
    return sum(block.is_laid_out(transcript.manner) for block in transcript.blocks)


async def test_of_a_long_conversation_only_what_is_near_the_window_is_laid_out() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 20)) as pilot:
        app.view.show(history(10_000))
        assert "Message 9999" in seen(app.view)
        assert app.view.get_selection(SELECT_ALL)
        assert laid_out(app.view) < 60
        await pilot.resize_terminal(50, 20)
        await wait_until(lambda: app.view.transcript.width > 40)
        assert "Message 9999" in seen(app.view)
        assert laid_out(app.view) < 60


async def page_up(pilot: Pilot[None], view: TokenView) -> None:
    before = view.scroll_offset.y
    view.scroll_to(y=before - view.size.height + 2, animate=False)
    await pilot.pause()


async def test_scrolling_through_messages_never_seen_skips_and_repeats_no_row() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 20)) as pilot:
        view = app.view
        view.show(history(300))
        await pilot.pause()
        for _ in range(40):
            before = painted(view)
            await page_up(pilot, view)
            assert painted(view)[-2:] == before[:2]
        assert not view.following


async def test_a_jump_into_the_middle_shows_rows_in_their_order() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 20)) as pilot:
        view = app.view
        view.show(history(1000))
        await pilot.pause()
        view.scroll_to(y=view.max_scroll_y // 2, animate=False)
        await pilot.pause()
        shown = [int(number) for number in re.findall(r"Message (\d+)", seen(view))]
        assert len(shown) > 2
        assert shown == list(range(shown[0], shown[-1] + 1))
        view.scroll_home(animate=False)
        await pilot.pause()
        assert "Message 0 " in painted(view)[0]
        view.scroll_end(animate=False)
        await wait_until(lambda: view.following)
        assert "Message 999" in seen(view)


async def test_who_reads_above_the_end_stays_there_when_the_answer_becomes_markdown() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        text = "\n\n".join(f"# Part {n}\n\n```python\nx\n```" for n in range(50))
        answer(view, 1, text, whole=False)
        await pilot.pause()
        view.scroll_to(y=view.max_scroll_y // 2, animate=False)
        await pilot.pause()
        parts = re.findall(r"Part \d+", seen(view))
        view.end(1)
        view.update_rows(0.0)
        await pilot.pause()
        assert not view.following
        assert set(parts) & set(re.findall(r"Part \d+", seen(view)))


async def test_inspecting_keeps_what_is_at_the_top_in_place() -> None:
    app = ViewApp()
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        view.show(history(200))
        await pilot.pause()
        view.scroll_to(y=view.max_scroll_y // 2, animate=False)
        await pilot.pause()
        top = next(re.findall(r"Message \d+", row) for row in painted(view) if "Message" in row)
        view.set_marking(Marking.INSPECT)
        await pilot.pause()
        assert top[0] in seen(view)
