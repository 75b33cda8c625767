"""A drafter with a vocabulary of its own drafts for its target like any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from api_trials import Load
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.api import Speculation
from edgespec.errors import BadInput, IncompatiblePair

KEPT = np.flatnonzero(np.random.default_rng(4).random(384) < 0.7).tolist()
PROMPT, LENGTH = "Tell me about the first of the list.", 48


@pytest.fixture(scope="module")
def drafter(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trimmed")
    return write_trimmed(folder / "drafter.gguf", tiny_models(layers=2), KEPT)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_coupled_text_is_plain_text_whoever_of_them_drafts(
    opened: Load, drafter: Path, temperature: float
) -> None:
    model = opened(draft=str(drafter), kv_type="f32", flash_attention="off")
    told = {"max_tokens": LENGTH, "temperature": temperature, "seed": 5}
    model.speculation = Speculation(proposer="none")
    plain = model.generate(PROMPT, **told)
    for speculation in (
        Speculation(proposer="draft", draft_tokens=3),
        Speculation(draft_tokens=2),
        Speculation(),
    ):
        model.speculation = speculation
        assert model.generate(PROMPT, **told).token_ids == plain.token_ids, speculation
    model.speculation = Speculation(proposer="draft", draft_tokens=3)
    stats = model.generate(PROMPT, **told).stats
    assert 0 < stats.accepted <= stats.drafted
    assert set(plain.token_ids) - set(KEPT), "some of the text is beyond the drafter's words"


def test_the_rejection_rule_takes_its_guesses_too(opened: Load, drafter: Path) -> None:
    model = opened(draft=str(drafter))
    model.speculation = Speculation(proposer="draft", draft_tokens=2, rule="rejection")
    stats = model.generate(PROMPT, max_tokens=LENGTH, temperature=0.8, seed=3).stats
    assert stats.drafted > 0
    assert stats.accepted > 0


def test_it_is_counted_at_its_own_size(opened: Load, drafter: Path) -> None:
    alone, both = opened(), opened(draft=str(drafter))
    assert both.loaded.drafter is not None
    assert both.loaded.drafter.guess_s > 0
    assert alone.loaded.memory != both.loaded.memory


def test_it_cannot_answer_by_itself(opened: Load, drafter: Path) -> None:
    with pytest.raises(BadInput, match="guesses for another model and cannot answer itself"):
        opened(str(drafter))


def test_a_target_with_another_vocabulary_is_refused(
    opened: Load, drafter: Path, tiny_models: TinyModels
) -> None:
    with pytest.raises(IncompatiblePair, match=r"drafter\.gguf cannot draft for"):
        opened(str(tiny_models(layers=2, vocab=330)), draft=str(drafter))


def test_ids_beyond_the_target_are_refused(
    opened: Load, tiny_models: TinyModels, tmp_path: Path
) -> None:
    told = [*KEPT[:-1], 5000]
    path = write_trimmed(tmp_path / "far.gguf", tiny_models(layers=2), KEPT, told=told)
    with pytest.raises(IncompatiblePair, match="id 5000"):
        opened(draft=str(path))
