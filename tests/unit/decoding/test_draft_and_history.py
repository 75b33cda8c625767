"""Drafts, supports, histories and the table that the other tests stand on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgespec.decoding.accept import Accepted
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Support, Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.testing import ContractCheck, TableSession, check_session

TREE = Draft((5, 6, 7, 8), (ROOT, ROOT, 0, 2), ("a",) * 4, (None,) * 4)


def test_a_chain_is_a_tree_with_one_child_per_node() -> None:
    chain = Draft.chain([5, 6, 7], "ngram")
    assert list(chain.parents) == [ROOT, 0, 1]
    assert chain.is_chain
    assert EMPTY.is_chain
    assert not TREE.is_chain
    assert chain.fault(8) is None


def test_children_and_depths_follow_the_parents() -> None:
    assert TREE.children(ROOT) == [0, 1]
    assert TREE.children(0) == [2]
    assert TREE.children(3) == []
    assert TREE.depths() == [1, 1, 2, 3]


@pytest.mark.parametrize(
    ("told", "path"), [((), []), ((5, 7, 8), [0, 2, 3]), ((5, 8), [0]), ((6, 7), [1]), ((7,), [])]
)
def test_a_draft_says_a_text_up_to_its_first_wrong_guess(
    told: tuple[int, ...], path: list[int]
) -> None:
    assert TREE.saying(told) == path


@pytest.mark.parametrize("n", range(6))
def test_a_cut_draft_is_still_a_tree(n: int) -> None:
    cut = TREE.cut(n)
    assert len(cut) == min(n, 4)
    assert cut.fault(9) is None
    assert list(cut.tokens) == [5, 6, 7, 8][:n]


def test_a_path_kept_short_ends_with_a_guess_as_the_next_token() -> None:
    accepted = Accepted((0, 2, 3), 9)
    assert accepted.tokens(TREE) == [5, 7, 8, 9]
    assert accepted.keep(4, TREE) is accepted
    assert accepted.keep(2, TREE) == Accepted((0,), 7, cut_at=2)
    for n in range(1, 5):
        assert accepted.keep(n, TREE).tokens(TREE) == [5, 7, 8, 9][:n]


def test_a_token_that_was_filtered_out_has_no_probability() -> None:
    support = Support(np.array([2, 5, 9], dtype=np.int32), np.array([0.5, 0.3, 0.2]))
    assert [support.of(token) for token in (0, 2, 3, 5, 9, 10)] == [0, 0.5, 0, 0.3, 0.2, 0]


steps = st.lists(st.lists(st.integers(0, 9), max_size=300) | st.integers(0, 500), max_size=12)


@given(start=st.lists(st.integers(0, 9), max_size=300), steps=steps)
def test_a_history_is_the_list_of_what_was_appended(
    start: list[int], steps: list[list[int] | int]
) -> None:
    history, expected = TokenHistory(start), list(start)
    for step in steps:
        if isinstance(step, int):
            history.truncate(step)
            del expected[step:]
        else:
            history.extend(step)
            expected += step
        assert history.array.tolist() == expected
        assert len(history) == len(expected)
    assert history.array.dtype == np.int32


def test_a_view_of_a_history_does_not_change_and_cannot_be_written_to() -> None:
    history = TokenHistory([1, 2])
    view = history.array
    history.extend(range(1000))
    assert view.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 9


@given(
    same=st.lists(st.integers(0, 3)), a=st.lists(st.integers(0, 3)), b=st.lists(st.integers(0, 3))
)
def test_the_common_prefix_is_found_token_by_token(
    same: list[int], a: list[int], b: list[int]
) -> None:
    left, right = [*same, *a], [*same, *b]
    n = 0
    while n < min(len(left), len(right)) and left[n] == right[n]:
        n += 1
    assert common_prefix(np.array(left, np.int32), np.array(right, np.int32)) == n


def test_the_table_session_keeps_the_contract_of_a_session() -> None:
    check_session(lambda: TableSession(6))


class KeepsARejectedGuess(TableSession):
    def commit(self, path: Sequence[int], next_token: int) -> None:
        rejected = [n for n in range(len(self._draft)) if n not in path][:1]
        TableSession.commit(self, [*path, *rejected], next_token)


class ForgetsTheLastOfThePath(TableSession):
    def commit(self, path: Sequence[int], next_token: int) -> None:
        TableSession.commit(self, path[:-1], next_token)


class ReusesWithoutComparing(TableSession):
    def prefill(self, tokens: Tokens) -> Iterator[int]:
        stale = self.cache[: len(tokens) - 1]
        for step in TableSession.prefill(self, tokens):
            self.cache[: len(stale)] = stale[: len(self.cache)]
            yield step


@pytest.mark.parametrize(
    "wrong", [KeepsARejectedGuess, ForgetsTheLastOfThePath, ReusesWithoutComparing]
)
def test_a_session_that_is_wrong_fails_the_contract(wrong: type[TableSession]) -> None:
    with pytest.raises(AssertionError, match="rows differ"):
        check_session(lambda: wrong(6))


def test_a_difference_within_the_tolerance_is_allowed_and_beyond_it_is_not() -> None:
    made = iter(range(10_000))

    def shaky() -> TableSession:
        session = TableSession(6)
        session._rows = session._rows + np.float32(1e-3 * (next(made) % 2))
        return session

    check_session(shaky, ContractCheck(tolerance=2e-3, rounds=20))
    with pytest.raises(AssertionError, match="rows differ"):
        check_session(shaky, ContractCheck(tolerance=5e-4, rounds=20))
