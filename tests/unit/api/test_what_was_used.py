"""The pair that opens when none is named is the last one that was really opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tiny_models import TinyModels

from edgespec import load, loading
from edgespec.cli.root import edgespec
from edgespec.errors import BadInput, OutOfMemory
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    mark_used,
    record,
    used_names,
)


@pytest.fixture
def target(tiny_models: TinyModels) -> Path:
    """The file of the pair `one`; another pair was used before."""
    file = tiny_models(layers=2)
    model = InstalledModel("org/repo", "0" * 40, (file,), file.stat().st_size)
    record(InstalledPair("one", "gguf", model, None, pulled=1e9))
    mark_used("before")
    return file


def test_a_pair_that_was_loaded_is_the_one_that_was_used_last(target: Path) -> None:
    pytest.importorskip("llama_cpp")
    with load("One", threads=1, context=256):
        assert set(used_names()) == {"before", "one"}


def test_a_file_is_opened_for_once(target: Path) -> None:
    pytest.importorskip("llama_cpp")
    for settings in ({"pair": str(target)}, {"target": str(target)}):
        with load(**settings, threads=1, context=256):
            assert used_names() == ("before",)


def test_a_pair_that_could_not_be_loaded_was_not_used(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("llama_cpp")
    with pytest.raises(BadInput, match="has no draft model"):
        load("one", proposer="draft")
    monkeypatch.setattr(loading, "available_memory", lambda: 0)
    with pytest.raises(OutOfMemory):
        load("one", threads=1, context=256)
    assert used_names() == ("before",)


def test_a_pair_that_was_only_looked_at_was_not_used(target: Path) -> None:
    told = CliRunner().invoke(edgespec, ["doctor", "one", "--context", "256"]).stdout
    assert "Plan      'one' with a context of 256 tokens" in told
    assert used_names() == ("before",)
