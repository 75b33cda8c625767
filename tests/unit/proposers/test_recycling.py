"""Token recycling: what nearly followed a token is guessed when it is said again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from proposing import GREEDY, WARM, asked, at, rule_of

from edgespec.decoding.accept import Accepted, Coupled
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Outcome, Proposer, UpTo
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.combine import Fixed, Merged
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.recycling import PLACES, SUCCESSORS, Recycling, Successors
from edgespec.testing import TableScores, TableSession

V = 12


def _row(*best: int, vocab: int = V) -> Row:
    """Scores of which these tokens have the highest, one nat apart."""
    row = np.full(vocab, -20.0, dtype=np.float32)
    for place, token in enumerate(best):
        row[token] = -float(place)
    return row


def _taught(rows: dict[int, Row]) -> Recycling:
    proposer = Recycling()
    proposer.begin(asked([0]))
    for token, row in rows.items():
        proposer.memory.learn(token, row)
    return proposer


def test_the_table_takes_less_than_two_megabytes() -> None:
    assert sum(part.nbytes for part in vars(Successors()).values()) < 2_000_000


def test_the_eight_likeliest_successors_of_the_last_time_are_remembered_best_first() -> None:
    memory = Successors()
    memory.learn(3, _row(1, 2))
    memory.learn(3, _row(*range(10), vocab=40))
    known = memory.of(3)
    assert known is not None
    assert known[0].tolist() == list(range(SUCCESSORS))
    assert known[1].tolist() == [-float(n) for n in range(SUCCESSORS)]
    assert memory.of(4) is None


def test_a_vocabulary_of_fewer_tokens_is_remembered_whole() -> None:
    memory = Successors()
    memory.learn(1, _row(2, 0, 1, vocab=3))
    known = memory.of(1)
    assert known is not None
    assert known[0].tolist() == [2, 0, 1]


def test_tokens_that_share_a_place_are_told_apart_and_the_latest_is_remembered() -> None:
    memory, tokens = Successors(), range(4 * PLACES)
    for token in tokens:
        memory.learn(token, _row(token % V))
    remembered = [token for token in tokens if memory.of(token) is not None]
    assert 0.9 * PLACES < len(remembered) <= PLACES
    for token in remembered:
        known = memory.of(token)
        assert known is not None
        assert known[0][0] == token % V


def test_guesses_are_successors_of_successors_the_likeliest_first() -> None:
    proposer = _taught({0: _row(1, 2), 1: _row(3), 2: _row(4)})
    draft = proposer.propose(at([9, 0]), UpTo(4))
    assert draft.tokens[:2] == [1, 2]
    assert draft.tokens[draft.children(0)[0]] == 3
    assert draft.fault(V) is None
    assert proposer.plan == "recycling: a tree of 4"
    assert len(proposer.propose(at([9, 0]), UpTo(1))) == 1


def test_a_token_that_was_never_said_is_followed_by_nothing() -> None:
    proposer = _taught({0: _row(1)})
    assert proposer.propose(at([0, 5]), UpTo(4)) == EMPTY
    assert proposer.plan == "recycling: the last token was not said before"


def test_where_no_tree_can_be_judged_there_is_a_chain() -> None:
    proposer = _taught({0: _row(1, 2), 1: _row(3, 2), 3: _row(5, 6)})
    draft = proposer.propose(at([0], rule=rule_of(WARM, RuleName.REJECTION)), UpTo(3))
    assert draft.is_chain
    assert draft.tokens == [1, 3, 5]


def test_it_learns_from_committed_tokens_only() -> None:
    proposer = Recycling()
    proposer.begin(asked([7]))
    proposer.propose(at([7]), UpTo(4))
    draft = Draft((1, 2, 3, 4), (ROOT, ROOT, 1, 0), ("t",) * 4, (None,) * 4)
    rows = {ROOT: _row(2), 0: _row(9), 1: _row(3), 2: _row(8), 3: _row(9)}
    proposer.observe(Outcome(draft, Accepted((1, 2), 6), TableScores(rows), 0.0, 0.0))
    firsts = {token: proposer.memory.of(token) for token in range(V)}
    known = {token: found[0][0] for token, found in firsts.items() if found is not None}
    assert known == {7: 2, 2: 3, 3: 8}
    assert proposer.spent_s > 0


def test_the_noise_of_the_place_chooses_among_what_is_remembered() -> None:
    """As often as the target would, from the same scores: coupled, not merely likely."""
    row, right = _row(0, 1, 2, 3), 0
    flat = row / 4
    proposer = _taught({5: flat})
    judge = rule_of(WARM)
    for index in range(200):
        draft = proposer.propose(at([5], index, judge), UpTo(1))
        right += draft.tokens[0] == judge.guess(flat, (), index).token
    assert right > 170, "tokens beyond the eight are the others"


def test_shares_are_softmax_and_with_noise_each_token_has_the_largest_as_often_as_that() -> None:
    ids, scores = np.array([3, 5, 7], dtype=np.int32), np.array([0.0, -1.0, -2.0])
    weights = np.exp(scores)
    for rule in (rule_of(GREEDY), rule_of(WARM, RuleName.REJECTION)):
        assert rule.shares(ids, scores, 4) == pytest.approx(weights / weights.sum())
    warm = rule_of(WARM)
    assert isinstance(warm, Coupled)
    shares = np.array([warm.shares(ids, scores, index) for index in range(3000)])
    assert shares.sum(axis=1) == pytest.approx(1.0)
    largest = np.bincount(shares.argmax(axis=1), minlength=3) / 3000
    assert np.abs(largest - weights / weights.sum()).max() < 0.03


def _rounds(target: TableSession, request: Request, proposer: Proposer) -> list[Round]:
    return [e for e in speculate(target, request, proposer) if isinstance(e, Round)]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text(temperature: float) -> None:
    accepted = drafted = 0
    for seed in range(12):
        sampling = Sampling(temperature, top_k=4, top_p=0.95, min_p=0.0, seed=seed)
        request = replace(asked([1, 2, 3], sampling=sampling), max_tokens=70)
        target = TableSession(V, seed)
        plain = [t.token for r in _rounds(target, request, Nothing()) for t in r.tokens]
        for drafter in (Recycling(), Merged(NGramTree(), Recycling())):
            told = _rounds(target, request, Fixed(drafter, (2, 8, 24)[seed % 3]))
            assert [t.token for r in told for t in r.tokens] == plain
            assert not [r.note for r in told if r.note]
            accepted += sum(r.accepted for r in told)
            drafted += sum(len(r.guesses) for r in told)
    assert 100 < accepted < drafted


def test_what_was_learned_goes_on_in_a_conversation_and_ends_with_it() -> None:
    proposer, keeping = Recycling(), Recycling(keeps=True)
    for each in (proposer, keeping):
        each.begin(asked([1, 2]))
        each.memory.learn(2, _row(5))
        each.begin(asked([1, 2, 5, 7, 3]))
        assert each.memory.of(2) is not None
        each.begin(asked([1, 4]))
    assert proposer.memory.of(2) is None
    assert keeping.memory.of(2) is not None


def test_after_a_long_conversation_another_one_is_guessed_as_after_a_fresh_start() -> None:
    used, target = Recycling(), TableSession(V, 1)
    first = replace(asked([7, 8], sampling=WARM), max_tokens=400)
    second = replace(asked([1, 2, 3], sampling=WARM), max_tokens=60)
    assert sum(r.accepted for r in _rounds(target, first, Fixed(used, 6))) > 30
    told = _rounds(target, second, Fixed(used, 6))
    fresh = _rounds(target, second, Fixed(Recycling(), 6))
    assert [r.guesses for r in told] == [r.guesses for r in fresh]


def test_a_conversation_before_changes_guesses_and_never_the_text() -> None:
    used, target = Recycling(keeps=True), TableSession(V, 1)
    for seed in range(3):
        request = replace(asked([1, 2, seed], sampling=replace(WARM, seed=seed)), max_tokens=50)
        plain = [t.token for r in _rounds(target, request, Nothing()) for t in r.tokens]
        told = _rounds(target, request, Fixed(used, 6))
        assert [t.token for r in told for t in r.tokens] == plain
