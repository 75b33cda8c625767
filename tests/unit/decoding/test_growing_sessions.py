"""Sessions over sessions grow trees like the ones beneath, and a growth that is wrong is caught."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.session import Scores, Session
from edgespec.errors import CacheFull
from edgespec.planning.strict import StrictSession
from edgespec.proposers.trimmed import TrimmedSession
from edgespec.testing import ContractCheck, TableSession, check_session, read

V = 6
EVERY = np.array([3, 1, 5, 0, 2, 4], dtype=np.int32)
KINDS: dict[str, Callable[[], Session]] = {
    "a table": lambda: TableSession(V),
    "ids of its own": lambda: TrimmedSession(TableSession(V), EVERY, 0, V),
    "padded": lambda: StrictSession(TableSession(V), (2, 8, 32)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_the_contract_holds(kind: str, seed: int) -> None:
    check_session(KINDS[kind], ContractCheck(seed=seed))


class SeesTheRootOnly(TableSession):
    """New nodes are computed as if they followed the root."""

    def extend(self, grown: Draft) -> Scores:
        self._lines = dict.fromkeys(self._lines, self._lines[ROOT])
        return super().extend(grown)


class ForgetsTheTree(TableSession):
    """What was computed before cannot be committed any more."""

    def extend(self, grown: Draft) -> Scores:
        scores = super().extend(grown)
        self._draft = Draft((0,) * len(grown), grown.parents, grown.source, grown.q)
        return scores


@pytest.mark.parametrize("kind", [SeesTheRootOnly, ForgetsTheTree])
def test_a_growth_that_is_wrong_is_caught(kind: type[TableSession]) -> None:
    with pytest.raises(AssertionError, match="of a tree that grew"):
        check_session(lambda: kind(V))


def test_a_growth_computes_new_nodes_only_and_says_when_it_does_not_fit() -> None:
    session = TableSession(V, cells=8)
    read(session, [1, 2, 3])
    session.verify(EMPTY)
    session.extend(Draft.chain([4, 5], "t"))
    session.extend(Draft.chain([4, 5, 1], "t"))
    assert session.widths == [1, 2, 1]
    with pytest.raises(CacheFull):
        session.extend(Draft.chain([4, 5, 1, 2, 3, 4], "t"))
