"""A drafter that knows some of the target's tokens guesses only those, and changes no text."""

from __future__ import annotations

import numpy as np
import pytest
from proposing import GREEDY, WARM, asked, at, rule_of

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import UpTo
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.trimmed import TrimmedSession
from edgespec.testing import TableSession, read

TARGET, KEPT = 8, np.array([0, 2, 3, 6], np.int32)
UNKNOWN = 4  # the drafter's ids: 0 to 3 for what is kept, 4 for the rest


def _trimmed(context: int = 512) -> TrimmedSession:
    return TrimmedSession(TableSession(5, seed=3, context=context), KEPT, UNKNOWN, TARGET)


def _own(tokens: list[int]) -> list[int]:
    return [KEPT.tolist().index(t) if t in KEPT else UNKNOWN for t in tokens]


def test_a_row_holds_the_drafters_scores_at_the_targets_ids() -> None:
    session, table = _trimmed(), TableSession(5, seed=3)
    read(session, [3, 1, 6])
    row = session.verify(EMPTY).logits(ROOT)
    expected = table.row(_own([3, 1, 6]))
    assert row[KEPT].tolist() == expected[: len(KEPT)].tolist()
    assert np.isneginf(np.delete(row, KEPT)).all()
    assert len(row) == session.caps.vocab == TARGET


def test_top_is_the_best_of_the_row_and_drafts_go_through_in_the_targets_ids() -> None:
    session, table = _trimmed(), TableSession(5, seed=3)
    read(session, [0, 2])
    draft = Draft([6, 5, 3], [-1, 0, 0], ("test",) * 3, (None,) * 3)
    scores = session.verify(draft)
    for node, line in ((-1, []), (0, [6]), (1, [6, 5]), (2, [6, 3])):
        row: Row = table.row(_own([0, 2, *line]))
        assert scores.top(node) == KEPT[row[: len(KEPT)].argmax()]
    session.commit((0, 2), 7)
    assert scores.top(ROOT) in KEPT
    row = session.verify(EMPTY).logits(ROOT)
    assert row[KEPT].tolist() == table.row(_own([0, 2, 6, 3, 7]))[: len(KEPT)].tolist()


@pytest.mark.parametrize("rule", RuleName)
@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_only_tokens_that_it_knows_are_guessed(sampling: Sampling, rule: RuleName) -> None:
    model, seen = SmallModel(_trimmed(), TARGET), set[int]()
    model.begin(asked([0]))
    for first in range(TARGET):
        for index in range(4):
            draft = model.propose(at([first, 1, 5], index, rule_of(sampling, rule)), UpTo(4))
            assert draft.fault(TARGET) is None
            seen |= set(draft.tokens)
    assert seen <= set(KEPT.tolist())
    assert len(seen) > 1


@pytest.mark.parametrize("rule", RuleName)
def test_a_guess_is_drawn_from_the_drafters_own_distribution(rule: RuleName) -> None:
    if rule is RuleName.COUPLED:
        draft = SmallModel(_trimmed(), TARGET).propose(at([1, 2], 3, rule_of(WARM)), UpTo(1))
        row = TableSession(5, seed=3).row(_own([1, 2]))
        spread = np.full(TARGET, -np.inf, np.float32)
        spread[KEPT] = row[: len(KEPT)]
        assert draft.tokens[0] == rule_of(WARM).guess(spread, [1, 2], 3).token
        return
    draft = SmallModel(_trimmed(), TARGET).propose(at([1, 2], 3, rule_of(WARM, rule)), UpTo(3))
    for q in draft.q:
        assert q is not None
        assert set(q.ids[q.p > 0].tolist()) <= set(KEPT.tolist())


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text(temperature: float) -> None:
    sampling = Sampling(temperature, top_k=0, top_p=1.0, min_p=0.0, seed=5)
    request = Request(np.array([1, 2, 3], np.int32), sampling, 60)
    told = []
    drafted = accepted = 0
    for proposer in (Nothing(), Fixed(SmallModel(_trimmed(), TARGET), 3)):
        rounds = [
            event
            for event in speculate(TableSession(TARGET, seed=0), request, proposer)
            if isinstance(event, Round)
        ]
        told.append([token.token for round_ in rounds for token in round_.tokens])
        drafted += sum(len(round_.guesses) for round_ in rounds)
        accepted += sum(round_.accepted for round_ in rounds)
    assert told[0] == told[1]
    assert 0 < accepted < drafted
