"""A small model's tree: the likeliest guesses, none computed twice, and the text untouched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proposing import GREEDY, WARM, asked, at, outcome, rule_of

from edgespec.decoding.accept import Accepted, Coupled
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import Outcome, Proposer, UpTo
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Scores
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import TRAINED_HOPE, SmallModel
from edgespec.proposers.growing import GrowingTree, renumbered
from edgespec.proposers.model_tree import ModelTree, Reach
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableScores, TableSession

V = 6
NOISY = 1.5
RARE = 0.005


def _model(reach: Reach | None = None, noise: float = 0.0, seed: int = 3) -> ModelTree:
    return ModelTree(TableSession(V, seed=seed, noise=noise), V, reach=reach)


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60))
def test_the_likeliest_nodes_are_a_tree_that_is_as_likely_as_any_of_its_size(
    seed: int, size: int, most: int
) -> None:
    rng, tree = np.random.default_rng(seed), GrowingTree()
    for node in range(size):
        tree.add(int(rng.integers(ROOT, node)), node, float(rng.choice([0.1, 0.5, 0.9, 1.0])))
    chosen = tree.best(most)
    assert all(tree.parents[node] in (ROOT, *chosen[:n]) for n, node in enumerate(chosen))
    left = [tree.chance[node] for node in range(size) if node not in chosen]
    assert not left or min(tree.chance[node] for node in chosen) >= max(left)
    draft = tree.draft(most, "t")
    assert draft.fault(size) is None
    assert [tree.line(node) for node in sorted(chosen)] == [
        _line(draft, node) for node in range(len(draft))
    ]


def _line(draft: Draft, node: int) -> list[int]:
    line = []
    while node != ROOT:
        line.append(draft.tokens[node])
        node = draft.parents[node]
    return line[::-1]


def test_nodes_are_numbered_anew_by_their_places() -> None:
    assert renumbered([0, 3, 4], [ROOT, 0, 0, 0, 3]) == [ROOT, 0, 1]


@pytest.mark.parametrize("sampling", [GREEDY, WARM, Sampling(0.7, top_k=4, seed=0)], ids=str)
def test_guesses_for_one_place_are_those_that_the_rule_would_choose_one_after_the_other(
    sampling: Sampling,
) -> None:
    judge, row = rule_of(sampling), TableSession(40, seed=1).row([1, 2, 3])
    assert isinstance(judge, Coupled)
    guesses = judge.guesses(row, (), 5, 4)
    assert guesses[0].token == judge.guess(row, (), 5).token
    assert 0.99 < sum(guess.confidence for guess in judge.guesses(row, (), 5, 40)) < 1.01
    sure = [guess.confidence for guess in guesses]
    assert sure == sorted(sure, reverse=True)
    left = row.copy()
    for guess in guesses:
        if sampling.greedy or not sampling.filters:
            assert judge.guess(left, (), 5).token == guess.token
        left[guess.token] = -1e9
    if not sampling.greedy and sampling.filters:
        kept = sampling.support(sampling.tempered(row)).ids.tolist()
        assert {guess.token for guess in guesses} <= set(kept)


def test_of_a_place_without_siblings_there_is_one_guess() -> None:
    judge, row = rule_of(WARM, RuleName.REJECTION), TableSession(40, seed=1).row([1, 2, 3])
    (only,) = judge.guesses(row, (), 5, 4)
    assert only.token == judge.guess(row, (), 5).token
    assert only.q is not None


def test_the_share_of_a_guess_is_how_often_a_noisy_copy_takes_it() -> None:
    """What a tree is built on: sums of confidences are numbers of right guesses."""
    clean, noisy = TableSession(12, seed=1), TableSession(12, seed=1, noise=1.0)
    promised, right = np.zeros(3), np.zeros(3)
    for place in range(1500):
        judge = Coupled(WARM, Noise(0, place))
        history = np.random.default_rng(place).integers(0, 12, 3).tolist()
        told = judge.guess(clean.row(history), (), 0).token
        for n, guess in enumerate(judge.guesses(noisy.row(history), (), 0, 3)):
            promised[n] += guess.confidence
            right[n] += guess.token == told
    assert np.abs(promised - right).max() < 0.08 * 1500


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
@pytest.mark.parametrize("nodes", [2, 5, 16])
def test_a_tree_holds_the_likeliest_guesses_of_all_that_could_be_made(
    sampling: Sampling, nodes: int
) -> None:
    judge, table, text = rule_of(sampling), TableSession(V, seed=3), [1, 2, 3, 4]
    everything = GrowingTree()
    behind = [ROOT]
    while behind:
        likely = (node for node in behind if node == ROOT or everything.chance[node] > RARE)
        lines = {node: everything.line(node) for node in likely}
        behind = [
            everything.add(node, guess.token, guess.confidence)
            for node, line in lines.items()
            for guess in judge.guesses(table.row([*text, *line]), (), 7 + len(line), 4)
        ]
    draft = _model(Reach(passes=50)).propose(at(text, 7, judge), UpTo(nodes))
    best = {tuple(everything.line(node)) for node in everything.best(nodes)}
    assert everything.chance[everything.best(nodes)[-1]] > RARE
    assert {tuple(_line(draft, node)) for node in range(len(draft))} == best


def test_no_node_is_computed_twice_and_few_passes_are_made() -> None:
    table = TableSession(V, seed=3, noise=NOISY)
    model = ModelTree(table, V, reach=Reach(passes=4, wide=3))
    draft = model.propose(at([1, 2, 3]), UpTo(12))
    assert len(draft) == 12
    assert not draft.is_chain
    assert table.forwards == model.timing.guesses == 4
    assert table.widths[0] == 1
    assert max(table.widths) <= 3
    assert model.plan == "draft model: a tree of 12"


def test_what_was_right_is_not_read_again() -> None:
    table = TableSession(V, seed=3)
    model, text = ModelTree(table, V), [1, 2, 3]
    model.begin(asked(text))
    draft = model.propose(at(text), UpTo(8))
    path = [0]
    while children := draft.children(path[-1]):
        path.append(children[0])
    accepted = Accepted(tuple(path), 5)
    model.observe(Outcome(draft, accepted, TableScores({}), 0.0, 0.0))
    text += accepted.tokens(draft)
    model.propose(at(text, len(path) + 1), UpTo(8))
    assert model.timing.read_tokens <= 2
    assert table.cache == text[:-1]


def test_a_draft_that_was_not_used_is_taken_back() -> None:
    used, fresh = _model(), _model()
    text = [1, 2, 3]
    used.propose(at(text), UpTo(8))
    used.observe(outcome(EMPTY, Accepted((), 4)))
    assert used.propose(at([*text, 4], 1), UpTo(8)) == fresh.propose(at([*text, 4], 1), UpTo(8))
    used.propose(at([*text, 4], 1), UpTo(8))  # and the answer is given up
    used.begin(asked([2, 2]))
    assert used.propose(at([2, 2]), UpTo(8)) == fresh.propose(at([2, 2]), UpTo(8))


def test_where_no_tree_can_be_judged_it_draws_a_chain() -> None:
    chain = SmallModel(TableSession(V, seed=3), V)
    state = at([1, 2, 3], rule=rule_of(WARM, RuleName.REJECTION))
    draft, same = _model().propose(state, UpTo(5)), chain.propose(state, UpTo(5))
    assert draft.is_chain
    assert draft.tokens == same.tokens
    table = TableSession(V, seed=3)
    table.caps = replace(table.caps, tree=False)
    assert ModelTree(table, V).propose(at([1, 2, 3]), UpTo(5)).is_chain


class Leafless(TableSession):
    """Cannot grow."""

    def extend(self, grown: Draft) -> Scores:
        raise ValueError("no growth here")


def _events(target: TableSession, request: Request, proposer: Proposer) -> Iterator[Round]:
    return (e for e in speculate(target, request, proposer) if isinstance(e, Round))


def test_a_model_that_cannot_grow_costs_its_drafts_and_is_named() -> None:
    request = replace(asked([1, 2, 3], sampling=WARM), max_tokens=20)
    plain = [t.token for r in _events(TableSession(V), request, Nothing()) for t in r.tokens]
    rounds = list(_events(TableSession(V), request, Fixed(ModelTree(Leafless(V), V), 6)))
    assert [t.token for r in rounds for t in r.tokens] == plain
    assert [r.note for r in rounds if r.note] == [
        "drafter 'draft' is off for this answer: ValueError: no growth here"
    ]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text_and_a_tree_is_right_more_often_than_a_chain(
    temperature: float,
) -> None:
    rounds = {"tree": 0, "chain": 0}
    for seed in range(20):
        sampling = replace(WARM, temperature=temperature, seed=seed)
        request = replace(asked([1, 2, 3, 1], sampling=sampling), max_tokens=60)
        target = TableSession(V, seed)
        plain = [t.token for r in _events(target, request, Nothing()) for t in r.tokens]
        noisy = TableSession(V, seed, noise=NOISY)
        makers = {"tree": ModelTree(noisy, V), "chain": SmallModel(noisy, V)}
        for name, model in makers.items():
            told = list(_events(target, request, Fixed(model, 8)))
            assert [t.token for r in told for t in r.tokens] == plain
            assert not [r.note for r in told if r.note]
            assert sum(len(r.guesses) for r in told) > sum(r.accepted for r in told) > 0
            rounds[name] += len(told)
    assert rounds["tree"] < 0.95 * rounds["chain"]


def test_ids_that_the_target_does_not_know_are_not_in_the_tree() -> None:
    model = ModelTree(TableSession(V, seed=3), 3)
    draft = model.propose(at([1, 2, 1], rule=rule_of(WARM)), UpTo(12))
    assert len(draft) == 12
    assert max(draft.tokens) < 3


def test_a_trained_drafters_tree_hopes_no_more_than_its_chain() -> None:
    assert ModelTree(TableSession(V), V, TRAINED_HOPE).hope == TRAINED_HOPE
