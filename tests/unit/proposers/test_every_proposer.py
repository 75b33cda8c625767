"""On a table, to the bit: whoever drafts, the text is the plain text."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from every_proposer import (
    SIBLINGS,
    Ground,
    check_every_proposer,
    check_one_that_rests,
    check_trees,
    to_the_bit,
)

from edgespec.decoding.draft import Draft
from edgespec.decoding.session import Scores
from edgespec.proposers.trimmed import TrimmedSession
from edgespec.testing import TableSession

V, NOISE = 24, 1.0
KEPT = np.flatnonzero(np.random.default_rng(0).random(V) < 0.8).astype(np.int32)


class OwnIds(TableSession):
    """The noisy table, asked by the places of ids in KEPT; the last id stands for the rest."""

    def __init__(self) -> None:
        super().__init__(V, noise=NOISE)
        lost = np.setdiff1d(np.arange(V), KEPT)[:1]
        order = np.concatenate([KEPT, lost])
        self._rows = self._rows[np.ix_(order, order, order, order)]
        self.caps = replace(self.caps, vocab=len(order))


TABLE = Ground(
    target=lambda: TableSession(V),
    copy=lambda: TableSession(V, noise=NOISE),
    trimmed=lambda: TrimmedSession(OwnIds(), KEPT, len(KEPT), V),
    stranger=lambda: TableSession(V, seed=3, noise=40.0),
    same=to_the_bit,
)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_whoever_drafts_the_text_is_the_plain_text(temperature: float) -> None:
    check_every_proposer(TABLE, temperature)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_model_that_is_sent_to_rest_leaves_the_text_as_it_is(temperature: float) -> None:
    check_one_that_rests(TABLE, temperature)


class SeesSiblings(TableSession):
    """A causal mask: each node follows the one before it, kin or not."""

    def _pass(self, lines: dict[int, list[int]], grown: Draft) -> Scores:
        row = Draft(grown.tokens, range(-1, len(grown) - 1), grown.source, grown.q)
        scores = super()._pass(lines, row)
        self._draft = grown
        return scores


@pytest.mark.parametrize("name", SIBLINGS)
def test_a_mask_that_lets_siblings_see_each_other_changes_the_text(name: str) -> None:
    check_trees(TABLE, name)
    wrong = replace(TABLE, target=lambda: SeesSiblings(V))
    with pytest.raises(AssertionError, match="texts part"):
        check_trees(wrong, name)
