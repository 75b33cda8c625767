# ruff: noqa: RUF001  the multiplication sign is meant
"""The figures: what each line says, the pace over time, and the panel that shows them."""

from __future__ import annotations

import pytest
from beside import ANSWER, BesideApp, in_order
from fake_model import guessed, plain, timed
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from edgespec.decoding.events import PromptRead, Round
from edgespec.decoding.stats import Stats
from edgespec.tui.figures import Line, Pace, figure_lines
from edgespec.tui.figures_panel import FiguresPanel
from edgespec.tui.status import Drafting, Situation, Tone

SITUATION = Situation(
    pair="demo",
    context_used=412,
    context=4096,
    exactness="bit-exact: the same text to the bit, whatever is guessed",
    memory="takes 0.3 GB of 12.1 GB free",
)


def folded(*events: Round, every_s: float = 0.1, plain_speed: float | None = 10.0) -> Stats:
    """One round after the other, each as long."""
    stats = Stats(0.0, calibrated_plain_speed=plain_speed).after(PromptRead(20, 20, 5, 0.1), 0.0)
    for number, event in enumerate(events, 2):
        stats = stats.after(timed(event, every_s), number * every_s)
    return stats


def lines(
    stats: Stats | None, situation: Situation = SITUATION, drafting: Drafting | None = None
) -> list[Line]:
    pace = Pace() if stats is None else Pace().after(stats)
    return list(figure_lines(stats, pace, situation, drafting or Drafting(), 46))


def text_of(lines: list[Line]) -> str:
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def warnings(lines: list[Line]) -> str:
    return " ".join(text for line in lines for text, tone in line if tone is Tone.WARNING)


GUESSED = tuple(in_order(plain("a"), *[guessed(" b", " c", " d", accepted=1)] * 10))
GUESSING = Drafting().after(GUESSED[-1])


def test_all_that_is_measured_is_there() -> None:
    text = text_of(lines(folded(*ANSWER), drafting=GUESSING))
    assert "guessing  draft ×4" in text
    assert "speed     30.0 tok/s" in text
    assert "plain     10.0 tok/s, measured" in text
    assert "ratio     3.00× plain" in text
    assert "a round   2.5 tokens, 4 passes" in text
    assert "accepted  75% of 8 tested, 8 drafted" in text
    assert "first     0.20 s, 20 prompt tokens, 5 reused" in text
    assert "context   412 of 4096, 10%" in text
    assert "text      bit-exact: the same text to the bit," in text
    assert "memory    takes 0.3 GB of 12.1 GB free" in text


def test_without_a_measured_plain_speed_no_ratio_is_claimed() -> None:
    text = text_of(lines(folded(*GUESSED, plain_speed=None)))
    assert "plain     not measured" in text
    assert "ratio" not in text


def test_it_says_clearly_that_speculation_costs_here() -> None:
    slow = lines(folded(*GUESSED, plain_speed=40.0))
    assert "ratio     0.50× plain" in text_of(slow)
    assert warnings(slow) == "speculation costs you here"
    fast = lines(folded(*GUESSED, plain_speed=10.0))
    assert "speculation costs" not in text_of(fast)


def test_a_few_tokens_are_no_verdict() -> None:
    assert "costs" not in text_of(lines(folded(*ANSWER, plain_speed=400.0)))


def test_acceptance_by_place_is_a_chart_with_its_numbers() -> None:
    text = text_of(lines(folded(*GUESSED))).splitlines()
    at = next(n for n, line in enumerate(text) if line.startswith("by place"))
    assert text[at : at + 5] == [
        "by place  ███",
        "          ███",
        "          ███",
        "            1   2",
        "  %       100   0",
    ]


def test_each_proposer_has_its_own_line() -> None:
    text = text_of(lines(folded(*ANSWER)))
    assert "  draft model\n          75% of 8 tested, 8 drafted" in text


def test_an_answer_without_guesses_says_so() -> None:
    text = text_of(lines(folded(*in_order(*[plain("a")] * 9))))
    assert "accepted  nothing was guessed" in text
    assert "by place" not in text


def test_time_is_split_into_draft_verify_and_the_rest() -> None:
    events = in_order(*[guessed("a", "b", accepted=1)] * 4)  # 1 ms, 4 ms, and 1 ms more
    text = text_of(lines(folded(*events)))
    assert "time      draft   17%" in text
    assert "          verify  67%" in text
    assert "          rest    17%" in text


def test_why_nothing_is_guessed_stands_there_in_full() -> None:
    reason = "the draft model is right 41% of the time; a pass of 4 costs 3.1 plain ones"
    parked = Drafting()
    for _ in range(2):
        parked = parked.after(plain("a", plan=f"auto → plain: {reason}"))
    shown = lines(folded(*ANSWER), drafting=parked)
    assert " ".join(warnings(shown).split()) == f"off: {reason}"


def test_a_context_that_is_nearly_full_is_a_warning() -> None:
    full = lines(None, Situation(context_used=3500, context=4096))
    assert "3500 of 4096, 85%" in warnings(full)


def test_before_the_first_answer_only_what_is_known_is_shown() -> None:
    text = text_of(lines(None))
    assert "figures appear with the first answer" in text
    assert "tok/s" not in text
    assert "context   412 of 4096" in text


def test_names_out_of_files_are_shown_safely() -> None:
    situation = Situation(exactness="\x1b[2Jexact", memory="\u202e1 GB")
    text = text_of(lines(None, situation))
    assert "\x1b" not in text
    assert "\u202e" not in text


@given(st.integers(26, 120), st.integers(0, 60), st.integers(0, 5000))
def test_lines_keep_to_the_width(width: int, rounds: int, used: int) -> None:
    events = in_order(*[guessed(*["x"] * 13, accepted=4)] * rounds)
    stats = folded(*events)
    situation = Situation(context_used=used, context=4096, exactness="word " * 40)
    for line in figure_lines(stats, Pace().after(stats), situation, GUESSING, width):
        assert sum(cell_len(text) for text, _ in line) <= width


def test_the_pace_is_that_of_the_latest_half_seconds() -> None:
    pace, stats = Pace(), Stats(0.0)
    for number in range(21):  # ten tokens a second, then twenty
        stats = stats.after(plain("a"), number / 10 if number <= 10 else 1 + (number - 10) / 20)
        pace = pace.after(stats)
    assert pace.speeds == pytest.approx((10.0, 10.0, 20.0))


def test_the_pace_does_not_depend_on_how_often_it_is_looked_at() -> None:
    stats = Stats(0.0)
    for number in range(21):
        stats = stats.after(plain("a"), number / 10)
    assert Pace().after(stats).after(stats).speeds == pytest.approx((10.0,))


def test_the_pace_of_another_answer_begins_anew() -> None:
    first, second = Stats(0.0), Stats(100.0)
    for number in range(11):
        first = first.after(plain("a"), number / 10)
    second = second.after(plain("a"), 100.1)
    assert Pace().after(first).speeds
    assert Pace().after(first).after(second).speeds == ()


def test_the_pace_keeps_a_bounded_past() -> None:
    pace, stats = Pace(), Stats(0.0)
    for number in range(1000):
        stats = stats.after(plain("a"), float(number))
        pace = pace.after(stats)
    assert len(pace.speeds) == 240


def shown(panel: FiguresPanel) -> str:
    return str(panel.query_one("Static").content)  # type: ignore[attr-defined]


async def test_the_panel_shows_the_figures_and_follows_them() -> None:
    panel = FiguresPanel()
    app = BesideApp(panel)
    async with app.run_test(size=(60, 30)) as pilot:
        assert "figures appear with the first answer" in shown(panel)
        panel.show(folded(*ANSWER), SITUATION, GUESSING)
        await pilot.pause()
        assert "30.0 tok/s" in shown(panel)
        panel.show(folded(*ANSWER, every_s=0.2), SITUATION, GUESSING)
        await pilot.pause()
        assert "15.0 tok/s" in shown(panel)


async def test_the_pace_is_followed_while_the_panel_is_hidden() -> None:
    panel = FiguresPanel()
    app = BesideApp(panel)
    async with app.run_test(size=(60, 30)) as pilot:
        panel.display = False
        await pilot.pause()
        stats = Stats(0.0)
        for number in range(30):
            stats = stats.after(plain("a"), number / 10)
            panel.show(stats, SITUATION)
        panel.display = True
        await pilot.pause()
        lines = shown(panel).split("\n")
        at = next(n for n, line in enumerate(lines) if line.startswith("speed"))
        assert lines[at + 1].strip() == "█████"


async def test_the_panel_wraps_to_its_width_and_scrolls_by_key() -> None:
    panel = FiguresPanel()
    app = BesideApp(panel)
    async with app.run_test(size=(30, 10)) as pilot:
        panel.show(folded(*ANSWER), SITUATION, GUESSING)
        await pilot.pause()
        assert all(cell_len(line) <= 28 for line in shown(panel).split("\n"))
        panel.focus()
        await pilot.press("end")
        await pilot.pause()
        assert panel.is_vertical_scroll_end
        assert panel.scroll_offset.y > 0
