"""What was measured with one build of llama.cpp is not believed of another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_trials import Models

from edgespec.measuring import _measurement_file
from edgespec.options import LoadOptions
from edgespec_llamacpp import LlamaCppBackend, library
from edgespec_llamacpp.library import Device


@pytest.fixture(autouse=True)
def every_build_is_looked_at_anew() -> Iterator[None]:
    library.build.cache_clear()
    yield
    library.build.cache_clear()


def found_of(llama: Models) -> tuple[Path, str]:
    """Where the measurement of a model is kept, and what the probe says of the backend."""
    library.build.cache_clear()
    model = llama()
    file = _measurement_file(model, model._path, LoadOptions())
    return file, LlamaCppBackend.probe().identity


def test_one_build_is_one_to_all_who_ask(llama: Models) -> None:
    assert found_of(llama) == found_of(llama)
    assert any("llama" in file for file in library._native_files())


def test_devices_that_differ_by_name_alone_are_not_one(
    llama: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[Path, str]] = []
    for name in ("CUDA0", "Vulkan0"):
        card = Device(name, "one card", 0, 0, gpu=True, unified=False)
        monkeypatch.setattr(library, "devices", lambda card=card: (card,))
        found.append(found_of(llama))
    (first, first_identity), (second, second_identity) = found
    assert first != second
    assert first_identity != second_identity


def test_features_and_files_of_a_build_count(
    llama: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [found_of(llama)]
    monkeypatch.setattr(library.library(), "llama_print_system_info", lambda: b"CUDA : F16 = 1 |")
    found.append(found_of(llama))
    monkeypatch.setattr(library, "_native_files", lambda: iter(("libllama.so,1,2",)))
    found.append(found_of(llama))
    assert len({file for file, _ in found}) == len({identity for _, identity in found}) == 3
