"""The native library: started once, its log kept quiet and kept for error messages."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from edgespec.errors import BackendMissing

_LOG: deque[tuple[int, str]] = deque(maxlen=400)  # numbered, by whatever thread they come from
_NUMBERS = count()
_INTERRUPTED = threading.Event()
_KEPT: list[Any] = []  # callbacks that the library holds; without a reference it would crash
_INSTALL = 'pip install "llama-cpp-python>=0.3.36,<0.4"'
_CPU, _INTEGRATED_GPU, _ACCELERATOR = 0, 2, 3  # enum ggml_backend_dev_type


@dataclass(frozen=True, slots=True)
class Device:
    """A compute device that this build of llama.cpp can use."""

    name: str
    description: str
    free_bytes: int
    total_bytes: int
    gpu: bool
    unified: bool


@cache
def library() -> ModuleType:
    """The llama_cpp module, started. Raises BackendMissing when it is not installed."""
    try:
        import llama_cpp
    except (ImportError, RuntimeError, OSError) as error:
        raise BackendMissing(
            f"The llama.cpp backend needs llama-cpp-python ({error}). Install it with: {_INSTALL}"
        ) from error

    def keep(_level: int, text: bytes | None, _data: object) -> None:
        try:
            _LOG.append((next(_NUMBERS), (text or b"").decode("utf-8", "replace")))
        except KeyboardInterrupt:  # raised in a callback it would be lost
            _INTERRUPTED.set()

    os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # no debugger on the user's terminal
    callback = llama_cpp.llama_log_callback(keep)
    _KEPT.append(callback)
    llama_cpp.llama_log_set(callback, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    return llama_cpp


def library_version() -> str:
    return version("llama-cpp-python")


@cache
def build() -> str:
    """What tells builds of one version apart: features that were compiled in, devices by name,
    and size and time of every native file."""
    features = " ".join(library().llama_print_system_info().decode("utf-8", "replace").split())
    named = (f"{device.name}={device.description}" for device in devices())
    return "|".join((features, *named, *_native_files()))


def _native_files() -> Iterator[str]:
    """The library and its parts, which a build may have for each kind of device."""
    from llama_cpp import llama_cpp

    folder = Path(llama_cpp._lib._name).parent
    for file in sorted({*folder.glob("*llama*"), *folder.glob("*ggml*")}):
        with suppress(OSError):  # a link to nothing
            status = file.stat()
            yield f"{file.name},{status.st_size},{status.st_mtime_ns}"


@contextmanager
def interrupts_wait() -> Iterator[Callable[[], bool]]:
    """Hold Ctrl+C back while native code calls back into Python, where it would be lost.

    Gives a question: whether it was pressed. It takes effect at the end of the block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed = threading.Event()
    before = signal.signal(signal.SIGINT, lambda _number, _frame: pressed.set())
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
        if pressed.is_set():
            signal.raise_signal(signal.SIGINT)


def raise_kept_interrupt() -> None:
    """Raise the KeyboardInterrupt that came while the log was written."""
    if _INTERRUPTED.is_set():
        _INTERRUPTED.clear()
        raise KeyboardInterrupt


def log_mark() -> int:
    """A place in the native log: all that is said later stands behind it."""
    return next(_NUMBERS)


def errors_since(mark: int, lines: int = 3) -> str:
    """The latest lines of the native log behind a mark that speak of an error, on one line.

    Earlier ones may be of another model.
    """
    said = "".join(text for number, text in tuple(_LOG) if number > mark)
    whole = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [
        line for line in whole if any(w in line.lower() for w in ("error", "fail", "unable"))
    ]
    return "; ".join((telling or whole)[-lines:]) or "it gave no reason"


@cache
def devices() -> tuple[Device, ...]:
    """Compute devices of this build, the CPU included; free_bytes as at the first call."""
    return devices_now()


def devices_now() -> tuple[Device, ...]:
    """The same with what is free at this moment."""
    library()
    from llama_cpp import _ggml

    ggml = _ggml.libggml
    ggml.ggml_backend_dev_count.restype = ctypes.c_size_t
    for name, result in (("get", ctypes.c_void_p), ("name", ctypes.c_char_p)):
        getattr(ggml, f"ggml_backend_dev_{name}").restype = result
    ggml.ggml_backend_dev_get.argtypes = [ctypes.c_size_t]
    ggml.ggml_backend_dev_name.argtypes = [ctypes.c_void_p]
    ggml.ggml_backend_dev_description.restype = ctypes.c_char_p
    ggml.ggml_backend_dev_description.argtypes = [ctypes.c_void_p]
    ggml.ggml_backend_dev_type.restype = ctypes.c_int
    ggml.ggml_backend_dev_type.argtypes = [ctypes.c_void_p]
    ggml.ggml_backend_dev_memory.argtypes = [
        ctypes.c_void_p,
        *[ctypes.POINTER(ctypes.c_size_t)] * 2,
    ]
    return tuple(_device(ggml, n) for n in range(ggml.ggml_backend_dev_count()))


def _device(ggml: Any, number: int) -> Device:
    handle = ggml.ggml_backend_dev_get(number)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ggml.ggml_backend_dev_memory(handle, ctypes.byref(free), ctypes.byref(total))
    kind = ggml.ggml_backend_dev_type(handle)
    apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return Device(
        name=ggml.ggml_backend_dev_name(handle).decode("utf-8", "replace"),
        description=ggml.ggml_backend_dev_description(handle).decode("utf-8", "replace"),
        free_bytes=free.value,
        total_bytes=total.value,
        gpu=kind not in (_CPU, _ACCELERATOR),
        unified=kind == _INTEGRATED_GPU or apple,
    )


def gpu_devices() -> tuple[Device, ...]:
    return tuple(device for device in devices() if device.gpu)
