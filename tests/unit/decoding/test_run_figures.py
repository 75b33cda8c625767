"""The figures of a run, on a trace written by hand, so that every formula has its number."""

from __future__ import annotations

from dataclasses import replace

import pytest
from answer_trials import PLAIN
from trials import Copy, V, answer, ask, events_of, unfiltered

from edgespec.decoding.events import Committed, Finished, Guess, Kind, PromptRead, Round, Stop
from edgespec.decoding.stats import SourceStats, Stats
from edgespec.testing import TableSession

YES, NO, UNTESTED = (True, True), (True, False), (False, False)


def _guess(parent: int, source: str, fate: tuple[bool, bool]) -> Guess:
    return Guess(0, parent, source, *fate)


def _round(n_tokens: int, guesses: tuple[Guess, ...], plan: str) -> Round:
    tokens = (Committed(0, Kind.PLAIN),) * n_tokens
    return Round(0, tokens, guesses, draft_s=0.25, verify_s=0.5, round_s=1.0, plan=plan)


PLAIN_ROUND = _round(1, (), "off: prose")
FATES = (YES, YES, NO, UNTESTED)
CHAIN = _round(3, tuple(_guess(n - 1, "ngram", fate) for n, fate in enumerate(FATES)), "")
#  root ─ 0 no, 1 yes ─ 3 yes, 4 no   and   0 ─ 2 untested
TREE = _round(
    3,
    (
        _guess(-1, "head", NO),
        _guess(-1, "head", YES),
        _guess(0, "head", UNTESTED),
        _guess(1, "ngram", YES),
        _guess(1, "head", NO),
    ),
    "tree of 5",
)


def _golden() -> Stats:
    stats = Stats(started_s=100.0, calibrated_plain_speed=2.0)
    trace = (
        (PromptRead(64, 90, 10, 0.5), 100.5),
        (PromptRead(89, 90, 10, 0.9), 100.9),
        (PLAIN_ROUND, 101.5),
        (CHAIN, 102.0),
        (TREE, 103.0),
        (Finished(Stop.END), 103.5),
    )
    for event, now in trace:
        stats = stats.after(event, now)
    return stats


def test_a_golden_trace_gives_the_figures_as_they_are_defined() -> None:
    assert _golden().as_dict() == {
        "prompt_tokens": 90,
        "reused_tokens": 10,
        "completion_tokens": 7,
        "drafted": 9,
        "tested": 5,  # places: three in the chain, two in the tree; siblings share one
        "accepted": 4,
        "acceptance_rate": pytest.approx(4 / 5),
        "rounds": 3,
        "tokens_per_round": pytest.approx(7 / 3),
        "tested_per_position": [2, 2, 1, 0],
        "accepted_per_position": [2, 2, 0, 0],
        "by_proposer": {
            "ngram": {"drafted": 5, "tested": 4, "accepted": 3},
            "head": {"drafted": 4, "tested": 3, "accepted": 1},
        },
        "time_to_first_token_s": pytest.approx(1.5),
        "tokens_per_second": pytest.approx(6 / 1.5),  # the first round's token is not counted
        "draft_s": pytest.approx(0.75),
        "verify_s": pytest.approx(1.5),
        "overhead_s": pytest.approx(0.75),
        "plain_tokens_per_second": 2.0,
        "speedup": pytest.approx(2.0),
        "parked_reason": None,
    }


def test_what_was_not_measured_is_none_and_never_a_guess() -> None:
    nothing = Stats(started_s=0.0).as_dict()
    unknown = ("acceptance_rate", "tokens_per_round", "time_to_first_token_s")
    unknown += ("tokens_per_second", "speedup", "plain_tokens_per_second")
    assert {name: nothing[name] for name in unknown} == dict.fromkeys(unknown)
    one = Stats(started_s=0.0, calibrated_plain_speed=2.0).after(PLAIN_ROUND, 1.0)
    assert (one.time_to_first_token_s, one.tokens_per_second, one.speedup) == (1.0, None, None)
    plain = replace(PLAIN_ROUND, draft_s=0.0)
    unmeasured = Stats(started_s=0.0).after(plain, 1.0).after(plain, 2.0)
    assert (unmeasured.tokens_per_second, unmeasured.speedup) == (1.0, 1.0), "all of it was plain"


def test_the_reason_for_a_plain_round_is_shown_until_something_is_drafted() -> None:
    stats = Stats(started_s=0.0).after(PLAIN_ROUND, 1.0)
    assert stats.as_dict()["parked_reason"] == "off: prose"
    assert stats.after(CHAIN, 2.0).as_dict()["parked_reason"] is None


def _of_plain_rounds(draft_s: float, *, guessed: bool) -> Stats:
    """Twenty rounds of 0.1 s, before one of which something was guessed and dropped."""
    dropped = replace(PLAIN_ROUND, draft_s=draft_s, verify_s=0.1, round_s=draft_s + 0.1)
    plain = replace(PLAIN_ROUND, draft_s=0.0, verify_s=0.1, round_s=0.1)
    stats = Stats(started_s=0.0, calibrated_plain_speed=3.0).after(plain, now := 0.0)
    for round_ in (dropped, *[plain] * 19, *[CHAIN] * guessed):
        stats = stats.after(round_, now := now + round_.round_s)
    return stats


@pytest.mark.parametrize("guessed", [False, True])
def test_time_for_guesses_that_were_dropped_is_no_part_of_plain_decoding(guessed: bool) -> None:
    stats = _of_plain_rounds(2.0, guessed=guessed)
    assert stats.plain_tokens_per_second == pytest.approx(10.0)
    assert stats.speedup is not None
    assert guessed or stats.speedup == pytest.approx(20 / 4 / 10), "what it cost is shown"


def test_where_nothing_was_guessed_plain_speed_is_the_answers_own() -> None:
    stats = _of_plain_rounds(0.0, guessed=False)
    assert stats.speedup == 1.0


def test_a_proposers_figures_grow_guess_by_guess() -> None:
    figures = SourceStats()
    for fate in (YES, NO, UNTESTED):
        figures = figures.plus(_guess(-1, "x", fate))
    assert figures == SourceStats(drafted=3, tested=2, accepted=1)


@pytest.mark.parametrize("length", [0, 4])
def test_the_figures_of_a_real_run_add_up(length: int) -> None:
    session, request = TableSession(V), ask(unfiltered(), 60)
    stats, now = Stats(started_s=0.0), 0.0
    for event in events_of(session, request, Copy(TableSession(V, noise=1.5), length)):
        now += 1.0
        stats = stats.after(event, now)
    told = answer(session, request, Copy(TableSession(V, noise=1.5), length))
    assert stats.completion_tokens == 60
    assert stats.rounds == len(told.rounds)
    assert (stats.drafted, stats.accepted) == (told.drafted, told.accepted)
    assert sum(stats.tested_at) == stats.tested
    assert sum(stats.accepted_at) == stats.accepted
    # a chain: every accepted guess was tested, and each round tests at most one wrong one
    assert stats.accepted <= stats.tested <= stats.accepted + stats.rounds
    assert stats.overhead_s >= 0
    if length:
        assert 0 < stats.accepted < stats.tested < stats.drafted
        assert stats.completion_tokens == stats.rounds + stats.accepted


def test_plain_decoding_speaks_one_token_a_round() -> None:
    stats = Stats(started_s=0.0)
    for event in events_of(TableSession(V), ask(unfiltered(), 5), PLAIN):
        stats = stats.after(event, 0.0)
    assert stats.tokens_per_round == 1.0
    assert stats.as_dict()["parked_reason"] == "off: speculation is switched off"
