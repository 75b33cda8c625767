"""Many texts in one llama.cpp context, and a step that fails."""

from __future__ import annotations

import numpy as np
import pytest
from llama_trials import Models

from edgespec.errors import BackendFailed, CacheFull


def test_a_step_that_fails_counts_for_none_of_its_texts(llama: Models) -> None:
    model = llama(layers=2)
    batch, other = model.batch(2, 16, threads=1), model.batch(2, 16, threads=1)
    for one in (batch, other):
        one.step([0, 1], [5, 6])
    with pytest.raises(BackendFailed, match=r"llama\.cpp could not run the model"):
        batch.step([0, 1], [7, model.tokenizer.vocab])
    right = other.step([0, 1], [8, 9]).copy()
    assert np.abs(batch.step([0, 1], [8, 9]) - right).max() < 1e-4


def test_a_text_without_room_counts_for_none_of_the_others(llama: Models) -> None:
    model = llama(layers=2)
    batch, other = model.batch(2, 16, threads=1), model.batch(2, 16, threads=1)
    for one in (batch, other):
        one.step([0], [5])
        for _ in range(16):
            one.step([1], [6])
    with pytest.raises(CacheFull, match="Slot 1 holds its 16 tokens"):
        batch.step([0, 1], [7, 6])
    right = other.step([0], [8]).copy()
    assert np.abs(batch.step([0], [8]) - right).max() < 1e-4
