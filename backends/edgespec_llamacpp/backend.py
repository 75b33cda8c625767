"""Loading model files with llama.cpp."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

from edgespec.backends import BackendProbe, DeviceMemory, Placement
from edgespec.errors import ModelFileError, NotFound
from edgespec.models.shown import shown
from edgespec_llamacpp.library import (
    build,
    devices_now,
    errors_since,
    interrupts_wait,
    library,
    library_version,
    log_mark,
)
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.requantize import requantize

EXPERTS = rb"\.ffn_(up|down|gate|gate_up)_(ch|)exps"  # tensors of a mixture's experts


class LlamaCppBackend:
    """llama.cpp through llama-cpp-python: CUDA, Vulkan, Metal and plain CPU."""

    @classmethod
    def probe(cls) -> BackendProbe:
        gpus = [device for device in devices_now() if device.gpu]
        # an integrated GPU holds layers only where there is no other
        apart = [gpu for gpu in gpus if not gpu.unified]
        return BackendProbe(
            "llamacpp",
            library_version(),
            tuple(gpu.description for gpu in gpus),
            bool(library().llama_supports_gpu_offload()),
            tuple(DeviceMemory(gpu.free_bytes, gpu.unified) for gpu in apart or gpus[:1]),
            build=build(),
        )

    @classmethod
    def prepare(cls, path: Path, report: Callable[[str], None]) -> Path:
        if path.is_dir():
            raise ModelFileError(
                f"{shown(path)} is a folder of safetensors files, which llama.cpp does not run; use"
                " --backend mlx, or a GGUF file of this model."
            )
        return path

    @classmethod
    def load(cls, path: Path, placement: Placement) -> LlamaModel:
        if not path.is_file():
            raise NotFound(f"No model file at {path}. Check the name.")
        lib = library()
        parameters = lib.llama_model_default_params()
        if placement.gpu_layers is not None:
            parameters.n_gpu_layers = placement.gpu_layers
        kept = _experts_on_cpu(lib, parameters) if placement.cpu_moe else None
        handle: Any = None
        mark = log_mark()
        try:
            with interrupts_wait() as interrupted:
                go_on = lib.llama_progress_callback(lambda _done, _data: not interrupted())
                parameters.progress_callback = go_on
                handle = lib.llama_model_load_from_file(str(path).encode(), parameters)
            del kept, go_on  # used during the load only
            if interrupted():
                raise KeyboardInterrupt  # a handler may only have taken note of it
            if not handle:
                raise ModelFileError(
                    f"llama.cpp could not load {path.name}: {errors_since(mark)}."
                    " Download it again, or try another quantisation."
                )
            return LlamaModel(handle, path, placement)
        except BaseException:
            if handle:
                lib.llama_model_free(handle)
            raise

    @classmethod
    def requantize(cls, source: Path, target: Path, number_format: str) -> None:
        requantize(source, target, number_format)


def _experts_on_cpu(lib: Any, parameters: Any) -> Any:
    """Point the experts' tensors at ordinary memory; returns what must outlive the load."""
    from llama_cpp import _ggml

    ggml = _ggml.libggml
    ggml.ggml_backend_dev_by_type.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_buffer_type.restype = ctypes.c_void_p
    ggml.ggml_backend_dev_buffer_type.argtypes = [ctypes.c_void_p]
    cpu = ggml.ggml_backend_dev_buffer_type(ggml.ggml_backend_dev_by_type(0))
    kind = lib.llama_model_tensor_buft_override
    overrides = (kind * 2)()
    overrides[0].pattern, overrides[0].buft = EXPERTS, cpu
    parameters.tensor_buft_overrides = ctypes.cast(overrides, ctypes.c_void_p)
    return overrides
