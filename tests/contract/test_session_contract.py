"""Sessions of llama.cpp keep the contract of every session; broken ones are caught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from llama_trials import Models, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.errors import BackendFailed
from edgespec.testing import ContractCheck, check_session, random_draft, random_path, read
from edgespec_llamacpp.session import LlamaScores, LlamaSession

LLAMA = ContractCheck(tolerance=1e-4)
# gelu goes through a table of 16-bit floats, so a last bit becomes one in the third decimal
WINDOWED = ContractCheck(tolerance=2e-2)


def test_a_llama_session_keeps_the_contract(llama: Models) -> None:
    check_session(lambda: session(llama(layers=2)), LLAMA)


@pytest.mark.parametrize("window", [4, 8])
def test_a_window_shorter_than_the_text_keeps_the_contract(llama: Models, window: int) -> None:
    model = llama(sliding_window=window, layers=2)
    assert session(model).caps.tree
    assert session(model).caps.rollback is None
    check_session(lambda: session(model), WINDOWED)


def test_a_long_text_with_a_short_window_still_takes_guesses_back(llama: Models) -> None:
    """The window has moved on by far when a guess is taken back."""
    model = llama(sliding_window=8, layers=2)
    used, rng = session(model), np.random.default_rng(0)
    committed = [int(t) for t in rng.integers(0, 384, 150)]
    read(used, committed)
    for _ in range(20):
        draft = random_draft(used, rng, 24)
        used.verify(draft)
        path, own = random_path(draft, rng), int(rng.integers(0, 384))
        used.commit(path, own)
        committed += [*(draft.tokens[node] for node in path), own]
    row = used.verify(EMPTY).logits(ROOT).copy()
    fresh = session(model)
    read(fresh, committed)
    assert np.abs(row - fresh.verify(EMPTY).logits(ROOT)).max() < WINDOWED.tolerance


class KeepsOneRejected(LlamaSession):
    """Leaves the first rejected guess of a chain in the cache."""

    def _remove(self, sequence: int, start: int) -> None:
        super()._remove(sequence, start + 1)


class PositionsByIndex(LlamaSession):
    """Lays a tree out as if it were a chain: siblings follow each other."""

    def _lay_out(self, tree: Draft, known: int, row: int) -> None:
        super()._lay_out(tree, known, row)
        more = len(tree) - known
        self._fields.position[row : row + more] = self._root + 1 + known + np.arange(more)


class SeesEverything(LlamaSession):
    """A causal mask: each node sees all rows before it, whatever branch they are on."""

    def _lay_out(self, tree: Draft, known: int, row: int) -> None:
        super()._lay_out(tree, known, row)
        for at in range(row, row + len(tree) - known):
            self._fields.belongs_to(at, range(self._branches.count))


class BeginsBranchesEmpty(LlamaSession):
    """A branch that begins below an earlier pass does not see what lies above it."""

    def _lay_out(self, tree: Draft, known: int, row: int) -> None:
        super()._lay_out(tree, known, row)
        if not row:
            for at, node in enumerate(range(known, len(tree))):
                self._fields.belongs_to(at, [self._branches.count + node])


class MixesUpRows(LlamaSession):
    def verify(self, draft: Draft) -> LlamaScores:
        super().verify(draft)
        return LlamaScores(self._rows(len(draft) + 1)[::-1])


def _broken(model: Any, kind: type[LlamaSession]) -> LlamaSession:
    made: LlamaSession = session(model)
    made.__class__ = kind
    return made


BROKEN = [KeepsOneRejected, PositionsByIndex, SeesEverything, BeginsBranchesEmpty, MixesUpRows]


@pytest.mark.parametrize("kind", BROKEN)
def test_the_contract_catches_a_broken_session(llama: Models, kind: type[LlamaSession]) -> None:
    with pytest.raises((AssertionError, BackendFailed), match=r"rows differ|llama\.cpp could not"):
        check_session(lambda: _broken(llama(layers=2), kind), LLAMA)


def test_llama_cpp_itself_refuses_a_tree_with_positions_by_index(llama: Models) -> None:
    target = _broken(llama(layers=2), PositionsByIndex)
    read(target, [1, 2, 3, 4])
    with pytest.raises(BackendFailed, match=r"llama\.cpp could not run the model"):
        target.verify(Draft((5, 6, 7), (ROOT, ROOT, 1), ("t",) * 3, (None,) * 3))


def _after(target: LlamaSession, tokens: Sequence[int]) -> Any:
    read(target, tokens)
    return target.verify(EMPTY).logits(ROOT).copy()


def test_a_recurrent_model_says_that_it_takes_nothing_back(llama: Models) -> None:
    caps = session(llama(recurrent=True)).caps
    assert (caps.tree, caps.rollback) == (False, 0)


def test_a_recurrent_model_keeps_the_contract_without_guesses(llama: Models) -> None:
    check_session(lambda: session(llama(recurrent=True)), LLAMA)


def test_a_recurrent_model_reads_each_prompt_as_if_it_were_the_first(llama: Models) -> None:
    model, rng = llama(recurrent=True), np.random.default_rng(0)
    used = session(model)
    first = [int(t) for t in rng.integers(0, 384, 150)]
    for tokens in (first, [*first, 5, 6], first[:40], [*first[:40], 9], first[100:]):
        row = _after(used, tokens)
        assert np.abs(row - _after(session(model), tokens)).max() < LLAMA.tolerance
        used.commit((), 3)
        row = used.verify(EMPTY).logits(ROOT).copy()
        assert np.abs(row - _after(session(model), [*tokens, 3])).max() < LLAMA.tolerance
        # and a verify that nobody commits
        again = used.verify(EMPTY).logits(ROOT).copy()
        assert np.abs(row - again).max() < LLAMA.tolerance
