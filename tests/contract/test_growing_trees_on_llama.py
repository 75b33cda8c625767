"""Trees that grow level by level in llama.cpp's cache, also beside another conversation's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from llama_trials import EXACT, Models, session

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.session import Caps
from edgespec.errors import CacheFull
from edgespec.testing import random_draft, random_path, read
from edgespec_llamacpp.branches import Branches, Fork
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.session import LlamaSession

CLOSE = 1e-4
ROWS = 33  # of each of two conversations, which have 64 sequences between them
CHUNK = 128


def _tree(parents: list[int]) -> Draft:
    n = len(parents)
    return Draft(range(5, 5 + n), parents, ("t",) * n, (None,) * n)


def test_a_leaf_that_grows_keeps_its_sequence_and_every_further_branch_takes_a_new_one() -> None:
    branches = Branches()
    assert branches.grow(_tree([ROOT, ROOT])) == [Fork(1, 0, ROOT)]
    grown = branches.grow(_tree([ROOT, ROOT, 0, 0, 1, 4, ROOT]))
    assert grown == [Fork(2, 0, 0), Fork(3, 0, ROOT)]
    assert branches.through == [[0, 2], [1], [0], [2], [1], [1], [3]]
    assert branches.count == 4


@pytest.mark.parametrize("seed", range(5))
def test_a_tree_has_as_many_sequences_as_leaves_however_it_grew(seed: int) -> None:
    rng, branches = np.random.default_rng(seed), Branches()
    parents = [int(rng.integers(ROOT, n)) for n in range(40)]
    for size in (1, 7, 20, 40):
        tree = _tree(parents[:size])
        branches.grow(tree)
        leaves = set(range(size)) - set(parents[:size])
        # a node that was a leaf and is none any more has handed its sequence down
        assert branches.count == len(leaves)
        for node in range(size):
            below = [leaf for leaf in leaves if node in _line(parents, leaf)]
            assert len(branches.through[node]) == len(below)


def _line(parents: list[int], node: int) -> list[int]:
    line = []
    while node != ROOT:
        line.append(node)
        node = parents[node]
    return line


def test_a_chain_may_become_a_tree(llama: Models) -> None:
    grown, whole = session(llama(layers=2)), session(llama(layers=2))
    tree = _tree([ROOT, 0, 1, 0, ROOT, 4, 2, 2, 6])
    for target in (grown, whole):
        read(target, [1, 2, 3])
    whole_scores = whole.verify(tree)
    rows = [whole_scores.logits(node).copy() for node in range(len(tree))]
    grown.verify(tree.cut(3))
    for known, size in ((3, 4), (4, 6), (6, 9)):
        scores = grown.extend(tree.cut(size))
        for node in range(known, size):
            assert np.abs(scores.logits(node) - rows[node]).max() < CLOSE


def test_growth_that_does_not_fit_is_refused_and_leaves_the_text_whole(llama: Models) -> None:
    target = session(llama(layers=2), 20)
    tokens = list(range(1, 16))
    read(target, tokens)
    target.verify(_tree([ROOT, ROOT]))
    with pytest.raises(CacheFull, match="20 tokens holds 17"):
        target.extend(_tree([ROOT, ROOT, *[0] * 5]))
    row = target.verify(EMPTY).logits(ROOT).copy()
    assert np.abs(row - _fresh(llama(layers=2), tokens)).max() < CLOSE


def _fresh(model: LlamaModel, tokens: list[int]) -> Row:
    target = session(model)
    read(target, tokens)
    return target.verify(EMPTY).logits(ROOT).copy()


def two_in_one_context(model: LlamaModel) -> tuple[LlamaSession, LlamaSession]:
    options = replace(EXACT, context=512, rows=2 * ROWS - 1)
    context = model._context(options, model._parameters(options, CHUNK))
    caps = Caps(model.tokenizer.vocab, 256, ROWS, tree=True)
    return tuple(  # type: ignore[return-value]
        LlamaSession(context, caps, CHUNK, slot=slot) for slot in (0, ROWS - 1)
    )


def test_two_conversations_in_one_cache_do_not_touch_each_others_cells(llama: Models) -> None:
    """Fifty rounds of random trees, grown or not, kept or given up, in random turns."""
    model, rng = llama(layers=2), np.random.default_rng(0)
    both = two_in_one_context(model)
    texts = [[int(t) for t in rng.integers(0, 384, 12)] for _ in both]
    for target, text in zip(both, texts, strict=True):
        read(target, text)
    for _ in range(50):
        who = int(rng.integers(0, 2))
        target, text = both[who], texts[who]
        draft = random_draft(target, rng, int(rng.integers(0, ROWS)))
        target.verify(draft.cut(len(draft) // 2))
        if len(draft) > len(draft) // 2:
            target.extend(draft)
        if rng.random() < 0.2:
            continue
        path, own = random_path(draft, rng), int(rng.integers(0, 384))
        target.commit(path, own)
        text += [*(draft.tokens[node] for node in path), own]
    assert min(map(len, texts)) > 20
    for target, text in zip(both, texts, strict=True):
        assert np.abs(target.verify(EMPTY).logits(ROOT) - _fresh(model, text)).max() < CLOSE
    both[0].reset()
    row = both[1].verify(EMPTY).logits(ROOT).copy()
    assert np.abs(row - _fresh(model, texts[1])).max() < CLOSE
    both[1].close()
    both[0].close()
