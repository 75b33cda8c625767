"""Loading what fits, and saying what was changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny_models import TinyModels

from edgespec import Model, Speculation, backends, load, loading
from edgespec.backends import BackendProbe, DeviceMemory, Placement
from edgespec.errors import BadInput, OutOfMemory
from edgespec.models import memory
from edgespec.models.available import Available, GpuMemory
from edgespec.models.split import read_model
from edgespec_llamacpp import LlamaCppBackend
from edgespec_llamacpp.model import LlamaModel

KIB = 1 << 10
Load = Callable[..., Model]


@pytest.fixture
def opened(tiny_models: TinyModels) -> Iterator[Load]:
    """A tiny model with its settings, closed after the test."""
    with ExitStack() as stack:

        def open_it(**settings: Any) -> Model:
            path = str(tiny_models(width=128, context=8192))
            return stack.enter_context(load(target=path, threads=1, **settings))

        yield open_it


@pytest.fixture
def draft(tiny_models: TinyModels) -> str:
    return str(tiny_models(layers=2, width=128, context=8192, noise=0.03))


@pytest.fixture
def short_by(
    monkeypatch: pytest.MonkeyPatch, tiny_models: TinyModels, draft: str
) -> Callable[..., None]:
    """Leaves so many bytes less free than target and draft take with 8192 tokens."""
    headers = [read_model(tiny_models(width=128, context=8192)), read_model(Path(draft))]
    whole = memory.plan(headers[0], headers[1], 8192).demands(memory.Available(0))[0].share.total

    def leave(missing_bytes: int) -> None:
        monkeypatch.setattr(loading, "available_memory", lambda: whole - missing_bytes)

    return leave


def test_without_fit_nothing_is_changed_and_nothing_is_loaded(
    opened: Load, draft: str, short_by: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaCppBackend, "load", lambda *_: pytest.fail("a model was loaded"))
    short_by(100 * KIB)
    with pytest.raises(OutOfMemory, match=r"--fit, which takes a context of \d+ tokens instead"):
        opened(draft=draft, context=8192)


def test_fit_shortens_the_context_and_says_so_once(
    opened: Load, draft: str, short_by: Callable[..., None]
) -> None:
    short_by(100 * KIB)
    info = opened(draft=draft, context=8192, fit=True).info
    assert 2048 <= info.context < 8192
    said = f"To fit into memory: a context of {info.context} tokens instead of 8192."
    assert [note for note in info.notes if note.startswith("To fit")] == [said]
    assert any(note.startswith("Memory is short: main memory: ") for note in info.notes)
    assert info.draft is not None


def test_fit_gives_up_the_draft_where_a_shorter_context_is_not_enough(
    opened: Load, draft: str, short_by: Callable[..., None]
) -> None:
    short_by(40 << 20)
    model = opened(draft=draft, context=8192, fit=True)
    assert model.info.draft is None
    assert len(model.loaded.models) == 1
    assert any("no draft model" in note for note in model.info.notes)
    with pytest.raises(BadInput, match=r"--fit left the draft model of .* out") as caught:
        model.loaded.proposer(Speculation(proposer="draft"))
    assert "has no draft model" not in str(caught.value)


def test_what_fits_is_left_alone_and_its_plan_is_kept_in_words(opened: Load) -> None:
    info = opened(context=512, fit=True).info
    assert info.context == 512
    assert info.memory.startswith("main memory: ")
    assert not any("memory" in note.lower() for note in info.notes)


def test_more_context_than_the_training_had_is_told(opened: Load) -> None:
    assert any("trained on 8192 tokens" in note for note in opened(context=8448).info.notes)
    assert not any("trained on" in note for note in opened(context=8192).info.notes)


def test_a_cache_that_cannot_be_had_is_refused_before_the_load(
    opened: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaCppBackend, "load", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(BadInput, match="needs flash attention"):
        opened(kv_type="q4_0", flash_attention="off")


class Whole(LlamaCppBackend):
    """Keeps every model whole in memory that it shares with a GPU, as MLX does."""

    gpu_bytes = 0

    @classmethod
    def probe(cls) -> BackendProbe:
        memory = DeviceMemory(cls.gpu_bytes, unified=True, partial=False)
        return replace(super().probe(), gpu_memory=(memory,))

    @classmethod
    def load(cls, path: Path, placement: Placement) -> LlamaModel:
        if placement.gpu_layers is not None:
            raise BadInput("Leave --gpu-layers out.")
        return super().load(path, placement)


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch, tiny_models: TinyModels) -> type[Whole]:
    """Is found; its GPU is 100 KiB too small for the target with 8192 tokens."""
    monkeypatch.setattr(backends, "find", lambda *_: Whole)
    plan = memory.plan(read_model(tiny_models(width=128, context=8192)), None, 8192)
    _, gpu = plan.demands(Available(0, (GpuMemory(0, unified=True),)))
    monkeypatch.setattr(Whole, "gpu_bytes", gpu.share.total - 100 * KIB)
    return Whole


def test_fit_shortens_the_context_where_layers_cannot_be_divided(
    opened: Load, whole: type[Whole]
) -> None:
    model = opened(context=8192, fit=True)
    assert 2048 <= model.info.context < 8192
    assert not any("layers" in note for note in model.info.notes)


@pytest.mark.parametrize("fit", [True, False])
def test_what_does_not_fit_is_not_advised_to_divide_layers_where_that_cannot_be(
    opened: Load, whole: type[Whole], monkeypatch: pytest.MonkeyPatch, *, fit: bool
) -> None:
    monkeypatch.setattr(whole, "gpu_bytes", 0)
    with pytest.raises(OutOfMemory) as caught:
        opened(context=8192, fit=fit)
    assert "--gpu-layers" not in str(caught.value)
