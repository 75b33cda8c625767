"""The inspector's rows: every key, the mouse, hostile text, very long answers."""

from __future__ import annotations

from dataclasses import replace

from beside import ANSWER, Explained, alternatives, in_order
from fake_model import guessed, plain
from inspecting import SIZE, choices, detail, explaining, filled, inspecting, opened, rows
from waiting import wait_until

from edgespec.tui.inspector import Inspector
from edgespec.tui.round_list import RoundList


async def test_each_round_is_two_lines_with_its_number_its_proposer_and_its_times() -> None:
    async with inspecting(*ANSWER) as (_, inspector, _):
        painted = rows(inspector)
        assert painted[2].split() == ["2", "draft", "model", "\N{MULTIPLICATION SIGN}3", "1.0+4.0"]
        assert painted[3].strip() == "✓ means ✓ giving ✗ things → items"


async def test_fates_are_painted_with_attributes_as_well_as_colour() -> None:
    async with inspecting(*ANSWER) as (_, inspector, _):
        styles = {s.text: s.style for y in (3, 5) for s in inspector.list.render_line(y) if s.style}
        assert styles["✗ things"].strike
        assert styles["→ items"].underline
        assert styles["+."].bold
        assert styles["✓ means"].bgcolor != styles["→ items"].bgcolor


async def test_before_the_first_answer_and_for_an_unknown_one_it_says_so() -> None:
    app, inspector = filled()
    async with app.run_test(size=SIZE) as pilot:
        assert rows(inspector)[0] == "rounds appear here with the next answer"
        await opened(pilot, inspector, key=5)
        assert rows(inspector)[0] == "no rounds are known of this answer"


async def test_up_and_down_go_through_the_rounds_and_left_and_right_through_the_tokens() -> None:
    async with inspecting(*ANSWER) as (app, inspector, pilot):
        visited = []
        for key in ("up", "up", "up", "left", "right", "down", "home", "up", "end", "down"):
            await pilot.press(key)
            visited.append(inspector.selected)
        places = [9, 7, 3, 2, 3, 7, 0, 0, 9, 9]
        assert visited == [(1, index) for index in places]
        told = app.heard(Inspector.TokenChosen)
        assert [(m.key, m.index) for m in told] == visited


async def test_left_stops_at_the_first_token_and_right_at_the_last() -> None:
    async with inspecting(*ANSWER) as (_, inspector, pilot):
        await pilot.press("home", "left")
        assert inspector.selected == (1, 0)
        await pilot.press("end", "right")
        assert inspector.selected == (1, 9)


async def test_keys_without_any_rounds_do_nothing() -> None:
    async with inspecting() as (app, inspector, pilot):
        await pilot.press("up", "down", "left", "right", "home", "end", "enter", "1", "pageup")
        assert inspector.selected is None
        assert app.said == []


async def test_a_click_selects_the_token_under_it() -> None:
    async with inspecting(*ANSWER) as (_, inspector, pilot):
        selected = []
        for word in ("✓ giving", "✗ things", "→ items", "✓ means"):
            x = inspector.list.render_line(3).text.index(word)
            await pilot.click(RoundList, offset=(x + 1, 3))
            selected.append(inspector.selected)
        assert selected == [(1, 2), (1, 3), (1, 3), (1, 1)]
        await pilot.click(RoundList, offset=(10, 4))
        assert inspector.selected == (1, 7)


async def test_the_selected_token_is_marked_and_its_round_too() -> None:
    async with inspecting(*ANSWER) as (_, inspector, pilot):
        inspector.select(1, 2)
        await pilot.pause()
        assert rows(inspector)[2].startswith("▸")
        styles = {s.text: s.style for s in inspector.list.render_line(3) if s.style}
        assert styles["✓ giving"].reverse
        assert not styles["✓ means"].reverse


async def test_selecting_a_token_of_another_answer_shows_the_rounds_of_that_one() -> None:
    app, inspector = filled(*ANSWER)
    async with app.run_test(size=SIZE) as pilot:
        inspector.rounds.add(2, plain("other"))
        await opened(pilot, inspector, key=2)
        assert "→other" in rows(inspector)[1]
        inspector.select(1, 3)
        assert "✓ means" in rows(inspector)[3]


async def test_following_a_new_answer_leaves_the_old_token() -> None:
    async with inspecting(*ANSWER) as (_, inspector, _):
        inspector.select(1, 3)
        inspector.follow(2)
        assert inspector.selected is None
        assert "asking" not in detail(inspector)


async def test_clear_forgets_everything() -> None:
    async with explaining() as (_, inspector, pilot):
        inspector.clear()
        await pilot.pause()
        assert rows(inspector)[0] == "rounds appear here with the next answer"
        assert (inspector.selected, choices(inspector)) == (None, [])
        assert not inspector.rounds.of(1)


async def test_five_thousand_rounds_scroll_from_end_to_end_and_only_what_is_seen_is_painted() -> (
    None
):
    events = in_order(*[guessed(" a", " b", f" w{n}", accepted=1) for n in range(5000)])
    async with inspecting(*events) as (_, inspector, pilot):
        shown = inspector.list
        assert shown.virtual_size.height == 10_000
        await wait_until(lambda: "w4999" in "".join(rows(inspector)))
        await pilot.press("home")
        await wait_until(lambda: "w0" in rows(inspector)[1])
        for _ in range(20):
            await pilot.press("pagedown")
        assert inspector.selected is not None
        assert shown.scroll_offset.y > 100
        assert len(shown._painted) < 500
        await pilot.press("end")
        await wait_until(lambda: "w4999" in "".join(rows(inspector)))


async def test_it_stays_at_the_latest_round_until_the_user_goes_elsewhere() -> None:
    async with inspecting() as (_, inspector, pilot):
        events = list(in_order(*[plain(f" w{n}") for n in range(200)]))
        for event in events[:100]:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        await wait_until(lambda: "w99" in "".join(rows(inspector)))
        await pilot.press("home")
        for event in events[100:]:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        await pilot.pause()
        assert "w0" in rows(inspector)[1]
        await pilot.press("end")
        await wait_until(lambda: "w199" in "".join(rows(inspector)))
        inspector.rounds.add(1, replace(plain(" more"), index=200))
        inspector.update_rows()
        await wait_until(lambda: "more" in "".join(rows(inspector)))


async def test_the_mouse_wheel_scrolls_and_the_end_is_followed_again() -> None:
    events = in_order(*[plain(f" w{n}") for n in range(200)])
    async with inspecting(*events) as (_, inspector, pilot):
        inspector.list.scroll_up(animate=False, immediate=True)
        await pilot.pause()
        assert not inspector.list.following
        inspector.list.scroll_end(animate=False, immediate=True)
        await pilot.pause()
        assert inspector.list.following


HOSTILE = (
    "\x1b]52;c;AAAA\x07",
    "\x1b]0;owned\x07",
    "\x9b2J",
    "\u202eevil",
    "[@click=app.bell()]press[/]",
    "[bold red]x[/]",
    "\r\n\n",
    "a" * 100_000,
)


async def test_hostile_tokens_change_nothing_but_their_own_text() -> None:
    event = guessed(*HOSTILE, " own", accepted=1)
    own = replace(event.tokens[-1], text=HOSTILE[0] + HOSTILE[4])
    hostile = replace(event, tokens=(*event.tokens[:-1], own), plan=HOSTILE[1])
    async with inspecting(hostile) as (_, inspector, pilot):
        texts = [(n, text, 0.1) for n, text in enumerate(HOSTILE[:5])]
        inspector.select(1, 1)
        inspector.explained(1, 1, Explained(99, -1.0, alternatives=alternatives(*texts)))
        await pilot.pause()
        everything = [*rows(inspector), *detail(inspector).split("\n"), *choices(inspector)]
        assert all(line.isprintable() for line in everything)
        assert "“[@click=app.bell()]press[/]”" in choices(inspector)[4]
        for widget in (inspector.list, inspector.detail, inspector.alternatives):
            for y in range(widget.size.height):
                metas = [s.style.meta for s in widget.render_line(y) if s.style]
                assert not any("@click" in meta for meta in metas)


async def test_a_narrow_panel_still_shows_marks_and_cuts_what_does_not_fit() -> None:
    async with inspecting(*ANSWER, size=(24, 16)) as (_, inspector, pilot):
        inspector.select(1, 3)
        await pilot.pause()
        assert all(len(line) <= 22 for line in rows(inspector))
        text = "".join(rows(inspector))
        assert "→ items" in text
        assert "…" in text


async def test_a_hidden_inspector_keeps_up_when_it_is_shown_again() -> None:
    async with inspecting() as (_, inspector, pilot):
        inspector.display = False
        await pilot.pause()
        for event in ANSWER:
            inspector.rounds.add(1, event)
            inspector.update_rows()
        inspector.display = True
        inspector.update_rows()
        await pilot.pause()
        assert "✓ means" in "".join(rows(inspector))


async def test_selecting_the_latest_token_once_more_still_follows_the_answer() -> None:
    events = in_order(*[plain(f" w{n}") for n in range(100)])
    async with inspecting(*events) as (_, inspector, pilot):
        await pilot.press("end")
        inspector.select(1, 99)  # as the conversation does when it is told
        assert inspector.list.following
        inspector.select(1, 3)
        assert not inspector.list.following
