"""Trees from what the text says in several places, and from several proposers at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proposing import WARM, Remembers, asked, at, rule_of

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Proposer, UpTo
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.combine import LATER, Fixed, Merged, merged
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.growing import USUALLY
from edgespec.proposers.model_tree import ModelTree
from edgespec.proposers.ngram import SHORTEST_FIXED, NGram, SuffixIndex
from edgespec.proposers.ngram_tree import PLACES, NGramTree
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

V = 6
TEXTS = st.lists(st.integers(0, 4), min_size=3, max_size=80)


def paths(draft: Draft) -> dict[tuple[int, ...], int]:
    """Every node by the tokens from the root to it."""
    found: dict[tuple[int, ...], int] = {}
    lines = {ROOT: ()}
    for node, (token, parent) in enumerate(zip(draft.tokens, draft.parents, strict=True)):
        lines[node] = (*lines[parent], token)
        found[lines[node]] = node
    return found


def _tree_of(text: Sequence[int], nodes: int) -> Draft:
    proposer = NGramTree()
    proposer.begin(asked(text))
    return proposer.propose(at(text), UpTo(nodes))


def test_where_the_text_went_on_in_several_ways_each_is_guessed() -> None:
    draft = _tree_of([1, 2, 3, 9, 1, 2, 4, 8, 1, 2], 4)
    firsts = {draft.tokens[node]: draft.confidence[node] for node in draft.children(ROOT)}
    assert list(firsts) == [4, 3]
    assert firsts[4] > firsts[3]


def test_what_followed_more_often_is_the_surer_guess() -> None:
    draft = _tree_of([1, 2, 3, 1, 2, 3, 1, 2, 4, 0, 1, 2], 9)
    sure = {draft.tokens[node]: draft.confidence[node] for node in draft.children(ROOT)}
    assert sure[3] > sure[4]


def test_a_longer_match_speaks_before_more_shorter_ones() -> None:
    text = [7, 8, 1, 2, 5, *[1, 2, 4] * 2, 7, 8, 1, 2]
    draft = _tree_of(text, 6)
    sure = {draft.tokens[node]: draft.confidence[node] for node in draft.children(ROOT)}
    assert max(sure, key=lambda token: sure[token]) == 5


def test_a_text_that_goes_on_in_one_way_gives_the_chain() -> None:
    text = [1, 2, 3, 4, 5, 6, 0, 1, 2, 3]
    chain = NGram()
    chain.begin(asked(text))
    assert _tree_of(text, 4).is_chain
    assert _tree_of(text, 4).tokens == chain.propose(at(text), UpTo(4)).tokens


def test_under_rejection_there_is_a_chain_and_without_a_match_nothing() -> None:
    proposer = NGramTree()
    proposer.begin(asked([1, 2]))
    rejecting = at([1, 2, 3, 9, 1, 2, 4, 8, 1, 2], rule=rule_of(WARM, RuleName.REJECTION))
    assert proposer.propose(rejecting, UpTo(4)).is_chain
    assert not _tree_of([1, 2, 3], 4)


@given(TEXTS, st.integers(1, 40))
def test_a_tree_holds_each_path_once_and_only_what_the_text_says(text: list[int], n: int) -> None:
    draft = _tree_of(text, n)
    assert draft.fault(5) is None
    assert len(draft) <= n
    assert len(paths(draft)) == len(draft)
    assert all(0 < sure <= 1 for sure in draft.confidence)
    for path in paths(draft):
        if len(path) > 1:
            assert any(tuple(text[i : i + 2]) == path[:2] for i in range(len(text)))
    for node in (ROOT, *range(len(draft))):
        assert sum(draft.confidence[child] for child in draft.children(node)) < 1.0 + 1e-9


@given(TEXTS)
def test_all_matches_of_a_short_text_are_found_with_their_lengths(text: list[int]) -> None:
    end = len(text) - 1
    expected = {}
    for place in range(end):
        length = 0
        while length <= place and text[place - length] == text[end - length]:
            length += 1
        if length:
            expected[place] = length
    found = dict(SuffixIndex(text).matches())
    latest = sorted(expected)[-64:]
    assert {place: expected[place] for place in latest}.items() <= found.items()
    assert found.items() <= expected.items()


def test_a_round_looks_at_a_bounded_number_of_places_however_long_the_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = [1, 2, *[3, 1, 2] * 2000]
    asked_of = set[int]()
    real = SuffixIndex.what_follows

    def counted(self: SuffixIndex, place: int, most: int) -> list[int]:
        asked_of.add(place)
        return real(self, place, most)

    monkeypatch.setattr(SuffixIndex, "what_follows", counted)
    assert _tree_of(text, 30)
    assert len(asked_of) <= PLACES


def _random_tree(rng: np.random.Generator, source: str, nodes: int) -> Draft:
    tokens = rng.integers(0, 3, nodes).tolist()
    parents = [int(rng.integers(max(ROOT, n - 3), n)) for n in range(nodes)]
    sure = rng.random(nodes).tolist()
    if rng.random() < 0.5:
        sure = sure[: int(rng.integers(0, nodes + 1))]
    return Draft(tokens, parents, (source,) * nodes, (None,) * nodes, sure)


@given(st.integers(0, 2**32), st.integers(0, 12), st.integers(0, 12), st.integers(1, 30))
def test_a_joined_tree_holds_every_path_of_every_draft_once(
    seed: int, one: int, two: int, most: int
) -> None:
    rng = np.random.default_rng(seed)
    drafts = [_random_tree(rng, "one", one), _random_tree(rng, "two", two)]
    whole, cut = merged(drafts, one + two), merged(drafts, most)
    expected = {path for draft in drafts for path in paths(draft)}
    assert whole.fault(3) is None
    assert set(paths(whole)) == expected
    assert len(whole) == len(expected)
    assert cut.fault(3) is None
    assert len(cut) == min(most, len(expected))
    assert set(paths(cut)) <= expected
    for path, node in paths(whole).items():
        first = "one" if path in paths(drafts[0]) else "two"
        assert whole.source[node] == first


def test_of_a_joined_tree_the_likeliest_guesses_stay() -> None:
    sure = Draft.chain([1, 2, 3], "sure", confidence=[0.9, 0.9, 0.9])
    unsure = Draft.chain([4, 5], "unsure", confidence=[0.8, 0.2])
    assert merged([sure, unsure], 4).tokens == [1, 4, 2, 3]
    assert merged([unsure, sure], 1).tokens == [4]


def test_a_later_draft_shares_what_the_first_ones_guesses_leave_of_certainty() -> None:
    first = Draft.chain([1, 2], "first", confidence=[0.6, 0.5])
    second = Draft((1, 3), (ROOT, ROOT), ("second",) * 2, (None,) * 2, (0.5, 0.25))
    draft = merged([first, second], 9)
    sure = {path: draft.confidence[node] for path, node in paths(draft).items()}
    assert sure == pytest.approx(
        {
            (1,): 0.6 + 0.4 * LATER * 0.5,
            (3,): 0.4 * LATER * 0.25,
            (1, 2): 0.5,
        }
    )
    said = Draft.chain([1, 2], "ends early", confidence=[0.6])
    assert merged([said, EMPTY], 9).confidence == pytest.approx([0.6, USUALLY])
    assert merged([EMPTY, EMPTY], 4) == merged([], 4)
    assert not merged([EMPTY], 4)


def test_joined_proposers_all_hear_of_everything_and_take_turns_where_there_are_no_trees() -> None:
    first, second = Remembers("first", [], [1, 2]), Remembers("second", [3, 4], [1, 5])
    both = Merged(first, second)
    both.begin(asked([0]))
    chain = both.propose(at([0], rule=rule_of(WARM, RuleName.REJECTION)), UpTo(4))
    assert (chain.tokens, chain.is_chain) == ([3, 4], True)
    tree = both.propose(at([0]), UpTo(4))
    assert tree.tokens == [1, 2, 5]
    assert tree.source == ["first", "first", "second"]
    assert both.name == "first+second"
    assert both.plan == "plan of first; plan of second"
    both.end()
    assert first.heard == second.heard == ["begin", "end"]


def _rounds(target: TableSession, request: Request, proposer: Proposer) -> list[Round]:
    return [e for e in speculate(target, request, proposer) if isinstance(e, Round)]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text_whoever_grows_the_tree(temperature: float) -> None:
    accepted: dict[str, int] = {}
    drafted = 0
    for seed in range(16):
        sampling = Sampling(temperature, top_k=4, top_p=0.95, min_p=0.0, seed=seed)
        request = replace(asked([1, 2, 3, 1, 2], sampling=sampling), max_tokens=70)
        target = TableSession(V, seed)
        plain = [t.token for r in _rounds(target, request, Nothing()) for t in r.tokens]
        noisy = TableSession(V, seed, noise=1.5)
        drafters: dict[str, Proposer] = {
            "n-gram tree": NGramTree(),
            "merged": Merged(NGramTree(SHORTEST_FIXED), ModelTree(noisy, V)),
            "merged chains": Merged(NGram(), SmallModel(TableSession(V, seed, noise=3.0), V)),
        }
        for name, drafter in drafters.items():
            told = _rounds(target, request, Fixed(drafter, (3, 8, 30)[seed % 3]))
            assert [t.token for r in told for t in r.tokens] == plain, (name, seed)
            assert not [r.note for r in told if r.note]
            accepted[name] = accepted.get(name, 0) + sum(r.accepted for r in told)
            drafted += sum(len(r.guesses) for r in told)
    assert min(accepted.values()) > 100, accepted
    assert drafted > 2 * sum(accepted.values())


def test_on_text_that_repeats_in_several_ways_a_tree_is_right_more_often_than_a_chain() -> None:
    rng = np.random.default_rng(0)
    after, text = rng.integers(0, 30, (30, 2)), [0]
    for coin in rng.integers(0, 2, 700):
        text.append(int(after[text[-1], coin]))
    right = {}
    for name, proposer in {"tree": NGramTree(), "chain": NGram()}.items():
        proposer.begin(asked(text[:200]))
        place, rounds = 200, 0
        while place < len(text) - 40:
            found = paths(proposer.propose(at(text[:place]), UpTo(16)))
            took = 0
            while tuple(text[place : place + took + 1]) in found:
                took += 1
            place, rounds = place + took + 1, rounds + 1
        right[name] = (place - 200) / rounds
    assert right["tree"] > 1.15 * right["chain"], right
