"""What one llama.cpp session does with prompts, guesses and the edges of its cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from llama_trials import (
    EXACT,
    Chains,
    Models,
    Oracle,
    Trees,
    answer,
    ask,
    assert_same_text,
    sampler,
    session,
    watch_calls,
    words,
)

from edgespec.backends import SessionOptions
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.events import Stop
from edgespec.decoding.loop import speculate
from edgespec.errors import BackendFailed, BadInput, CacheFull, OutOfMemory
from edgespec.testing import random_draft, read
from edgespec_llamacpp.session import LlamaSession

CHUNK = 128  # tokens of a prompt that one pass on a CPU reads
CLOSE = 1e-4


@pytest.fixture
def one(llama: Models) -> LlamaSession:
    return session(llama(layers=2))


@pytest.fixture
def fresh(llama: Models) -> Oracle:
    return Oracle(session(llama(layers=2)))


def _tokens(n: int, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, 384, n)]


def _row(target: LlamaSession) -> Row:
    return target.verify(EMPTY).logits(ROOT).copy()


def _same(a: Row, b: Row) -> bool:
    return float(np.abs(a - b).max()) < CLOSE


@pytest.mark.parametrize("length", [1, 2, 127, 128, 129, 130, 255, 256, 257, 258, 400])
def test_a_prompt_of_any_length_is_read_whole(llama: Models, length: int) -> None:
    model, tokens = llama(layers=2), _tokens(length)
    target = session(model, 512)
    steps = list(target.prefill(np.array(tokens, dtype=np.int32)))
    assert (steps[0], steps[-1]) == (0, length - 1)
    assert all(step % CHUNK == 0 for step in steps[:-1]), "so that reuse cuts it alike"
    assert all(0 < b - a <= CHUNK for a, b in pairwise(steps))
    stepwise = session(model, 512)
    read(stepwise, tokens[:1])
    for token in tokens[1:]:
        stepwise.verify(EMPTY)
        stepwise.commit((), token)
    assert _same(_row(target), _row(stepwise))


@pytest.mark.parametrize("length", [1, 9, 10, 137, 138, 300])
def test_a_lazy_session_lets_a_few_tokens_ride_with_the_next_pass(
    llama: Models, length: int
) -> None:
    model, tokens = llama(layers=2), _tokens(length)
    lazy, eager = model.session(replace(EXACT, context=512, lazy=True)), session(model, 512)
    steps = list(lazy.prefill(np.array(tokens, dtype=np.int32)))
    assert length - 1 - steps[-1] <= 8
    read(eager, tokens)
    for guesses in ([], [4, 5], [6]):
        draft = Draft.chain(guesses, "t")
        for target in (lazy, eager):
            target.verify(draft)
            target.commit(range(len(guesses) // 2), 7)
        assert _same(_row(lazy), _row(eager))
        assert read(lazy, [*tokens[: length // 2], 3, 3]) <= length
        read(lazy, tokens)
        read(eager, tokens)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The native calls that begin a pass or wait for its end, as they come."""
    told = list[str]()
    names = ("llama_decode", "llama_synchronize")
    watch_calls(monkeypatch, names, lambda name, _: told.append(name))
    return told


@pytest.mark.parametrize(
    ("length", "lazy", "passes"),
    [(300, False, 3), (137, False, 2), (2, False, 1), (300, True, 3), (137, True, 1), (9, True, 0)],
)
def test_a_chunk_of_a_prompt_is_over_when_that_is_told(
    llama: Models, calls: list[str], length: int, lazy: bool, passes: int
) -> None:
    """On a GPU a pass begins with one call and goes on behind it; what nobody waited for would be
    timed with the next pass."""
    target = llama(layers=2).session(replace(EXACT, context=512, lazy=lazy))
    calls.clear()
    for done, _ in enumerate(target.prefill(np.array(_tokens(length), dtype=np.int32))):
        assert calls == ["llama_decode", "llama_synchronize"] * done
    assert done == passes


def test_guesses_after_a_prompt_of_one_chunk_are_scored_right(llama: Models, fresh: Oracle) -> None:
    tokens, guesses = _tokens(128), _tokens(64, 1)
    target = session(llama(layers=2))
    read(target, tokens)
    scores = target.verify(Draft.chain(guesses, "t"))
    for node in (ROOT, 0, 31, 63):
        row = scores.logits(node).copy()
        assert _same(row, fresh.row([*tokens, *guesses[: node + 1]]))


def test_the_common_part_of_two_prompts_is_kept(one: LlamaSession, fresh: Oracle) -> None:
    first, second = _tokens(60), [*_tokens(60)[:40], *_tokens(20, 1)]
    read(one, first)
    one.verify(EMPTY)
    one.commit((), 3)
    assert read(one, second) == 40
    assert _same(_row(one), fresh.row(second))
    one.commit((), 4)
    assert read(one, second[:40]) == 39
    assert _same(_row(one), fresh.row(second[:40]))


def test_a_whole_answer_is_reused_by_the_prompt_that_continues_it(one: LlamaSession) -> None:
    request = ask(words(0), sampler(0.8, 0), max_tokens=40)
    told = answer(one, request, Chains([], 6, 0))
    longer = ask([*words(0), *told.tokens, 5, 6, 7], sampler(0.8, 0))
    assert answer(one, longer).reused == len(words(0)) + len(told.tokens) - 1


def test_a_prompt_that_was_given_up_midway_leaves_what_was_read(llama: Models) -> None:
    model, tokens = llama(layers=2), _tokens(400)
    target = session(model, 512)
    steps = target.prefill(np.array(tokens, dtype=np.int32))
    assert [next(steps), next(steps)] == [0, CHUNK]
    steps.close()
    assert read(target, tokens) == CHUNK
    fresh = session(model, 512)
    read(fresh, tokens)
    assert _same(_row(target), _row(fresh))


@pytest.mark.parametrize("kind", ["chain", "tree", "empty"])
def test_a_pass_that_nobody_commits_leaves_nothing(
    one: LlamaSession, fresh: Oracle, kind: str
) -> None:
    tokens, rng = _tokens(30), np.random.default_rng(0)
    drafts = {
        "chain": Draft.chain(_tokens(9, 2), "t"),
        "tree": random_draft(one, rng, 24),
        "empty": EMPTY,
    }
    read(one, tokens)
    before = _row(one)
    one.verify(drafts[kind])
    assert _same(_row(one), before), "verify() again"
    one.verify(drafts[kind])
    other = [*tokens[:20], *_tokens(6, 3)]
    read(one, other)
    assert _same(_row(one), fresh.row(other)), "another prompt"
    one.verify(drafts[kind])
    one.commit((), 8)
    assert _same(_row(one), fresh.row([*other, 8])), "and then a commit"


def test_listening_may_stop_at_any_event_and_the_session_stays_whole(
    one: LlamaSession, fresh: Oracle
) -> None:
    request = ask(words(1), sampler(0.8, 1), max_tokens=30)
    plain = answer(one, request).tokens
    for stop in range(1, 9):
        events = speculate(one, request, Trees(plain, 12, stop))
        for _ in range(stop):
            next(events)
        events.close()
        again = answer(one, request, Trees(plain, 12, stop))
        assert again.tokens == plain
    read(one, [*words(1), *plain])
    assert _same(_row(one), fresh.row([*words(1), *plain]))


def test_a_full_cache_is_said_before_the_pass(llama: Models) -> None:
    target = session(llama(layers=2), 256)
    read(target, _tokens(250))
    target.verify(Draft.chain(_tokens(6), "t"))
    with pytest.raises(CacheFull, match="does not fit"):
        target.verify(Draft.chain(_tokens(7), "t"))
    row = _row(target)
    fresh = session(llama(layers=2), 512)
    read(fresh, _tokens(250))
    assert _same(row, _row(fresh)), "a pass that did not fit leaves the session whole"


@pytest.mark.parametrize("length", [0, 5, 64])
def test_an_answer_ends_with_context_exactly_where_the_cache_does(
    llama: Models, length: int
) -> None:
    target = session(llama(layers=2), 256)
    request = ask(_tokens(200), sampler(0.8, 0), max_tokens=1000)
    plain = answer(target, request)
    told = answer(target, request, Chains(plain.tokens, length, 0))
    assert (plain.why, len(plain.tokens)) == (Stop.CONTEXT, 56)
    assert (told.why, told.tokens) == (Stop.CONTEXT, plain.tokens)
    assert told.accepted > 0 or not length


class Crowded(LlamaSession):
    """A cache that others share: it runs out before its context does."""

    cells = 60

    def verify(self, draft: Draft) -> object:  # type: ignore[override]
        if len(self._cached) + len(self._owed) + 1 + len(draft) > self.cells:
            raise CacheFull("Others hold the rest.")
        return super().verify(draft)


def test_a_draft_that_finds_no_room_is_dropped_and_the_text_goes_on(llama: Models) -> None:
    target = session(llama(layers=2))
    target.__class__ = Crowded
    request = ask(_tokens(30), sampler(0.8, 0), max_tokens=100)
    plain = answer(target, request)
    told = answer(target, request, Chains(plain.tokens, 16, 0))
    assert plain.why is Stop.CONTEXT
    assert (told.tokens, told.why) == (plain.tokens, Stop.CONTEXT)
    assert told.accepted > 0
    assert not told.rounds[-1].guesses


def test_a_prompt_as_long_as_the_context_is_refused(llama: Models) -> None:
    with pytest.raises(BadInput, match="256 tokens and the context holds 256"):
        answer(session(llama(layers=2), 256), ask(_tokens(256), sampler(0.8, 0)))
    told = answer(session(llama(layers=2), 256), ask(_tokens(255), sampler(0.8, 0)))
    assert (told.why, len(told.tokens)) == (Stop.CONTEXT, 1)


def test_two_sessions_of_one_model_do_not_touch_each_other(llama: Models) -> None:
    a, b = session(llama(layers=2)), session(llama(layers=2))
    requests = [ask(words(n), sampler(0.8, n), max_tokens=30) for n in (1, 2)]
    alone = [answer(session(llama(layers=2)), request).tokens for request in requests]
    runs = [
        speculate(target, request, Trees(truth, 10, 0))
        for target, request, truth in zip((a, b), requests, alone, strict=True)
    ]
    said: list[list[int]] = [[], []]
    going = True
    while going:  # a round of one, a round of the other
        going = False
        for n, run in enumerate(runs):
            event = next(run, None)
            going = going or event is not None
            said[n] += [t.token for t in getattr(event, "tokens", ())]
    assert said == alone


def test_the_most_guesses_that_a_pass_takes_are_64(one: LlamaSession, fresh: Oracle) -> None:
    assert one.caps.rows == 65
    tokens, guesses = _tokens(20), _tokens(64, 5)
    read(one, tokens)
    scores = one.verify(Draft.chain(guesses, "t"))
    assert _same(scores.logits(63).copy(), fresh.row([*tokens, *guesses]))
    one.commit(range(64), 7)
    assert _same(_row(one), fresh.row([*tokens, *guesses, 7]))


def _star(tokens: Sequence[int]) -> Draft:
    n = len(tokens)
    return Draft(tokens, (ROOT,) * n, ("star",) * n, (None,) * n)


@pytest.mark.parametrize("winner", [0, 1, 31, 63, None])
def test_64_leaves_are_told_apart_and_one_is_kept(
    one: LlamaSession, fresh: Oracle, winner: int | None
) -> None:
    tokens, guesses = _tokens(20), _tokens(64, 6)
    read(one, tokens)
    for _ in range(3):  # sequences of earlier trees must be free again
        scores = one.verify(_star(guesses))
        for node in (ROOT, 0, 30, 63):
            line = [guesses[node]] if node != ROOT else []
            assert _same(scores.logits(node).copy(), fresh.row([*tokens, *line]))
            scores = one.verify(_star(guesses))
        path = () if winner is None else (winner,)
        one.commit(path, 3)
        tokens += [*(guesses[node] for node in path), 3]
        assert _same(_row(one), fresh.row(tokens))
        one.verify(EMPTY)
        one.commit((), 4)
        tokens.append(4)


def test_a_deep_branch_wins_over_a_wide_one(one: LlamaSession, fresh: Oracle) -> None:
    draft = Draft((1, 2, 3, 4, 5, 6), (ROOT, ROOT, 1, 2, 2, 4), ("t",) * 6, (None,) * 6)
    tokens = _tokens(20)
    read(one, tokens)
    one.verify(draft)
    one.commit((1, 2, 4, 5), 9)
    assert _same(_row(one), fresh.row([*tokens, 2, 3, 5, 6, 9]))


def test_reset_forgets_everything(one: LlamaSession, fresh: Oracle) -> None:
    tokens = _tokens(40)
    read(one, tokens)
    one.verify(_star(_tokens(20, 1)))
    one.reset()
    assert read(one, tokens) == 0
    assert _same(_row(one), fresh.row(tokens))


def test_commit_without_verify_is_a_mistake_of_ours(one: LlamaSession) -> None:
    read(one, [1, 2])
    with pytest.raises(AssertionError, match="without a verify"):
        one.commit((), 1)


def test_scores_that_are_no_numbers_are_said_to_be_damage(one: LlamaSession) -> None:
    read(one, [1, 2])
    scores = one.verify(EMPTY)
    scores.logits(ROOT)[:] = np.nan
    with pytest.raises(BackendFailed, match="may be damaged"):
        scores.top(ROOT)


def test_a_cache_that_cannot_be_had_comes_with_the_native_reason(llama: Models) -> None:
    quantised = SessionOptions(256, 1, kv_type="q4_0", flash_attention="off")
    with pytest.raises(BadInput, match=r"(?i)flash.*Leave --kv-type and --flash-attention at"):
        llama(layers=2).session(quantised)
    uneven = SessionOptions(256, 1, kv_type="q8_0")
    with pytest.raises(BadInput, match=r"q8_0 with block size 32 does not divide"):
        llama(layers=2).session(uneven)


def test_a_cache_beyond_the_memory_is_told_as_such(llama: Models) -> None:
    endless = SessionOptions(2**31 - 256, 1, kv_type="f32")
    with pytest.raises(OutOfMemory, match=r"No cache of 2147483392 tokens.*shorter --context"):
        llama(layers=2, width=1024).session(endless)


def test_a_session_of_one_row_sets_no_memory_aside_for_more(llama: Models) -> None:
    """A drafter's scores come one row at a time."""
    model = llama(layers=2)
    narrow = model.session(replace(EXACT, rows=1, lazy=True))
    assert (narrow.caps.rows, narrow.caps.tree) == (1, False)
    wide = session(model)
    for target in (narrow, wide):
        read(target, list(range(40)))
    assert _same(_row(narrow), _row(wide))
    with pytest.raises(AssertionError, match="more rows than the session has"):
        narrow.verify(Draft.chain([1, 2], "test"))


def test_the_oracle_of_these_tests_is_the_plain_text(llama: Models, fresh: Oracle) -> None:
    """assert_same_text() finds a real difference, and excuses none."""
    request = ask(words(3), sampler(0.8, 3))
    plain = answer(session(llama(layers=2)), request)
    other = answer(session(llama(layers=2)), request)
    other.tokens[4] = (other.tokens[4] + 1) % 384
    with pytest.raises(AssertionError, match="texts part at token 4"):
        assert_same_text(other, plain, request, fresh)
