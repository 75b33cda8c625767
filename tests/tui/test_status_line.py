# ruff: noqa: RUF001  the multiplication sign is meant
"""The status line: what it says, and what it drops where it is narrow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_model import SHORT, guessed, plain, timed
from rich.cells import cell_len

from edgespec.decoding.events import Event
from edgespec.decoding.stats import Stats
from edgespec.tui.status import (
    SEPARATOR,
    Drafting,
    Situation,
    Tone,
    costs,
    fitted,
    show_mode_notice,
    speculation_notice,
    status_parts,
)

WIDE = 400
SITUATION = Situation(pair="demo", context_used=412, context=4096)


def folded(events: tuple[object, ...] = SHORT, plain_speed: float | None = 10.0) -> Stats:
    """One event every tenth of a second."""
    stats = Stats(0.0, calibrated_plain_speed=plain_speed)
    for number, event in enumerate(events):
        assert isinstance(event, Event)
        stats = stats.after(event, number / 10)
    return stats


def status_text(stats: Stats | None, drafting: Drafting, situation: Situation, width: int) -> str:
    """The line as it stands on a screen of this width."""
    parts = fitted(status_parts(stats, drafting, situation), width)
    return SEPARATOR.join(part.text for part in parts)


def drafting_of(*events: object) -> Drafting:
    drafting = Drafting()
    for event in events:
        drafting = drafting.after(event)  # type: ignore[arg-type]
    return drafting


GUESSING = drafting_of(guessed(" a", " b", accepted=1))


def test_all_figures_are_there_where_there_is_room() -> None:
    assert status_text(folded(), GUESSING, SITUATION, WIDE) == (
        "spec on · demo · draft ×4 · 30.0 tok/s · 3.00× plain (10.0) · 2.5 tok/round · 75% accepted"
        " · first 0.20 s · context 412/4096"
    )


def test_without_a_measured_plain_speed_no_ratio_is_claimed() -> None:
    text = status_text(folded(plain_speed=None), GUESSING, SITUATION, WIDE)
    assert "30.0 tok/s" in text
    assert "plain" not in text


def test_before_the_first_answer_only_what_is_known_is_shown() -> None:
    text = status_text(None, Drafting(), SITUATION, WIDE)
    assert text == "spec on · demo · auto · context 412/4096"


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


def test_guesses_that_are_only_a_try_say_why_they_are_made() -> None:
    plan = "auto → draft model ×8, to see whether it pays"
    trying = drafting_of(guessed(" a", " b", accepted=1, plan=plan, source="draft+ngram"))
    how = "auto → draft model + n-gram ×1, to see whether it pays"
    assert status_text(None, trying, SITUATION, WIDE).startswith(f"spec on · demo · {how} · ")


@pytest.mark.parametrize("width", range(1, 120))
def test_the_line_always_fits(width: int) -> None:
    for situation in (SITUATION, Situation("漢字" * 20, "loading", show_mode=True)):
        assert cell_len(status_text(folded(), GUESSING, situation, width)) <= width


def test_the_least_important_parts_go_first() -> None:
    narrow = status_text(folded(), GUESSING, SITUATION, 54)
    assert narrow == "draft ×4 · 30.0 tok/s · 3.00× plain · ctx 412/4096"
    assert status_text(folded(), GUESSING, SITUATION, 12) == "draft ×4"


REASON = "the draft model is right 41% of the time; a pass of 4 costs 3.1 plain ones"
PARKED = drafting_of(*[plain(" a", plan=f"auto → plain: {REASON}")] * 2)
# 20 tokens in a second
SLOW = (SHORT[2], *[timed(guessed(" a", " b", " c", accepted=1), 0.1)] * 10)


def test_at_100_columns_the_whole_reason_stands_beside_the_most_important_figures() -> None:
    text = status_text(folded(), PARKED, SITUATION, 100)
    assert f"spec off: {REASON}" in text
    short = drafting_of(*[plain(" a", plan="auto → plain: prose; a pass of 4 costs 3.1")] * 2)
    text = status_text(folded(), short, SITUATION, 100)
    assert text == (
        "spec off: prose; a pass of 4 costs 3.1 · 30.0 tok/s · 3.00× plain"
        " · 75% accepted · ctx 412/4096"
    )


def test_a_reason_is_cropped_only_as_far_as_is_needed() -> None:
    wide, narrow = (status_text(folded(), PARKED, SITUATION, width) for width in (80, 50))
    assert REASON[:40] in wide
    assert REASON[:18] in narrow
    assert "…" in narrow


@pytest.mark.parametrize(
    ("proposer", "tokens", "said"),
    [("auto", None, "auto"), ("ngram", None, "n-gram"), ("draft", 4, "draft model ×4")],
)
def test_before_the_first_round_it_says_what_was_asked_for(
    proposer: str, tokens: int | None, said: str
) -> None:
    situation = Situation(pair="demo", proposer=proposer, draft_tokens=tokens)
    assert status_text(None, Drafting(), situation, WIDE) == f"spec on · demo · {said}"


def test_no_guesses_a_round_is_the_same_as_off() -> None:
    situation = Situation(pair="demo", draft_tokens=0)
    assert status_text(None, GUESSING, situation, WIDE) == "spec off: you turned it off · demo"


def test_speculation_that_is_switched_off_within_an_answer_is_off_at_once() -> None:
    text = status_text(folded(), GUESSING, Situation(pair="demo", proposer="none"), WIDE)
    assert text.startswith("spec off: you turned it off · demo · ")


@pytest.mark.parametrize(
    ("exactness", "label"),
    [
        ("bit-exact: the same text to the bit, whatever is guessed", "bit-exact"),
        ("same up to rounding: wider passes change a score by at most 0.5", "same up to rounding"),
    ],
)
def test_how_exact_the_text_is_stands_there_in_a_word(exactness: str, label: str) -> None:
    parts = status_parts(None, Drafting(), Situation(pair="demo", exactness=exactness))
    assert label in [part.text for part in parts]


@pytest.mark.parametrize(
    ("proposer", "label"),
    [
        ("auto", "bit-exact"),
        ("draft", "bit-exact"),
        ("tree", "same up to rounding"),
        ("recycling", "same up to rounding"),
    ],
)
def test_a_way_to_guess_that_is_less_exact_than_the_others_says_so(
    proposer: str, label: str
) -> None:
    situation = Situation(
        pair="demo",
        exactness="bit-exact: the same text to the bit",
        inexact_with=("tree", "recycling"),
        proposer=proposer,
    )
    assert label in [part.text for part in status_parts(None, Drafting(), situation)]


def test_a_context_of_80_percent_is_a_warning_that_says_what_will_happen() -> None:
    def context(used: int) -> tuple[str, Tone]:
        part = status_parts(None, Drafting(), Situation(context_used=used, context=1000))[-1]
        return part.text, part.tone

    assert context(799) == ("context 799/1000", Tone.ASIDE)
    assert context(800) == ("context 80% full: at 100% the answer ends", Tone.WARNING)
    assert context(999) == ("context 99% full: at 100% the answer ends", Tone.WARNING)
    assert context(1000) == (
        "context full: answers end here; Ctrl+N starts a new chat",
        Tone.WARNING,
    )


def test_a_nearly_full_context_is_named_on_a_narrow_screen_too() -> None:
    situation = Situation(pair="demo", context_used=900, context=1000)
    assert "context 90% full" in status_text(folded(), GUESSING, situation, 50)


def test_a_ratio_below_one_is_a_warning_in_words() -> None:
    slow = folded(SLOW, plain_speed=40.0)
    assert costs(slow)
    wide = status_text(slow, GUESSING, SITUATION, WIDE)
    assert "0.50× plain (40.0): speculation costs you here" in wide
    assert "0.50× plain: it costs you" in status_text(slow, GUESSING, SITUATION, 60)
    assert not costs(folded(SLOW, plain_speed=20.0))


def test_what_rounds_with_guesses_take_besides_drafting_and_verifying_is_charged_too() -> None:
    halved = replace(guessed(" a", " b", " c", accepted=1), draft_s=0.01, verify_s=0.04)
    assert costs(folded((replace(halved, round_s=0.1),) * 10, plain_speed=40.0))
    assert not costs(folded((replace(halved, round_s=0.05),) * 10, plain_speed=40.0))


def test_a_plain_answer_costs_nothing_however_slow() -> None:
    assert not costs(folded((SHORT[2],) * 40, plain_speed=400.0))


def test_a_change_during_an_answer_says_from_when() -> None:
    assert show_mode_notice(True, answering=True) == (
        "show mode on, from the next round: drafting even where it does not pay"
    )
    assert show_mode_notice(False, answering=False) == "show mode off: drafting only where it pays"
    auto, ngram = Situation(), Situation(proposer="ngram", draft_tokens=8)
    assert speculation_notice(auto, answering=False) == "speculation auto, whatever pays"
    assert speculation_notice(ngram, answering=True) == "speculation n-gram ×8, from the next round"
    assert speculation_notice(Situation(proposer="none"), answering=False) == "speculation off"


def test_a_ratio_within_the_noise_of_what_was_measured_while_loading_is_no_cost() -> None:
    speed = folded(SLOW).tokens_per_second
    assert speed is not None
    assert not costs(folded(SLOW, plain_speed=speed / 0.93))
    assert costs(folded(SLOW, plain_speed=speed / 0.85))


def test_guesses_are_not_blamed_for_an_answer_that_is_slow_for_another_reason() -> None:
    stalled = [timed(plain(" a"), 1.0)] * 4
    slow = folded((*SLOW, *stalled), plain_speed=20.0)
    assert slow.speedup is not None
    assert slow.speedup < 0.9
    assert not costs(slow), "the guesses themselves broke even"
    assert costs(folded((*SLOW, *stalled), plain_speed=200.0)), "these did not"


def test_guesses_are_held_against_the_plain_rounds_of_the_same_answer() -> None:
    slower_than_ever = [timed(plain(" a"), 0.05)] * 40
    assert not costs(folded((*SLOW, *slower_than_ever), plain_speed=400.0))
    fast = [timed(plain(" a"), 0.01)] * 40
    assert costs(folded((*SLOW, *fast), plain_speed=10.0))


def test_a_few_guesses_that_cost_little_of_a_long_answer_are_not_worth_a_warning() -> None:
    def long(rounds: int) -> Stats:
        return folded((*SLOW, *[timed(plain(" a"), 0.025)] * rounds))

    assert costs(long(40)), "half a second of two"
    assert not costs(long(800)), "half a second of twenty"
