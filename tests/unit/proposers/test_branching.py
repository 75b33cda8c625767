"""A small model that notes what it held likely beside each guess."""

from __future__ import annotations

import numpy as np
import pytest
from proposing import GREEDY, WARM, at, rule_of

from edgespec.decoding.accept import Rule
from edgespec.decoding.proposer import UpTo
from edgespec.decoding.request import RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.model_tree import OTHERS, Branching
from edgespec.testing import TableSession

V = 12
TEXT = [1, 2, 3]


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_it_guesses_the_chain_that_the_model_alone_would_guess_and_makes_no_further_pass(
    sampling: Sampling,
) -> None:
    tables = TableSession(V, seed=3), TableSession(V, seed=3)
    state = at(TEXT, 7, rule_of(sampling))
    noting, alone = Branching(tables[0], V), SmallModel(tables[1], V)
    draft = noting.propose(state, UpTo(5))
    assert draft.tokens == alone.propose(state, UpTo(5)).tokens
    assert draft.is_chain
    assert tables[0].forwards == tables[1].forwards
    assert [len(others) for others in noting.others] == [OTHERS] * 5
    assert [list(others) for others in alone.others] == [[]] * 5


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_beside_each_guess_stand_the_next_likeliest_tokens_of_the_same_place(
    sampling: Sampling,
) -> None:
    table, judge = TableSession(V, seed=3), rule_of(sampling)
    model = Branching(table, V)
    draft = model.propose(at(TEXT, 7, judge), UpTo(4))
    for n, others in enumerate(model.others):
        row = table.row([*TEXT, *draft.tokens[:n]])
        first, *rest = judge.guesses(row, (), 7 + n, 1 + OTHERS)
        assert (first.token, first.confidence) == (draft.tokens[n], model.confidences[n])
        assert list(others) == rest
        assert first.confidence >= rest[0].confidence >= rest[-1].confidence
        assert first.confidence + sum(guess.confidence for guess in rest) <= 1 + 1e-9


def test_where_a_guess_is_drawn_at_random_nothing_is_noted_beside_it() -> None:
    rule: Rule = rule_of(WARM, RuleName.REJECTION)
    model = Branching(TableSession(V, seed=3), V)
    draft = model.propose(at(TEXT, 7, rule), UpTo(3))
    assert all(not others for others in model.others)
    assert all(q is not None and np.isclose(q.p.sum(), 1) for q in draft.q)
