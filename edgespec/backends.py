"""What an adapter package provides, and how installed ones are found."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Protocol, runtime_checkable

import psutil

from edgespec import cgroups
from edgespec.decoding.draft import Tokens
from edgespec.decoding.session import MOST_ROWS, Session
from edgespec.errors import BackendMissing, NotFound
from edgespec.text.tokenizer import Tokenizer

GROUP = "edgespec.backends"


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What a GPU has free.

    unified: it is a part of main memory. partial: it may hold some of a model's layers only.
    """

    free_bytes: int
    unified: bool
    partial: bool = True


@dataclass(frozen=True, slots=True)
class BackendProbe:
    """What an installed backend says about itself.

    gpu: whether it can use one at all. gpu_memory: of the GPUs that hold its models. formats: of
    models that it takes, its own first. makeshift: too slow here to be chosen unasked. build: what
    differs between builds of one version.
    """

    name: str
    version: str
    devices: tuple[str, ...]
    gpu: bool
    gpu_memory: tuple[DeviceMemory, ...] = ()
    formats: tuple[str, ...] = ("gguf",)
    makeshift: bool = False
    build: str = ""

    @property
    def identity(self) -> str:
        """What was found to be fastest with it is so for this alone."""
        return "|".join((self.name, self.version, *self.devices, self.build))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where weights go, and how.

    gpu_layers: None = all, where a device exists. cpu_moe: experts stay on the CPU. guesses_only:
    a drafter's weights, whose numbers may be rounded to what the device is fastest at.
    """

    gpu_layers: int | None = None
    cpu_moe: bool = False
    guesses_only: bool = False


def physical_cores() -> int:
    """Those this process may use; hyper-threads do not help matrix kernels.

    A container's share of processor time counts too: threads beyond it are made to wait.
    """
    physical = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else physical
    granted = cgroups.processors(cgroups.membership(), cgroups.ROOT) or physical
    return max(1, min(physical, allowed, granted))


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How a session keeps its cache.

    threads: None = physical cores. kv_type: "auto" = the adapter's choice. rows: scores that one
    pass may give, for which memory is set aside. lazy: a few unread tokens may ride with the next
    pass, which makes a drafter cheaper; a target's passes keep their width.
    """

    context: int
    threads: int | None = None
    kv_type: str = "auto"
    flash_attention: str = "auto"
    rows: int = MOST_ROWS
    lazy: bool = False


class LoadedModel(Protocol):
    """Weights in memory, and what belongs to them."""

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def device(self) -> str:
        """Where it runs, for people: "CPU, 2 threads"."""
        ...

    @property
    def identity(self) -> str:
        """What measurements of this model are valid for: file, backend and its build, device."""
        ...

    def session(self, options: SessionOptions) -> Session:
        """A fresh session; raises OutOfMemory when its cache cannot be had."""
        ...

    def close(self) -> None: ...


class PlainLoop(Protocol):
    """The library's own greedy decoding, one token a pass: a yardstick apart from our loop."""

    def answer(self, prompt: Tokens, max_tokens: int, end_tokens: Collection[int]) -> Iterator[int]:
        """The reply's token ids as they come, an end token included.

        What the cache holds of the prompt is not read again. Raises: BadInput when the prompt
        does not fit.
        """
        ...

    def forget(self) -> None:
        """Empty the cache."""
        ...


@runtime_checkable
class OffersPlainLoop(Protocol):
    """A LoadedModel whose library has a loop of its own to compare with."""

    def plain_loop(self, options: SessionOptions) -> PlainLoop:
        """With a cache of its own, freed with the model; raises OutOfMemory."""
        ...


class Backend(Protocol):
    """An adapter: the class that an entry point of the group `edgespec.backends` names."""

    @classmethod
    def probe(cls) -> BackendProbe:
        """Version and devices; raises BackendMissing when its library is not installed."""
        ...

    @classmethod
    def prepare(cls, path: Path, report: Callable[[str], None]) -> Path:
        """What load() takes: the model itself, or a copy that is made once and kept in the cache.

        Raises: ModelFileError for what this backend cannot run; EdgespecError where the disk
        refuses.
        """
        ...

    @classmethod
    def load(cls, path: Path, placement: Placement) -> LoadedModel:
        """Load weights; raises ModelFileError, OutOfMemory or BackendFailed."""
        ...


@runtime_checkable
class Requantizes(Protocol):
    """A backend that can write weights in another number format."""

    def requantize(self, source: Path, target: Path, number_format: str) -> None:
        """Write the same weights in another number format; raises BackendFailed."""
        ...


def installed() -> dict[str, EntryPoint]:
    """Adapters by name; listing imports none of them."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def find(name: str, formats: Iterable[str] = ("gguf",)) -> type[Backend]:
    """The adapter called `name`.

    "auto" takes the first that loads and runs models of all these formats, in the order of
    preference; one that is a makeshift here only where there is no other.
    Raises: NotFound, BackendMissing.
    """
    known = installed()
    if name != "auto":
        if name not in known:
            raise NotFound(f"No backend '{name}'; installed are: {', '.join(sorted(known))}.")
        return _load(known[name])
    missing: list[str] = []
    makeshift: type[Backend] | None = None
    for entry in (known[n] for n in ("mlx", "llamacpp") if n in known):
        try:
            backend = _load(entry)
            probe = backend.probe()
        except BackendMissing as error:
            missing.append(str(error))
            continue
        if not set(formats) <= set(probe.formats):
            missing.append(f"{probe.name} runs {' and '.join(probe.formats).upper()} only.")
        elif probe.makeshift:
            makeshift = backend
        else:
            return backend
    if makeshift is not None:
        return makeshift
    what = "No backend works here." if formats == ("gguf",) else "No backend here runs this model."
    raise BackendMissing(" ".join([what, *missing]))


def _load(entry: EntryPoint) -> type[Backend]:
    backend: type[Backend] = entry.load()
    return backend
