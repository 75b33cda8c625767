"""Where an answer ends, and what the session holds then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from answer_trials import PLAIN, Told
from trials import PROMPT, Copy, Fixed, Script, V, answer, ask, events_of, unfiltered

from edgespec.decoding.draft import Draft
from edgespec.decoding.events import Finished, Kind, PromptRead, Round, Stop
from edgespec.decoding.loop import speculate
from edgespec.decoding.request import Reply, Request
from edgespec.errors import BadInput
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

WARM = unfiltered(seed=4)


@dataclass
class StopsAt:
    """Stops once `n` tokens of the answer have been seen; remembers what it was shown."""

    n: int
    shown: list[list[int]] = field(default_factory=list)

    def first_stop(self, tokens: Sequence[int]) -> int | None:
        before = sum(map(len, self.shown))
        self.shown.append(list(tokens))
        return self.n - before if before < self.n <= before + len(tokens) else None


class Ended(Nothing):
    """Counts how often it was begun and ended."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    def begin(self, request: Request) -> None:
        self.begun += 1

    def end(self) -> None:
        self.ended += 1


def _plain(max_tokens: int = 24) -> list[int]:
    return answer(TableSession(V), ask(WARM, max_tokens)).tokens


def _distinct() -> tuple[list[int], int]:
    """An answer's text, and a place in it whose token has not come before."""
    tokens = _plain()
    places = [n for n, token in enumerate(tokens) if token not in tokens[:n] and n > 1]
    return tokens, places[-1]


def _written(truth: Sequence[int], length: int = 16) -> Script:
    return Script(truth, length)


def test_an_end_token_inside_an_accepted_path_ends_the_text_there() -> None:
    truth, at = _distinct()
    session = TableSession(V)
    told = answer(session, replace(ask(WARM), end_tokens={truth[at]}), _written(truth))
    assert told.tokens == truth[: at + 1]
    assert told.why == Stop.END
    assert [*session.cache, session.pending] == [*PROMPT, *truth[: at + 1]]
    assert len(told.rounds) == 2
    last = told.rounds[-1]
    assert len(last.guesses) == 16
    assert last.tokens[-1].kind == Kind.ACCEPTED
    assert last.tokens[-1].source == "script"
    assert [g.accepted for g in last.guesses] == [True] * at + [False] * (16 - at)
    # the place after the end token was not reached
    assert [g.tested for g in last.guesses] == [True] * at + [False] * (16 - at)


def test_an_end_token_of_the_targets_own_ends_the_text_too() -> None:
    truth, at = _distinct()
    request = replace(ask(WARM), end_tokens={truth[at]})
    told = answer(TableSession(V), request, _written(truth, at - 1))
    assert (told.tokens, told.why) == (truth[: at + 1], Stop.END)
    assert told.rounds[-1].tokens[-1].kind == Kind.BONUS


@pytest.mark.parametrize("length", [0, 1, 3, 16])
@pytest.mark.parametrize("n", [1, 2, 7, 12])
def test_a_stop_sequence_cuts_where_it_says_and_wins_over_the_length_cap(
    length: int, n: int
) -> None:
    truth, stops = _plain(), StopsAt(n)
    request = replace(ask(WARM, max_tokens=max(n, 2)), stops=stops)
    told = answer(TableSession(V), request, _written(truth, length))
    assert (told.tokens, told.why) == (truth[:n], Stop.END)
    assert len(stops.shown) == len(told.rounds)


def test_the_earlier_of_end_token_and_stop_sequence_wins() -> None:
    truth, at = _distinct()
    request = replace(ask(WARM), end_tokens={truth[at]})
    for n in (at, at + 1, at + 2):
        told = answer(TableSession(V), replace(request, stops=StopsAt(n)), _written(truth))
        assert told.tokens == truth[: min(n, at + 1)]


def test_the_stop_check_is_not_shown_what_comes_after_an_end_token() -> None:
    truth, at = _distinct()
    stops = StopsAt(99)
    request = replace(ask(WARM), end_tokens={truth[at]}, stops=stops)
    answer(TableSession(V), request, _written(truth))
    assert [token for shown in stops.shown for token in shown] == truth[: at + 1]


@pytest.mark.parametrize("length", [0, 1, 3, 8, 16])
@pytest.mark.parametrize("cap", [1, 2, 3, 4, 5, 9, 17, 18])
def test_the_length_cap_is_reached_and_never_passed(cap: int, length: int) -> None:
    session = TableSession(V)
    told = answer(session, ask(WARM, cap), Copy(TableSession(V), length))
    assert (told.tokens, told.why) == (_plain(cap), Stop.LENGTH)
    for round_ in told.rounds:
        # no pass is wider than what may still be said
        assert len(round_.guesses) + 1 <= cap - round_.index
    if length == 16 and cap == 18:
        assert session.widths == [1, 17]


@pytest.mark.parametrize("length", [0, 1, 3, 16])
def test_a_full_context_ends_the_answer_with_nothing_shifted(length: int) -> None:
    session = TableSession(V, context=16)
    told = answer(session, ask(WARM, 100), Copy(TableSession(V), length))
    assert told.why == Stop.CONTEXT
    assert told.tokens == _plain(16 - len(PROMPT))
    assert len(session.cache) + 1 == 16


def test_the_length_cap_is_named_where_both_are_reached() -> None:
    told = answer(TableSession(V, context=16), ask(WARM, 16 - len(PROMPT)))
    assert told.why == Stop.LENGTH


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7, 16])
def test_a_full_cache_costs_first_the_draft_and_then_the_rest_of_the_answer(length: int) -> None:
    """The cache is smaller than the context, as where it is shared with others."""
    session = TableSession(V, cells=15)
    told = answer(session, ask(WARM, 100), Copy(TableSession(V), length))
    assert told.why == Stop.CONTEXT
    assert told.tokens == _plain(16 - len(PROMPT))
    assert len(session.cache) == 15
    assert not told.notes
    if length > 4:
        assert any(not round_.guesses for round_ in told.rounds[1:])


def test_a_draft_that_does_not_fit_is_told_as_a_plain_round() -> None:
    session = TableSession(V, cells=len(PROMPT) + 3)
    told = answer(session, ask(WARM, 100), Fixed(Draft.chain([0, 0, 0, 0], "fixed")))
    assert told.rounds[1].guesses == ()
    assert [t.kind for t in told.rounds[1].tokens] == [Kind.PLAIN]


def test_a_draft_is_no_longer_than_the_session_can_take_back() -> None:
    session = TableSession(V)
    session.caps = replace(session.caps, rollback=2)
    told = answer(session, ask(WARM), Copy(TableSession(V), 8))
    assert told.tokens == _plain()
    assert max(session.widths) == 3


def test_a_pass_is_no_wider_than_the_session_takes() -> None:
    session = TableSession(V)
    session.caps = replace(session.caps, rows=4)
    assert answer(session, ask(WARM), Copy(TableSession(V), 8)).tokens == _plain()
    assert max(session.widths) == 4


@pytest.mark.parametrize("listened", range(12))
def test_a_caller_may_stop_at_any_event_and_the_session_stays_whole(listened: int) -> None:
    session, proposer = TableSession(V), Ended()
    copy = Copy(TableSession(V, noise=1.5), 3)
    proposer.propose = copy.propose  # type: ignore[method-assign]
    request = ask(WARM, max_tokens=40, prompt=[1, 2, 3] * 30)
    said, stream = list[int](), events_of(session, request, proposer)
    for _, event in zip(range(listened + 1), stream, strict=False):
        if isinstance(event, Round):
            said += [token.token for token in event.tokens]
    stream.close()  # type: ignore[attr-defined]
    again = ask(WARM, 8, prompt=[*request.prompt, *said, 0])
    fresh = answer(TableSession(V), again).tokens
    assert answer(session, again, copy).tokens == fresh
    assert proposer.begun == proposer.ended == 1


def test_a_next_prompt_reads_only_what_is_new() -> None:
    session = TableSession(V)
    told = answer(session, ask(WARM), Copy(TableSession(V, noise=1.5), 3))
    longer = ask(WARM, 4, prompt=[*PROMPT, *told.tokens, 1, 2])
    first = next(iter(speculate(session, longer, PLAIN)))
    assert isinstance(first, PromptRead)
    assert first.reused == first.read == len(PROMPT) + len(told.tokens) - 1
    assert first.total == len(longer.prompt)


def test_what_cannot_work_is_refused_before_the_first_event() -> None:
    with pytest.raises(BadInput, match="empty"):
        ask(WARM, prompt=())
    with pytest.raises(BadInput, match="max_tokens is 0"):
        ask(WARM, max_tokens=0)
    with pytest.raises(BadInput, match="5 tokens and the context holds 5"):
        speculate(TableSession(V, context=5), ask(WARM), PLAIN)
    assert answer(TableSession(V, context=6), ask(WARM)).why == Stop.CONTEXT


def test_the_last_event_says_why_and_the_drafter_is_told_once() -> None:
    proposer = Ended()
    events = list(events_of(TableSession(V), ask(WARM, 3), proposer))
    assert events[-1] == Finished(Stop.LENGTH)
    assert sum(isinstance(event, Finished) for event in events) == 1
    assert proposer.begun == proposer.ended == 1


def _reply_key(request: Request) -> int:
    reply = request.seeded().reply
    assert reply is not None
    return reply.key


@pytest.mark.parametrize("cut", [1, 5, 11])
@pytest.mark.parametrize("length", [0, 3])
def test_a_cut_reply_goes_on_as_if_it_had_never_been_cut(cut: int, length: int) -> None:
    whole, copy = _plain(24), Copy(TableSession(V, noise=1.5), length)
    first = answer(TableSession(V), ask(WARM, cut), copy).tokens
    more = ask(WARM, 24 - cut, prompt=[*PROMPT, *first])
    kept = replace(more, reply=Reply(_reply_key(ask(WARM)), start=cut))
    assert first + answer(TableSession(V), kept, copy).tokens == whole
    assert first + answer(TableSession(V), more, copy).tokens != whole


def _branch(number: int) -> Told:
    reply = Reply(_reply_key(ask(WARM)), branch=number)
    return answer(TableSession(V), replace(ask(WARM), reply=reply))


def test_answers_differ_between_branches_and_seeds_and_not_between_runs() -> None:
    texts = [_branch(number).tokens for number in range(4)]
    texts += [answer(TableSession(V), ask(unfiltered(seed=s))).tokens for s in (5, 6)]
    assert len({tuple(text) for text in texts}) == 6
    assert _branch(0).tokens == _plain() == _plain()


def test_without_a_seed_every_answer_is_another_one() -> None:
    texts = {tuple(answer(TableSession(V), ask(unfiltered(seed=None))).tokens) for _ in range(3)}
    assert len(texts) == 3


def test_a_prompt_of_plain_integers_has_the_same_reply_key_as_an_array() -> None:
    listed = Request(list(PROMPT), WARM, 8)  # type: ignore[arg-type]
    assert _reply_key(listed) == _reply_key(ask(WARM))
    wide = Request(np.array(PROMPT, dtype=np.int64), WARM, 8)  # type: ignore[arg-type]
    assert answer(TableSession(V), wide).tokens == _plain(8)
