# ruff: noqa: RUF001  the multiplication sign is meant
"""The status line: what it says, and what it drops where it is narrow."""

from __future__ import annotations

import pytest
from fake_model import SHORT, guessed, plain
from rich.cells import cell_len

from edgespec.decoding.events import Event
from edgespec.decoding.stats import Stats
from edgespec.tui.status import Drafting, Situation, status_text

WIDE = 400
SITUATION = Situation(pair="demo", context_used=412, context=4096)


def folded(events: tuple[object, ...] = SHORT, plain_speed: float | None = 10.0) -> Stats:
    """One event every tenth of a second."""
    stats = Stats(0.0, calibrated_plain_speed=plain_speed)
    for number, event in enumerate(events):
        assert isinstance(event, Event)
        stats = stats.after(event, number / 10)
    return stats


def drafting_of(*events: object) -> Drafting:
    drafting = Drafting()
    for event in events:
        drafting = drafting.after(event)  # type: ignore[arg-type]
    return drafting


GUESSING = drafting_of(guessed(" a", " b", accepted=1))


def test_all_figures_are_there_where_there_is_room() -> None:
    assert status_text(folded(), GUESSING, SITUATION, WIDE) == (
        "demo · draft ×4 · 30.0 tok/s · 3.00× plain (10.0) · 2.5 tok/round · 75% accepted"
        " · first 0.20 s · context 412/4096"
    )


def test_without_a_measured_plain_speed_no_ratio_is_claimed() -> None:
    text = status_text(folded(plain_speed=None), GUESSING, SITUATION, WIDE)
    assert "30.0 tok/s" in text
    assert "plain" not in text


def test_before_the_first_answer_only_what_is_known_is_shown() -> None:
    assert status_text(None, Drafting(), SITUATION, WIDE) == "demo · context 412/4096"


def test_show_mode_is_labelled_in_words_and_on_the_narrowest_screen() -> None:
    situation = Situation(pair="demo", show_mode=True)
    wide = status_text(folded(), GUESSING, situation, WIDE)
    assert "show mode: drafting even where it does not pay" in wide
    assert status_text(folded(), GUESSING, situation, 30).startswith("show mode · ")


def test_speculation_off_says_why() -> None:
    parked = drafting_of(
        *[plain(" a", plan="auto → plain: prose; a pass of 4 costs 3.1 plain ones")] * 2
    )
    text = status_text(folded(), parked, SITUATION, WIDE)
    assert "spec off: prose; a pass of 4 costs 3.1 plain ones" in text


def test_speculation_turned_off_by_the_user_says_so() -> None:
    text = status_text(None, Drafting(), Situation(proposer="none"), WIDE)
    assert text == "spec off: you turned it off"


def test_a_single_round_without_a_guess_is_no_news_but_many_are() -> None:
    once = drafting_of(guessed(" a", " b", accepted=1), plain(" c", plan="no match"))
    assert "spec off" not in status_text(None, once, SITUATION, WIDE)
    for _ in range(10):
        once = once.after(plain(" c", plan="no match"))
    assert "spec off: no match" in status_text(None, once, SITUATION, WIDE)


@pytest.mark.parametrize("width", range(1, 120))
def test_the_line_always_fits(width: int) -> None:
    for situation in (SITUATION, Situation("漢字" * 20, "loading", show_mode=True)):
        assert cell_len(status_text(folded(), GUESSING, situation, width)) <= width


def test_the_least_important_parts_go_first() -> None:
    narrow = status_text(folded(), GUESSING, SITUATION, 54)
    assert narrow == "draft ×4 · 30.0 tok/s · 3.00× plain · ctx 412/4096"
    assert status_text(folded(), GUESSING, SITUATION, 12) == "draft ×4"
