"""What a token is told with: the target's probabilities of its place, and the drafter's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from answer_trials import PLAIN, Told
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax
from trials import PROMPT, Copy, RandomTree, V, answer, ask, unfiltered

from edgespec.decoding.alternatives import considered
from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.events import Committed, Kind
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.errors import BackendFailed
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

WARM = unfiltered(seed=5)


def _tokens(told: Told) -> list[Committed]:
    return [token for round_ in told.rounds for token in round_.tokens]


def _asked(most: int, max_tokens: int = 40) -> Request:
    return replace(ask(WARM, max_tokens), alternatives=most)


def _check(told: Told, most: int) -> None:
    """Every token against the row of its place, worked out the slow way."""
    table, history = TableSession(V), list(PROMPT)
    for token in _tokens(told):
        p = log_softmax(table.row(history).astype(np.float64))
        best = np.argsort(-p, kind="stable")[:most]
        assert token.logprob == pytest.approx(p[token.token], abs=1e-6)
        assert [other.token for other in token.alternatives] == best.tolist()
        assert [other.logprob for other in token.alternatives] == pytest.approx(
            p[best].tolist(), abs=1e-6
        )
        history.append(token.token)


@pytest.mark.parametrize("most", [1, 4, V, 20])
@pytest.mark.parametrize(
    "proposer",
    [PLAIN, Copy(TableSession(V, noise=0.5), 4), RandomTree(TableSession(V), 7)],
    ids=["plain", "chain", "tree"],
)
def test_each_token_tells_what_the_target_thought_of_its_place(
    proposer: Proposer, most: int
) -> None:
    told = answer(TableSession(V), _asked(most), proposer)
    assert len(_tokens(told)) == 40
    assert proposer is PLAIN or 0 < told.accepted < told.drafted
    _check(told, most)


def test_what_is_thought_of_an_end_token_is_told_of_its_own_place() -> None:
    end = 4
    drafter = Copy(TableSession(V), 6)
    told = answer(TableSession(V), replace(_asked(3, 200), end_tokens={end}), drafter)
    last = _tokens(told)[-1]
    assert (last.token, last.kind) == (end, Kind.ACCEPTED), "a guess was cut into the last token"
    _check(told, 3)


def test_where_nothing_is_asked_nothing_is_told() -> None:
    told = answer(TableSession(V), _asked(0), SmallModel(TableSession(V, noise=0.5), V))
    assert {(token.logprob, token.alternatives) for token in _tokens(told)} == {(None, ())}
    assert {guess.probability for round_ in told.rounds for guess in round_.guesses} == {None}


def test_asking_for_alternatives_changes_no_token() -> None:
    drafter = Copy(TableSession(V, noise=0.5), 4)
    plain, told = (answer(TableSession(V), _asked(most), drafter) for most in (0, 5))
    assert plain.tokens == told.tokens


def test_a_guess_tells_how_sure_its_drafter_was() -> None:
    table = TableSession(V, noise=0.5)
    told = answer(TableSession(V), _asked(2), SmallModel(TableSession(V, noise=0.5), V))
    history, guesses = list(PROMPT), 0
    for round_ in told.rounds:
        line = list(history)
        for guess in round_.guesses:
            p = np.exp(log_softmax(table.row(line).astype(np.float64)))
            assert guess.probability == pytest.approx(p[guess.token], abs=1e-6)
            line.append(guess.token)
            guesses += 1
        history += [token.token for token in round_.tokens]
    assert guesses > 20


def test_guesses_behind_the_last_known_confidence_have_none() -> None:
    class HalfSure(Nothing):
        def propose(self, state: State, budget: Budget) -> Draft:
            return Draft.chain([1, 2, 3], "half", None, (0.5,)) if budget.nodes >= 3 else EMPTY

    told = answer(TableSession(V), _asked(1), HalfSure())
    assert [g.probability for g in told.rounds[1].guesses] == [0.5, None, None]
    cut = Draft.chain([1, 2, 3], "half", None, (0.5, 0.4)).cut(1)
    assert (cut.tokens, cut.confidence) == ([1], (0.5,))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 20_000),
    st.integers(1, 20),
    st.integers(0, 2**32 - 1),
    st.sampled_from([None, 0.0, 0.5]),
)
def test_the_best_of_any_row_are_those_of_a_full_sort(
    vocab: int, most: int, seed: int, grid: float | None
) -> None:
    """grid: scores are rounded to it, so that many are equal."""
    rng = np.random.default_rng(seed)
    row = (5 * rng.standard_normal(vocab)).astype(np.float32)
    if grid is not None:
        row = np.round(row * grid).astype(np.float32)
    token = int(rng.integers(vocab))
    logprob, best = considered(row, token, most)
    p = log_softmax(row.astype(np.float64))
    assert [other.token for other in best] == np.argsort(-row, kind="stable")[:most].tolist()
    assert logprob == pytest.approx(p[token], abs=1e-5)
    assert [other.logprob for other in best] == pytest.approx(
        [p[other.token] for other in best], abs=1e-5
    )


def test_tokens_that_are_ruled_out_have_no_probability() -> None:
    row = np.array([0.0, -np.inf, 1.0, -np.inf], dtype=np.float32)
    logprob, best = considered(row, 1, 4)
    assert logprob == -np.inf
    assert [other.token for other in best] == [2, 0, 1, 3]


def test_scores_that_are_no_numbers_are_a_fault_of_the_model() -> None:
    with pytest.raises(BackendFailed, match="its file may be damaged"):
        considered(np.full(8, np.nan, dtype=np.float32), 0, 3)
