"""What the tests of the llama.cpp adapter share: sessions, whole answers, drafters on trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Unpack

import pytest
from answer_trials import (
    PLAIN,
    Chains,
    Make,
    Oracle,
    Told,
    Trees,
    answer,
    ask,
    assert_same_text,
    sampler,
    with_prediction,
    words,
)
from tiny_models import Shape, Tiny, TinyModels

from edgespec.backends import Placement, SessionOptions
from edgespec_llamacpp import LlamaCppBackend
from edgespec_llamacpp.library import library
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.session import LlamaSession

__all__ = [
    "EXACT",
    "PLAIN",
    "Chains",
    "Make",
    "Models",
    "Oracle",
    "Told",
    "Trees",
    "answer",
    "ask",
    "assert_same_text",
    "sampler",
    "session",
    "watch_calls",
    "with_prediction",
    "words",
]

EXACT = SessionOptions(context=256, threads=1, kv_type="f32", flash_attention="off")


class Models:
    """Loads each asked-for tiny model once."""

    def __init__(self, files: TinyModels) -> None:
        self._files, self._models = files, dict[str, LlamaModel]()

    def __call__(self, **shape: Unpack[Shape]) -> LlamaModel:
        key = repr(Tiny(**shape))
        if key not in self._models:
            self._models[key] = LlamaCppBackend.load(self._files(**shape), Placement())
        return self._models[key]

    def free_sessions(self) -> None:
        for model in self._models.values():
            for opened in model._opened:
                opened.close()
            model._opened.clear()

    def close(self) -> None:
        for model in self._models.values():
            model.close()


def session(model: LlamaModel, context: int = EXACT.context) -> LlamaSession:
    """One thread, float32 cache, no flash attention: where rounding is at its best."""
    return model.session(replace(EXACT, context=context))


def watch_calls(
    patch: pytest.MonkeyPatch, names: Iterable[str], told: Callable[[str, object], None]
) -> None:
    """Tell of every native call with one of these names, and what came of it."""

    def watched(name: str, native: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            result = native(*given)
            told(name, result)
            return result

        return call

    for name in names:
        patch.setattr(library(), name, watched(name, getattr(library(), name)))
