"""The prompt with its commands, completions and attachments, driven by keys and mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from composing import ComposerApp
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.pilot import Pilot
from waiting import wait_until

from edgespec.text.sanitize import clean
from edgespec.tui.attach import Attached, Room
from edgespec.tui.chips import Chips
from edgespec.tui.commands import ChangeSpeculation, Help, NewChat, ShowSetting
from edgespec.tui.completion_list import CompletionList
from edgespec.tui.composer import Composer
from edgespec.tui.prompt_box import LONG_PASTE, cleaned


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("five words are in here")
    return tmp_path


def rows(app: ComposerApp) -> list[str]:
    """What the list of completions shows."""
    shown = app.query_one(CompletionList)
    if not shown.display:
        return []
    return [shown.render_line(y).text.strip() for y in range(shown.size.height)]


def chips(app: ComposerApp) -> str:
    shown = app.query_one(Chips)
    return str(shown.render()) if shown.display else ""


def asked(app: ComposerApp) -> list[object]:
    return [m.command for m in app.heard if isinstance(m, Composer.Asked)]


def submitted(app: ComposerApp) -> list[str]:
    return [m.text for m in app.heard if isinstance(m, Composer.Submitted)]


def refused(app: ComposerApp) -> list[str]:
    return [m.reason for m in app.heard if isinstance(m, Composer.Refused)]


async def write(app: ComposerApp, pilot: Pilot[None], text: str) -> None:
    """Types the text, and waits until the completions are for it."""
    app.composer.box.put(text)
    await wait_until(lambda: app.query_one(CompletionList).for_text == text, "the completions")
    await pilot.pause()


async def test_a_slash_opens_the_list_above_the_prompt_and_escape_closes_it() -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("/")
        assert app.composer.completing
        shown = app.query_one(CompletionList)
        assert shown.region.bottom == app.composer.box.region.y
        assert rows(app)[0].startswith("/set NAME VALUE")
        assert "a sampling setting" in rows(app)[0]
        await pilot.press("escape")
        assert not app.composer.completing
        assert rows(app) == []
        assert app.composer.box.text == "/"


async def test_the_list_takes_no_room_from_what_is_above() -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        before = app.query_one("#above").size
        await pilot.press("/")
        assert app.query_one("#above").size == before


async def test_the_list_fits_a_terminal_of_sixteen_rows() -> None:
    app = ComposerApp()
    async with app.run_test(size=(60, 16)) as pilot:
        await write(app, pilot, "/")
        shown = app.query_one(CompletionList)
        assert shown.region.y >= 0
        assert shown.region.bottom == app.composer.box.region.y
        assert shown.region.width == 60


async def test_tab_completes_and_enter_sends() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "n", "tab")
        assert app.composer.box.text == "/new"
        assert asked(app) == []
        await pilot.press("enter")
        await wait_until(lambda: asked(app) == [NewChat()])
        assert app.composer.box.text == ""


async def test_enter_takes_what_is_highlighted_and_sends_it_if_it_is_complete() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "h", "e", "enter")
        await wait_until(lambda: asked(app) == [Help()])


async def test_enter_on_a_command_that_goes_on_completes_its_name_first() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "s", "p", "enter")
        assert app.composer.box.text == "/spec "
        assert asked(app) == []
        await pilot.press("n", "enter")
        await wait_until(lambda: asked(app) == [ChangeSpeculation("ngram", None)])


async def test_enter_on_a_command_that_stands_sends_it_as_it_is() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/set temperature ")
        assert app.composer.completing
        await pilot.press("enter")
        await wait_until(lambda: asked(app) == [ShowSetting("temperature")])


async def test_the_arrows_go_round_the_list() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/re")
        await pilot.press("down", "down", "down", "up", "tab")
        assert app.composer.box.text == "/rename "


async def test_a_click_takes_a_completion() -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await write(app, pilot, "/re")
        await pilot.click(CompletionList, offset=(4, 2))
        await wait_until(lambda: app.composer.box.text == "/replay")
        assert app.composer.box.has_focus


async def test_the_list_is_for_what_is_written_now() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/he")
        # as from a pipe: text and Enter at once, before the list could follow
        app.composer.box.put("/new")
        await app.composer.box._on_key(events.Key("enter", "\r"))
        await wait_until(lambda: asked(app) == [NewChat()])


async def test_files_are_completed_and_attached_with_their_size(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/file no")
        assert rows(app) == ["notes.md"]
        await pilot.press("enter")
        await wait_until(lambda: "notes.md" in chips(app))
        await wait_until(lambda: "8 tokens" in chips(app), "the count")
        assert app.composer.box.text == ""
        await pilot.press("h", "i", "enter")
        await wait_until(lambda: submitted(app) == ["hi"])
        (message,) = app.heard
        assert isinstance(message, Composer.Submitted)
        assert message.attached == (Attached("notes.md", "five words are in here", 8),)
        assert chips(app) == ""


async def test_a_file_that_cannot_be_read_leaves_the_command_and_says_why(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/file none.txt")
        await pilot.press("enter")
        await wait_until(lambda: "none.txt is not there" in "".join(refused(app)))
        assert app.composer.box.text == "/file none.txt"
        assert app.composer.attached == ()


def press_at_once(app: ComposerApp, *keys: str) -> None:
    """As keys come that are pressed while the screen is busy: all before the first is answered."""
    for key in keys:
        app.post_message(events.Key(key, "\r" if key == "enter" else key))


async def test_what_is_typed_right_behind_enter_begins_the_next_message() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.attach(Attached("a.txt", "text", 1))
        press_at_once(app, "h", "i", "enter", "n")
        await wait_until(lambda: submitted(app) == ["hi"])
        await pilot.pause()
        assert app.composer.box.text == "n"
        assert app.composer.attached == ()
        await pilot.press("backspace", "up")
        assert app.composer.box.text == "hi"


async def test_a_message_takes_its_attachments_along_though_a_command_is_begun_behind_it() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.attach(Attached("a.txt", "text", 1))
        press_at_once(app, *"hi", "enter", "/", "n")
        await wait_until(lambda: submitted(app) == ["hi"])
        await pilot.pause()
        assert app.composer.box.text == "/n"
        assert app.composer.attached == ()


async def test_messages_that_have_to_wait_stand_in_order_before_what_was_typed_since() -> None:
    app = ComposerApp()
    app.busy = True
    async with app.run_test() as pilot:
        app.composer.attach(Attached("a.txt", "text", 1))
        press_at_once(app, *"one", "enter", *"two", "enter", "3")
        await wait_until(lambda: submitted(app) == ["one", "two"])
        await pilot.pause()
        assert app.composer.box.text == "onetwo3"
        assert [one.name for one in app.composer.attached] == ["a.txt"]
        await pilot.press("x", "up")
        assert app.composer.box.text == "onetwo3x", "what was not sent is not remembered as sent"


async def test_a_message_waits_for_the_file_that_is_read_for_it(folder: Path) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/file notes.md")
        app.composer.close_completion()
        press_at_once(app, "enter", "h", "i", "enter")
        await wait_until(lambda: "still being read" in "".join(refused(app)))
        await wait_until(lambda: "notes.md" in chips(app))
        assert app.composer.box.text == "hi"
        await pilot.press("enter")
        await wait_until(lambda: submitted(app) == ["hi"])
        assert [m.attached[0].name for m in app.heard if isinstance(m, Composer.Submitted)] == [
            "notes.md"
        ]


@pytest.mark.parametrize("way", ["backspace", "command", "click"])
async def test_an_attachment_is_taken_back(way: str) -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for name in ("a.txt", "b.txt"):
            app.composer.attach(Attached(name, "text", 1))
        await pilot.pause()
        if way == "backspace":
            await pilot.press("backspace")
        elif way == "command":
            app.composer.box.put("/file -")
            await pilot.press("enter")
        else:
            cross = chips(app).rindex("\N{MULTIPLICATION SIGN}")
            await pilot.click(Chips, offset=(cross + 2, 0))
        await wait_until(lambda: [one.name for one in app.composer.attached] == ["a.txt"])
        assert "b.txt" not in chips(app)
        assert app.composer.box.text == ""


async def test_what_does_not_fit_is_marked_and_not_sent() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.set_room(Room(context=100, used=60))
        app.composer.attach(Attached("big.txt", "text", 50))
        await pilot.press("h", "i", "enter")
        await wait_until(lambda: "50 tokens, 40 of 100 are free" in "".join(refused(app)))
        assert submitted(app) == []
        assert app.composer.box.text == "hi"
        app.composer.set_room(Room(context=100, used=10))
        await pilot.press("enter")
        await wait_until(lambda: submitted(app) == ["hi"])


async def test_another_model_counts_what_is_attached_again() -> None:
    app = ComposerApp(counts=False)
    async with app.run_test() as pilot:
        app.composer.attach(Attached("a.txt", "text", 5))
        app.composer.count_again()
        await pilot.pause()
        assert "counting" in chips(app)


async def test_a_message_that_begins_with_two_slashes_is_sent_with_one() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("/", "/", "e", "t", "c", "enter")
        await wait_until(lambda: submitted(app) == ["/etc"])


async def test_what_is_no_command_stays_and_the_nearest_is_named() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await write(app, pilot, "/halp")
        await pilot.press("enter")
        await wait_until(lambda: "did you mean /help" in "".join(refused(app)))
        assert app.composer.box.text == "/halp"


async def test_messages_of_earlier_sessions_are_recalled_so_that_they_are_sent_again() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.remember(["first", "/etc/hosts?"])
        await pilot.press("up")
        assert app.composer.box.text == "//etc/hosts?"
        await pilot.press("enter")
        await wait_until(lambda: submitted(app) == ["/etc/hosts?"])
        await pilot.press("up", "up", "up")
        assert app.composer.box.text == "first"


async def test_an_earlier_message_is_edited_with_what_was_attached() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.attach(Attached("other.txt", "x", 1))
        app.composer.put("/a question", [Attached("notes.md", "text", 3)])
        assert app.composer.box.text == "//a question"
        assert [one.name for one in app.composer.attached] == ["notes.md"]
        await pilot.press("enter")
        await wait_until(lambda: submitted(app) == ["/a question"])


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
async def test_a_paste_keeps_its_lines_and_is_not_sent(end: str) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.post_message(events.Paste(f"one{end}two{end}"))
        await wait_until(lambda: app.composer.box.text == "one\ntwo\n")
        await pilot.pause()
        assert app.heard == []


async def test_a_long_paste_is_attached_instead_of_written() -> None:
    app = ComposerApp()
    async with app.run_test():
        app.post_message(events.Paste("word \x1b[2J" * LONG_PASTE))
        await wait_until(lambda: f"{LONG_PASTE + 5:,} tokens" in chips(app))
        assert "pasted text 1" in chips(app)
        assert app.composer.box.text == ""
        assert app.composer.attached[0].text == "word " * LONG_PASTE


async def test_a_paste_beyond_four_megabytes_is_refused() -> None:
    app = ComposerApp()
    async with app.run_test():
        app.post_message(events.Paste("a" * (4 * 2**20 + 1)))
        await wait_until(lambda: "more than 4 MiB" in "".join(refused(app)))
        assert app.composer.attached == ()


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_new_line_is_written_without_sending(key: str) -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        await pilot.press("a", key, "b")
        assert app.composer.box.text == "a\nb"
        assert app.heard == []


async def test_a_hostile_file_name_shows_nothing_but_its_letters() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.attach(Attached("\x1b]0;x\x07[@click=app.quit]evil\u202e", "text", 1))
        await pilot.pause()
        assert chips(app).isprintable()
        assert "[@click=app.quit]evil" in chips(app)


async def test_what_is_highlighted_is_told_by_more_than_colour() -> None:
    app = ComposerApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await write(app, pilot, "/re")
        shown = app.query_one(CompletionList)
        rows_bold = [
            all(segment.style is not None and segment.style.bold for segment in strip)
            for strip in (shown.render_line(y) for y in range(shown.size.height))
        ]
        assert rows_bold == [True, False, False]


@given(
    st.lists(st.sampled_from(["\r", "\n", "\r\n", "\u2028", "\x1b]", "\x1b[", "a", "\t", "\u3164"]))
)
def test_a_paste_is_cleaned_as_any_other_text(parts: list[str]) -> None:
    assert cleaned("".join(parts)) == clean("".join(parts))
