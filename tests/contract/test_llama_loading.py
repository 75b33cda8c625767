"""What llama.cpp loads is freed once, wherever Ctrl+C comes; and where its weights go."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_trials import session, watch_calls
from tiny_models import TinyModels

from edgespec.backends import Placement, SessionOptions
from edgespec.decoding.session import CPU_CHUNK, GPU_CHUNK, MOST_ROWS
from edgespec.errors import BackendFailed
from edgespec_llamacpp import LlamaCppBackend
from edgespec_llamacpp import model as model_module
from edgespec_llamacpp.library import Device, library
from edgespec_llamacpp.model import KV_TYPES, LlamaModel

GPU = Device("GPU0", "some GPU", 1 << 33, 1 << 33, gpu=True, unified=False)
LOADS, FREES = "llama_model_load_from_file", "llama_model_free"
OPENS, CLOSES = "llama_init_from_model", "llama_free"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often what was loaded or opened came, and how often it was freed."""
    counted = Counter[str]()

    def told(name: str, result: object) -> None:
        counted[name] += name in (FREES, CLOSES) or bool(result)

    watch_calls(monkeypatch, (LOADS, FREES, OPENS, CLOSES), told)
    return counted


def _takes_note(*_: object) -> None:
    """As the handler of an application may, or of asyncio at the first Ctrl+C."""


@pytest.fixture(params=[signal.default_int_handler, _takes_note], ids=["raises", "takes note"])
def handler(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


def _load(path: Path, gpu_layers: int | None = None) -> LlamaModel:
    return LlamaCppBackend.load(path, Placement(gpu_layers))


def _press_behind(name: str, patch: pytest.MonkeyPatch) -> None:
    """Press Ctrl+C when a native function is done."""
    real = getattr(library(), name)

    def call(*given: Any) -> Any:
        result = real(*given)
        signal.raise_signal(signal.SIGINT)
        return result

    patch.setattr(library(), name, call)


@pytest.mark.usefixtures("handler")
def test_ctrl_c_while_a_model_is_loaded_stops_it_and_does_not_blame_the_file(
    tiny_models: TinyModels, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = library().llama_progress_callback

    def pressed(go_on: Callable[[float, Any], bool]) -> Any:
        def progress(done: float, data: Any) -> bool:
            signal.raise_signal(signal.SIGINT)
            return go_on(done, data)

        return kind(progress)

    monkeypatch.setattr(library(), "llama_progress_callback", pressed)
    with pytest.raises(KeyboardInterrupt):
        _load(tiny_models(layers=2))
    assert calls[LOADS] == calls[FREES] == 0


@pytest.mark.usefixtures("handler")
def test_a_model_that_was_loaded_when_ctrl_c_came_is_freed_once(
    tiny_models: TinyModels, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _press_behind(LOADS, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        _load(tiny_models(layers=2))
    assert calls[LOADS] == calls[FREES] == 1


def test_a_model_whose_vocabulary_cannot_be_had_is_freed(
    tiny_models: TinyModels, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Any) -> None:
        raise BackendFailed("It has none.")

    monkeypatch.setattr(model_module, "LlamaTokenizer", fails)
    with pytest.raises(BackendFailed, match="It has none"):
        _load(tiny_models(layers=2))
    assert calls[LOADS] == calls[FREES] == 1


def test_a_cache_that_was_had_when_ctrl_c_came_is_freed(
    tiny_models: TinyModels, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _load(tiny_models(layers=2))
    with monkeypatch.context() as patched:
        _press_behind(OPENS, patched)
        with pytest.raises(KeyboardInterrupt):
            session(model)
    assert calls[OPENS] == calls[CLOSES] == 1
    session(model)
    model.close()
    assert calls[OPENS] == calls[CLOSES] == 2


def test_a_cache_on_which_a_trial_was_broken_off_is_freed_with_its_model(
    tiny_models: TinyModels, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(*_: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(model_module, "_rolls_back", broken_off)
    model = _load(tiny_models(sliding_window=8, layers=2))
    with pytest.raises(KeyboardInterrupt):
        session(model)
    model.close()
    assert calls[OPENS] == calls[CLOSES] == 1
    assert calls[LOADS] == calls[FREES] == 1


@pytest.mark.parametrize(
    ("gpu_layers", "where"),
    [
        (0, ("CPU", "bf16", CPU_CHUNK)),
        (1, (GPU.description, "f16", GPU_CHUNK)),
        (None, (GPU.description, "f16", GPU_CHUNK)),
    ],
)
def test_a_model_with_no_layer_on_the_gpu_is_one_of_the_cpu(
    tiny_models: TinyModels,
    monkeypatch: pytest.MonkeyPatch,
    gpu_layers: int | None,
    where: tuple[str, str, int],
) -> None:
    device, kv_type, chunk = where
    real, given = library().llama_init_from_model, list[Any]()

    def opens(handle: Any, parameters: Any) -> Any:
        given.append(parameters)
        return real(handle, parameters)

    monkeypatch.setattr(model_module, "gpu_devices", lambda: (GPU,))
    monkeypatch.setattr(library(), OPENS, opens)
    model = _load(tiny_models(layers=2), gpu_layers)
    for cache in (model.session, model.plain_loop):
        cache(SessionOptions(256, 1))
        assert given[-1].type_k == given[-1].type_v == KV_TYPES[kv_type]
        assert given[-1].n_ubatch == chunk + MOST_ROWS
    assert model.device.startswith(device)
    assert device in model.identity
    model.close()
