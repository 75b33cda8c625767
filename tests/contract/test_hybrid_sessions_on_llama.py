"""A model with a state beside its cache goes back over its latest pass alone, and reads the rest
anew: what llama.cpp keeps of older passes is never taken for the state it wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from answer_trials import never_vacuous
from llama_trials import (
    EXACT,
    Chains,
    Models,
    Oracle,
    Told,
    answer,
    ask,
    assert_same_text,
    sampler,
    session,
    words,
)

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.errors import BackendFailed
from edgespec.planning.measure import measure
from edgespec.proposers.draft_model import SmallModel
from edgespec.testing import ContractCheck, check_session, read
from edgespec_llamacpp.library import library
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.session import LlamaSession

CLOSE = 1e-4
SNAPSHOTS = 16


@pytest.fixture
def model(llama: Models) -> LlamaModel:
    return llama(hybrid=True)


@pytest.fixture
def used(model: LlamaModel) -> LlamaSession:
    return session(model)


def _tokens(n: int, seed: int = 0) -> list[int]:
    return [int(t) for t in np.random.default_rng(seed).integers(0, 384, n)]


def _row(target: LlamaSession) -> Row:
    return target.verify(EMPTY).logits(ROOT).copy()


def _is_new(target: LlamaSession, tokens: Sequence[int], model: LlamaModel) -> bool:
    """Whether it scores as a session does that never held anything but these tokens."""
    fresh = session(model)
    read(fresh, tokens)
    return float(np.abs(_row(target) - _row(fresh)).max()) < CLOSE


def _plain(target: LlamaSession, tokens: Sequence[int]) -> None:
    for token in tokens:
        target.verify(EMPTY)
        target.commit((), token)


def test_it_takes_back_as_many_guesses_as_there_are_states_and_no_trees(
    used: LlamaSession,
) -> None:
    assert (used.caps.tree, used.caps.rollback) == (False, SNAPSHOTS)


def test_it_keeps_the_contract_of_every_session(model: LlamaModel) -> None:
    check_session(lambda: session(model), ContractCheck(tolerance=CLOSE))


@pytest.mark.parametrize("plain", [1, 2, 8, 16, 17])
def test_a_prompt_that_comes_again_after_plain_tokens_is_read_anew(
    model: LlamaModel, used: LlamaSession, plain: int
) -> None:
    tokens = _tokens(30)
    read(used, tokens)
    _plain(used, _tokens(plain, 1))
    assert read(used, tokens) == 0
    assert _is_new(used, tokens, model)


@pytest.mark.parametrize("tail", [1, 5, 16, 17, 28])
def test_prompts_that_differ_at_their_end_are_told_apart(
    model: LlamaModel, used: LlamaSession, tail: int
) -> None:
    first, second = _tokens(30), [*_tokens(30)[: 30 - tail], *_tokens(tail, 1)]
    read(used, first)
    _plain(used, [3])
    read(used, second)
    assert _is_new(used, second, model)


def test_within_the_latest_pass_it_goes_back_without_reading_anew(
    model: LlamaModel, used: LlamaSession
) -> None:
    tokens = _tokens(30)
    read(used, tokens)
    shorter = tokens[:20]
    assert read(used, shorter) == 19
    assert _is_new(used, shorter, model)


def test_it_goes_back_once_only(model: LlamaModel, used: LlamaSession) -> None:
    tokens = _tokens(30)
    read(used, tokens)
    for length, reused in ((25, 24), (20, 0)):
        target = np.array(tokens[:length], dtype=np.int32)
        assert used.held(target) == reused
        assert read(used, tokens[:length]) == reused
    assert _is_new(used, tokens[:20], model)


@pytest.mark.parametrize("kept", [0, 1, 3, 7, 8])
def test_guesses_of_one_pass_are_taken_back_without_reading_anew(
    model: LlamaModel, used: LlamaSession, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens, guesses = _tokens(30), _tokens(8, 1)
    read(used, tokens)
    used.verify(Draft.chain(guesses, "t"))
    used.commit(range(kept), 5)
    with monkeypatch.context() as patched:
        patched.setattr(used, "_read_some", _nothing_is_read)
        row = _row(used)
    used.commit((), 6)
    text = [*tokens, *guesses[:kept], 5]
    assert _is_new(used, [*text, 6], model)
    fresh = session(model)
    read(fresh, text)
    assert np.abs(row - _row(fresh)).max() < CLOSE


def _nothing_is_read(_: list[int]) -> list[int]:
    raise AssertionError("the text was read anew")


@pytest.mark.parametrize("guesses", [0, 2, 15])
def test_a_verify_that_nobody_commits_leaves_nothing(
    model: LlamaModel, used: LlamaSession, guesses: int
) -> None:
    tokens, draft = _tokens(30), Draft.chain(_tokens(guesses, 1), "t")
    read(used, tokens)
    used.verify(draft)
    assert _is_new(used, tokens, model), "verify() again"
    used.verify(draft)
    read(used, tokens)
    assert _is_new(used, tokens, model), "the same prompt"
    used.verify(draft)
    read(used, [*tokens, 7])
    assert _is_new(used, [*tokens, 7], model), "a longer one"


@pytest.mark.parametrize("path", [(), (0,), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_guesses_of_two_passes_are_taken_back(
    model: LlamaModel, used: LlamaSession, path: tuple[int, ...]
) -> None:
    tokens, guesses = _tokens(30), _tokens(6, 1)
    read(used, tokens)
    whole = Draft.chain(guesses, "t")
    used.verify(whole.cut(4))
    scores = used.extend(whole)
    row = scores.logits(5).copy()
    used.commit(path, 5)
    assert np.array_equal(scores.logits(5), row), "the scores are there until the next pass"
    text = [*tokens, *guesses[: len(path)], 5]
    assert _is_new(used, text, model)
    used.commit((), 6)
    assert _is_new(used, [*text, 6], model)


def test_a_pass_that_failed_leaves_nothing(
    model: LlamaModel, used: LlamaSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """llama.cpp itself goes back over all rows of it then, to a state that it never wrote."""
    tokens, real = _tokens(30), library().llama_decode
    read(used, tokens)

    def fails(context: Any, batch: Any) -> int:
        real(context, batch)
        assert library().llama_memory_seq_rm(used._memory, 0, len(tokens) - 1, -1)
        return -3

    monkeypatch.setattr(library(), "llama_decode", fails)
    with pytest.raises(BackendFailed, match="code -3"):
        used.verify(Draft.chain(_tokens(3, 1), "t"))
    monkeypatch.setattr(library(), "llama_decode", real)
    assert _is_new(used, tokens, model)


def test_a_drafter_whose_guesses_are_rejected_guesses_on_from_the_text(model: LlamaModel) -> None:
    drafter, text = model.session(replace(EXACT, rows=17, lazy=True)), _tokens(30)
    for number in range(4):
        read(drafter, text)
        _plain(drafter, _tokens(4, number))
        text = [*text, *_tokens(1 + number, 100 + number)]
        held = drafter.held(np.array(text, dtype=np.int32))
        assert read(drafter, text) == held, "so that a plan knows what has to be read"
        assert _is_new(drafter, text, model)


def test_answers_with_guesses_are_the_plain_ones(llama: Models, model: LlamaModel) -> None:
    """Guesses by dice and by another hybrid model, prompt after prompt in one session."""
    used = session(model)
    small = llama(hybrid=True, noise=0.055).session(replace(EXACT, rows=17, lazy=True))
    drafter = SmallModel(small, used.caps.vocab)
    runs: dict[str, list[Told]] = {"chain": [], "draft": []}
    for seed in range(4):
        request = ask(words(seed), sampler(0.8, seed), max_tokens=30)
        plain = answer(session(model), request)
        for proposer in (Chains(plain.tokens, 8, seed), drafter):
            told = answer(used, request, proposer)
            assert_same_text(told, plain, request, Oracle(session(model)))
            runs[proposer.name].append(told)
    never_vacuous(runs)


def test_passes_of_all_widths_are_measured_behind_the_same_text(model: LlamaModel) -> None:
    measured = measure(session(model), _tokens(100), within_s=0.2)
    assert len(measured.seconds) > 3
    assert measured.largest_difference < CLOSE
