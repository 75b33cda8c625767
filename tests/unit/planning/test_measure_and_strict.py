"""Measuring finds which widths round alike; strict sessions stay inside one such class."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from edgespec.decoding.draft import ROOT, Draft, Tokens
from edgespec.decoding.events import Finished, Round, Stop
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Scores
from edgespec.planning.measure import WIDTHS, Measurement, measure, plain_seconds
from edgespec.planning.strict import NarrowSession, StrictSession
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableScores, TableSession, check_session, read

V = 6
WIDEST = 65  # rows that a table session takes
AMPLE_S = 60.0  # a table never uses it up, so nothing is left out
PROMPT = [1, 2, 3, 4, 5, 0, 1, 2]


class Rounds(TableSession):
    """Scores differ by what `rounding` says of the width of the pass."""

    rounding: Callable[[int], float] = staticmethod(lambda width: 0.0)

    def verify(self, draft: Draft) -> TableScores:
        scores = super().verify(draft)
        error = np.float32(self.rounding(len(draft) + 1))
        return TableScores({node: row + error for node, row in scores.rows.items()})


def _session(rounding: Callable[[int], float] = lambda width: 0.0) -> Rounds:
    session = Rounds(V)
    session.rounding = rounding
    return session


def test_widths_that_round_alike_are_found() -> None:
    found = measure(_session(lambda width: 0.25 * (width >= 4)), PROMPT, within_s=AMPLE_S)
    assert found.classes == ((1, 2), (4, 8, 16, WIDEST))
    assert found.largest_difference == pytest.approx(0.25, abs=1e-5)
    assert not found.bit_exact


def test_a_session_that_rounds_alike_everywhere_is_exact() -> None:
    found = measure(_session(), PROMPT, within_s=AMPLE_S)
    assert found.classes == ((*WIDTHS, WIDEST),)
    assert found.bit_exact
    assert found.largest_difference == 0


def test_each_width_may_be_a_class_of_its_own() -> None:
    found = measure(_session(lambda width: 0.1 * width), PROMPT, within_s=AMPLE_S)
    assert found.classes == ((1,), (2,), (4,), (8,), (16,), (WIDEST,))


def test_the_widest_pass_is_compared_too() -> None:
    found = measure(_session(lambda width: 0.5 * (width >= 64)), PROMPT, within_s=AMPLE_S)
    assert found.classes == (WIDTHS, (WIDEST,))
    assert found.largest_difference == pytest.approx(0.5, abs=1e-5)
    assert not found.bit_exact


@pytest.mark.parametrize("length", [8, 50])
def test_where_little_fits_behind_the_text_passes_are_narrower(length: int) -> None:
    session = Rounds(V, context=70)
    found = measure(session, (PROMPT * 7)[:length], within_s=AMPLE_S)
    assert max(found.seconds) == min(WIDEST, 70 - length)


@pytest.mark.parametrize("context", range(16, 81))
@pytest.mark.parametrize("rows", [WIDEST, 5])
def test_however_short_the_context_is_measuring_stays_inside_it(context: int, rows: int) -> None:
    session = Rounds(V, context=context)
    session.caps = replace(session.caps, rows=rows)
    prompt = (PROMPT * 5)[: context // 2]
    found = measure(session, prompt, within_s=AMPLE_S)
    assert max(found.seconds) == min(rows, context - len(prompt))
    assert found.bit_exact


@pytest.mark.parametrize("context", [16, 17, 28, 31, 32, 80])
def test_strict_padding_leaves_half_of_a_short_context(context: int) -> None:
    found = Measurement(dict.fromkeys(WIDTHS, 1.0), (WIDTHS,), 0.0, context=48, sample=48)
    strict = StrictSession(TableSession(V, context=context), found.strict_widths(context))
    assert strict.caps.context > context // 2
    assert strict.caps.rows == (8 if context < 32 else 16)


def test_a_measurement_covers_widths_that_leave_no_gap() -> None:
    found = Measurement(dict.fromkeys((1, 2, 3, 5), 1.0), ((1, 2, 3, 5),), 0.0, 48, 48)
    assert found.covers(3)
    assert not found.covers(4)
    assert not found.covers(5)


def test_every_width_is_timed() -> None:
    found = measure(_session(), PROMPT, within_s=AMPLE_S)
    assert tuple(found.seconds) == (*WIDTHS, WIDEST)
    assert all(seconds > 0 for seconds in found.seconds.values())
    assert plain_seconds(_session(), PROMPT) > 0


@pytest.mark.parametrize(
    ("rollback", "rows", "widths"),
    [
        (None, 65, (*WIDTHS, 65)),
        (0, 65, (1,)),
        (3, 65, (1, 2, 4)),
        (None, 5, (1, 2, 4, 5)),
        (None, 20, (*WIDTHS, 20)),
    ],
)
def test_only_widths_that_the_session_takes_are_measured(
    rollback: int | None, rows: int, widths: tuple[int, ...]
) -> None:
    session = _session()
    session.caps = replace(session.caps, rollback=rollback, rows=rows)
    assert tuple(measure(session, PROMPT, within_s=AMPLE_S).seconds) == widths
    assert max(session.widths) == max(widths)


def test_a_measurement_survives_json() -> None:
    found = measure(_session(lambda width: 0.1 * (width > 2)), PROMPT, within_s=AMPLE_S)
    assert Measurement.from_json(json.loads(json.dumps(found.as_json()))) == found


def test_strict_widths_are_the_widest_class_that_is_not_too_dear() -> None:
    def strict(classes: tuple[tuple[int, ...], ...], t2: float, t4: float) -> tuple[int, ...]:
        seconds = {1: 1.0, 2: t2, 4: t4, 8: 3.0, 16: 5.0}
        return Measurement(seconds, classes, 0.1, context=48, sample=48).strict_widths()

    assert strict(((1,), (2, 4, 8, 16)), 1.4, 1.8) == (2, 4, 8, 16)
    assert strict(((1,), (2, 4, 8, 16)), 1.9, 2.2) == (2, 4, 8, 16)
    assert strict(((1,), (2, 4, 8, 16)), 2.6, 2.7) == (1,)
    assert strict(((1, 2), (4, 8, 16)), 1.4, 1.8) == (1, 2)
    assert strict(((1, 2), (4, 8, 16)), 1.4, 1.5) == (4, 8, 16)


@pytest.mark.parametrize("wide", [((*WIDTHS, WIDEST),), (WIDTHS, (WIDEST,))])
def test_nothing_is_padded_to_the_widest_pass_of_all(wide: tuple[tuple[int, ...], ...]) -> None:
    seconds = dict.fromkeys((*WIDTHS, WIDEST), 1.0)
    assert Measurement(seconds, wide, 0.1, context=48, sample=48).strict_widths() == WIDTHS


@pytest.mark.parametrize(("guesses", "width"), [(0, 2), (1, 2), (2, 4), (3, 4), (4, 8), (7, 8)])
def test_every_pass_has_a_width_of_the_class(guesses: int, width: int) -> None:
    inner = _session()
    strict = StrictSession(inner, (2, 4, 8))
    read(strict, PROMPT)
    strict.verify(Draft.chain([1] * guesses, "t"))
    assert inner.widths == [width]


@pytest.mark.parametrize("guesses", [0, 1, 2, 5])
def test_filler_changes_no_score_and_is_never_committed(guesses: int) -> None:
    inner, alone = _session(), _session()
    strict, draft = StrictSession(inner, (2, 4, 8)), Draft.chain([3, 1, 4, 1, 5][:guesses], "t")
    for session in (strict, alone):
        read(session, PROMPT)
    padded, plain = strict.verify(draft), alone.verify(draft)
    for node in range(ROOT, guesses):
        assert np.array_equal(padded.logits(node), plain.logits(node))
    for session in (strict, alone):
        session.commit(range(guesses), 2)
    assert inner.cache == alone.cache
    assert inner.pending == alone.pending == 2


class Truth(Nothing):
    """Guesses the answer it was told, up to `most` tokens at a time."""

    def __init__(self, truth: list[int], most: int = 4) -> None:
        self.truth, self.most = truth, most

    def propose(self, state: State, budget: Budget) -> Draft:
        length = min(state.index % (self.most + 1), budget.nodes)
        return Draft.chain(self.truth[state.index : state.index + length], "truth")


def _answer(session: object, proposer: Nothing, tokens: int = 40) -> tuple[list[int], Stop]:
    request = Request(np.array(PROMPT, np.int32), Sampling(0.9, seed=1, top_k=0), tokens)
    said: list[int] = []
    for event in speculate(session, request, proposer):  # type: ignore[arg-type]
        if isinstance(event, Round):
            said += [token.token for token in event.tokens]
        if isinstance(event, Finished):
            why = event.why
    return said, why


class RoundsOne(TableSession):
    """Not all scores are shifted alike but one, which changes what is said: in wider passes it is
    less, in plain ones more."""

    def verify(self, draft: Draft) -> TableScores:
        scores = super().verify(draft)
        assert isinstance(scores, TableScores)
        rows = {node: row.copy() for node, row in scores.rows.items()}
        for row in rows.values():
            row[0] += np.float32(-3.0 if draft else 3.0)
        return TableScores(rows)


def test_strict_text_is_the_same_where_loose_text_is_not() -> None:
    plain, _ = _answer(StrictSession(RoundsOne(V), (2, 4, 8)), Nothing())
    fast, _ = _answer(StrictSession(RoundsOne(V), (2, 4, 8)), Truth(plain))
    assert fast == plain
    loose, _ = _answer(RoundsOne(V), Nothing())
    guessed, _ = _answer(RoundsOne(V), Truth(loose))
    assert guessed != loose, "rounding of this size is heard, or the test would show nothing"


class RoundsBetween(RoundsOne):
    """Rounds alike at every width that is measured, and at no other."""

    def verify(self, draft: Draft) -> TableScores:
        measured = len(draft) + 1 in (*WIDTHS, WIDEST)
        return TableSession.verify(self, draft) if measured else super().verify(draft)


def test_strict_text_keeps_to_what_was_measured_however_much_is_guessed() -> None:
    found = measure(RoundsBetween(V), PROMPT, within_s=AMPLE_S)
    assert found.bit_exact

    def strict() -> StrictSession:
        return StrictSession(RoundsBetween(V), found.strict_widths())

    plain, _ = _answer(strict(), Nothing(), 200)
    assert _answer(strict(), Truth(plain, most=64), 200)[0] == plain
    loose, _ = _answer(RoundsBetween(V), Nothing(), 200)
    guessed, _ = _answer(RoundsBetween(V), Truth(loose, most=64), 200)
    assert guessed != loose, "rounding of this size is heard, or the test would show nothing"


@pytest.mark.parametrize("context", [30, 31, 37])
def test_padding_always_fits_before_the_context_ends(context: int) -> None:
    inner = TableSession(V, context=context)
    strict = StrictSession(inner, (2, 4, 8))
    assert strict.caps.context == context - 7
    plain = _answer(strict, Nothing(), 1000)
    assert (len(plain[0]), plain[1]) == (context - 7 - len(PROMPT), Stop.CONTEXT)
    assert _answer(strict, Truth(plain[0]), 1000) == plain
    assert max(inner.widths) <= 8


def test_strict_caps_keep_drafts_inside_the_class_and_without_siblings() -> None:
    caps = StrictSession(_session(), (1, 2)).caps
    assert (caps.rows, caps.tree) == (2, False)


def test_a_pass_of_two_that_is_cheaper_than_a_plain_one_is_not_believed() -> None:
    def measured(two: float) -> Measurement:
        return Measurement({1: 1.0, 2: two, 4: 2.0}, ((1, 2, 4),), 0.0, context=48, sample=48)

    assert measured(1.5).plausible
    assert measured(0.97).plausible
    assert not measured(0.8).plausible


class Slow(TableSession):
    """Passes take time on a clock of its own, whatever their width at least `pass_s`; the first of
    all takes `cold_s` more."""

    def __init__(
        self, token_s: float, cold_s: float, context: int = 4096, pass_s: float = 0.0
    ) -> None:
        super().__init__(V, context=context)
        self.token_s, self.cold_s, self.pass_s, self.now = token_s, cold_s, pass_s, 0.0

    def clock(self) -> float:
        return self.now

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        held = len(self.cache)
        for cached in super().prefill(tokens):
            self.now += self.token_s * max(0, cached - held) + self._warmed(cached)
            held = cached
            yield cached

    def verify(self, draft: Draft) -> Scores:
        self.now += self.pass_s + self.token_s * (len(draft) + 1)
        return super().verify(draft)

    def _warmed(self, cached: int) -> float:
        cold_s, self.cold_s = (self.cold_s, 0.0) if cached else (0.0, self.cold_s)
        return cold_s


@pytest.mark.parametrize(
    ("token_s", "cold_s", "used"),
    [(0.001, 0.0, 1000), (0.001, 9.0, 1000), (0.01, 9.0, 150), (1.0, 0.0, 48)],
)
def test_as_much_text_is_used_as_time_allows_and_the_first_pass_does_not_count(
    token_s: float, cold_s: float, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Slow(token_s, cold_s)
    monkeypatch.setattr("edgespec.planning.measure.perf_counter", session.clock)
    found = measure(session, PROMPT * 125, within_s=3.0)
    assert (found.context, found.sample) == (pytest.approx(used, abs=1), 1000)


def test_so_much_text_as_must_be_compared_is_read_however_long_that_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Slow(1.0, 0.0)
    monkeypatch.setattr("edgespec.planning.measure.perf_counter", session.clock)
    assert measure(session, PROMPT * 125, within_s=3.0, least=320).context == 320


def test_a_cache_that_cannot_go_back_reads_less_since_it_reads_anew_for_every_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Slow(0.001, 0.0)
    monkeypatch.setattr("edgespec.planning.measure.perf_counter", session.clock)
    session.caps = replace(session.caps, rollback=0)
    assert measure(session, PROMPT * 125, within_s=3.0).context < 250


class Waited:
    """What somebody hears of the wait, and how long it then is."""

    def __init__(self, session: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
        self.session, self.told, self.since = session, list[float](), 0.0
        monkeypatch.setattr("edgespec.planning.measure.perf_counter", session.clock)

    def hear(self, seconds: float) -> None:
        self.told.append(seconds)
        self.since = self.session.now

    def measured(self, least: int = 0) -> tuple[Measurement, float]:
        """What was found, and the seconds that it took since they were told."""
        found = measure(self.session, PROMPT * 125, within_s=3.0, least=least, expect=self.hear)
        return found, self.session.now - self.since


@pytest.mark.parametrize(("pass_s", "token_s"), [(0.3, 0.1), (0.1, 0.02), (1.0, 0.2)])
def test_where_passes_are_slow_the_dearest_is_left_out(
    pass_s: float, token_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, _ = Waited(Slow(token_s, 0.0, pass_s=pass_s), monkeypatch).measured()
    assert tuple(found.seconds) == WIDTHS == found.classes[0]
    assert not found.covers(WIDEST)


def test_where_there_is_time_for_it_the_dearest_pass_is_made_and_the_time_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Slow(0.002, 0.0, pass_s=0.01)
    found, seconds = Waited(session, monkeypatch).measured()
    assert tuple(found.seconds) == (*WIDTHS, WIDEST)
    assert seconds < 3.5


@pytest.mark.parametrize(("pass_s", "token_s"), [(0.3, 0.1), (0.05, 0.02), (1.0, 0.2)])
@pytest.mark.parametrize("least", [0, 320])
@pytest.mark.parametrize("cold_s", [0.0, 20.0])
def test_the_wait_that_is_told_is_about_the_wait_that_follows(
    pass_s: float, token_s: float, least: int, cold_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = Waited(Slow(token_s, cold_s, pass_s=pass_s), monkeypatch)
    _, seconds = waited.measured(least)
    (told,) = waited.told
    assert 0.6 * seconds < told < 1.6 * seconds


def test_the_time_that_measuring_is_meant_to_take_is_told_where_it_suffices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited = Waited(Slow(0.0001, 0.0), monkeypatch)
    waited.measured()
    assert waited.told == [3.0]


def test_a_narrow_session_takes_fewer_rows_and_changes_nothing_else() -> None:
    narrow = NarrowSession(_session(), 16)
    assert narrow.caps == replace(_session().caps, rows=16)
    assert NarrowSession(_session(), 99).caps == _session().caps
    check_session(lambda: NarrowSession(TableSession(V), 16))
