"""Sessions on MLX keep the contract of every session, in every family; broken ones are caught."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from tiny_mlx import ASKED_FOR, WITH_WINDOW, MlxModels, Tiny, loaded, module_of, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.errors import BackendFailed
from edgespec.testing import ContractCheck, check_session, random_draft, random_path, read
from edgespec_mlx.scores import MlxScores
from edgespec_mlx.session import MlxSession
from edgespec_mlx.trees import TreeLayout

CLOSE = ContractCheck(tolerance=1e-4)
WITH_STATE = ("qwen3_next", "mamba", "lfm2")


@pytest.mark.parametrize("bits", [None, 4], ids=["f32", "4 bit"])
@pytest.mark.parametrize("family", ASKED_FOR)
def test_every_family_keeps_the_contract_with_trees(
    mlx_models: MlxModels, family: str, bits: int | None
) -> None:
    model = mlx_models(family, bits=bits)
    assert (session(model).caps.tree, session(model).caps.rollback) == (True, None)
    check_session(lambda: session(model), CLOSE)


@pytest.mark.parametrize("window", [5, 16])
@pytest.mark.parametrize("family", [*WITH_WINDOW, "gemma3n", "gemma4_text"])
def test_a_window_shorter_than_the_text_keeps_the_contract(
    mlx_models: MlxModels, family: str, window: int
) -> None:
    model = mlx_models(family, window=window)
    assert session(model).caps.tree
    check_session(lambda: session(model), CLOSE)


@pytest.mark.parametrize("family", ["gemma3n", "gemma4_text", "deepseek_v3"])
def test_other_ways_to_keep_caches_keep_the_contract(mlx_models: MlxModels, family: str) -> None:
    """Caches shared by layers, and keys that are no heads."""
    model = mlx_models(family)
    assert session(model).caps.tree
    check_session(lambda: session(model), CLOSE)


@pytest.mark.parametrize("family", ["nanochat", "gpt2"])
def test_a_family_with_positions_of_its_own_gets_chains(mlx_models: MlxModels, family: str) -> None:
    """Rotated by its own code, or looked up in a table."""
    model = mlx_models(family)
    assert (session(model).caps.tree, session(model).caps.rollback) == (False, None)
    check_session(lambda: session(model), CLOSE)


@pytest.mark.parametrize("family", WITH_STATE)
def test_a_recurrent_state_is_put_back_and_keeps_the_contract(
    mlx_models: MlxModels, family: str
) -> None:
    model = mlx_models(family)
    caps = session(model).caps
    assert (caps.tree, caps.rollback) == (False, 64)
    check_session(lambda: session(model), CLOSE)


def _row(target: MlxSession) -> Row:
    return target.verify(EMPTY).logits(ROOT).copy()


def _after(target: MlxSession, tokens: Sequence[int]) -> Row:
    read(target, tokens)
    return _row(target)


@pytest.mark.parametrize("family", [*WITH_STATE, "gpt_oss"])
def test_each_prompt_reads_as_if_it_were_the_first(mlx_models: MlxModels, family: str) -> None:
    model, rng = mlx_models(family), np.random.default_rng(0)
    used = session(model)
    first = [int(t) for t in rng.integers(0, 384, 150)]
    for tokens in (first, [*first, 5, 6], first[:40], [*first[:40], 9], first[100:]):
        row = _after(used, tokens)
        assert np.abs(row - _after(session(model), tokens)).max() < CLOSE.tolerance
        used.verify(Draft.chain([3, 4, 5], "test"))
        used.commit((0,), 3)
        row = _row(used)
        assert np.abs(row - _after(session(model), [*tokens, 3, 3])).max() < CLOSE.tolerance
        assert np.abs(row - _row(used)).max() == 0.0, "and after a verify that nobody commits"


@pytest.mark.parametrize("family", ["llama", "gemma3_text", "qwen3_next"])
def test_a_long_text_takes_guesses_back_round_after_round(
    mlx_models: MlxModels, family: str
) -> None:
    model = mlx_models(family, window=8) if family != "qwen3_next" else mlx_models(family)
    used, rng = session(model), np.random.default_rng(0)
    committed = [int(t) for t in rng.integers(0, 384, 150)]
    read(used, committed)
    for _ in range(20):
        draft = random_draft(used, rng, 24)
        used.verify(draft)
        path, own = random_path(draft, rng), int(rng.integers(0, 384))
        used.commit(path, own)
        committed += [*(draft.tokens[node] for node in path), own]
    row = _row(used)
    assert np.abs(row - _after(session(model), committed)).max() < CLOSE.tolerance


class KeepsOneRejected(MlxSession):
    """Leaves the first rejected guess of a chain in the cache."""

    def _keep_rows(self, line: int, path: Sequence[int], draft: Draft) -> bool:
        if len(path) < len(draft):
            path = [*path, len(path)]
        return super()._keep_rows(line, path, draft)

    def _check_caches(self) -> None:
        pass


class TakesNothingBack(KeepsOneRejected):
    """Keeps every guess, which only the count in the caches tells."""

    def _keep_rows(self, line: int, path: Sequence[int], draft: Draft) -> bool:
        return True


class MixesUpRows(MlxSession):
    def verify(self, draft: Draft) -> MlxScores:
        scores = super().verify(draft)
        scores._rows = scores._rows[::-1]
        return scores


class ByIndex(TreeLayout):
    """Siblings follow each other, as if the tree were a chain."""

    def __init__(self, base: int, parents: Sequence[int]) -> None:
        super().__init__(base, parents)
        self.positions = mx.arange(base, base + len(parents))


class SeesSiblings(TreeLayout):
    """Every node sees all that come before it, kin or not."""

    def __init__(self, base: int, parents: Sequence[int]) -> None:
        super().__init__(base, parents)
        self.kin = mx.array(np.tri(len(parents), dtype=np.bool_))


def _broken(model: Any, kind: type[MlxSession]) -> MlxSession:
    made = session(model)
    made.__class__ = kind
    return made


@pytest.mark.parametrize("kind", [KeepsOneRejected, TakesNothingBack, MixesUpRows])
def test_the_contract_catches_a_broken_session(
    mlx_models: MlxModels, kind: type[MlxSession]
) -> None:
    with pytest.raises((AssertionError, BackendFailed), match=r"rows differ|could not run"):
        check_session(lambda: _broken(mlx_models(), kind), CLOSE)


@pytest.mark.parametrize("layout", [ByIndex, SeesSiblings])
@pytest.mark.parametrize("family", ["llama", "gpt_oss"])
def test_the_contract_catches_a_tree_laid_out_wrongly(
    mlx_models: MlxModels, monkeypatch: pytest.MonkeyPatch, family: str, layout: type[TreeLayout]
) -> None:
    model = mlx_models(family)
    assert session(model).caps.tree
    monkeypatch.setattr("edgespec_mlx.session.TreeLayout", layout)
    with pytest.raises(AssertionError, match="of one verify equals reading its path"):
        check_session(lambda: session(model), CLOSE)


@pytest.mark.parametrize("layout", [ByIndex, SeesSiblings])
@pytest.mark.parametrize("family", ["llama", "gemma2", "gpt_oss"])
def test_a_family_that_would_read_trees_wrongly_is_found_out_at_load(
    monkeypatch: pytest.MonkeyPatch, family: str, layout: type[TreeLayout]
) -> None:
    monkeypatch.setattr("edgespec_mlx.session.TreeLayout", layout)
    caps = session(loaded(module_of(Tiny(family)))).caps
    assert (caps.tree, caps.rollback) == (False, None)


def test_a_cache_that_kept_too_much_is_noticed_in_the_same_round(mlx_models: MlxModels) -> None:
    class Forgetful(MlxSession):
        def _keep_rows(self, line: int, path: Sequence[int], draft: Draft) -> bool:
            return True

    target = _broken(mlx_models(), Forgetful)
    read(target, [1, 2, 3])
    target.verify(Draft.chain([4, 5], "test"))
    with pytest.raises(BackendFailed, match=r"hold \[5\] tokens where 3 were committed"):
        target.commit((), 6)
