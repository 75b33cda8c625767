"""Which pair of the catalogue suits this machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgespec.errors import BackendMissing, EdgespecError
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.backends import Backend, BackendProbe
    from edgespec.models.catalogue import Build, Entry, Format
    from edgespec.models.pulling import HeaderCheck

_BACKENDS: Final = ("mlx", "llamacpp")  # the better first
_OVERHEAD: Final = 1.1  # working memory grows with the model
_CACHE_BYTES: Final = 1 << 30  # a conversation of some thousand tokens, target and draft
_CPU_COMFORT_BYTES: Final = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Room:
    """Where models run here. free_bytes: what they may take. formats: those that run, best first.

    gpu: whether the weights lie in memory that a GPU reads. makeshift: formats that run slowly, for
    who names such a model. check: whether a GGUF model runs here, by its header; None = all do.
    """

    free_bytes: int
    gpu: bool
    formats: tuple[Format, ...]
    makeshift: tuple[Format, ...] = ()
    check: HeaderCheck | None = None

    @property
    def text(self) -> str:
        kind = "GPU memory" if self.gpu else "main memory, without a GPU"
        return f"{size_text(self.free_bytes)} free of {kind}"

    def fits(self, build: Build) -> bool | None:
        """Whether a build leaves room to work in; None where its size is unknown."""
        if build.bytes is None:
            return None
        return build.bytes * _OVERHEAD + _CACHE_BYTES <= self.free_bytes


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A pair for this machine, and why, in words that follow "because"."""

    entry: Entry
    build: Build
    why: str

    @property
    def line(self) -> str:
        """The line to type, and what it costs."""
        return f"edgespec pull {self.entry.name} ({size_text(self.build.bytes)})"


def room_here() -> Room:
    """What the installed backends and this machine's memory allow."""
    from edgespec.models.available import available_memory

    working = list(_working())
    probes = [probe for _, probe in working]
    formats = _formats(probe for probe in probes if not probe.makeshift)
    slow = _formats(probe for probe in probes if probe.makeshift)
    makeshift = tuple(kind for kind in slow if kind not in formats)
    free_on_gpu = [sum(gpu.free_bytes for gpu in probe.gpu_memory) for probe in probes]
    gpu_bytes = max(free_on_gpu, default=0)
    main, check = available_memory(), _check_of(working)
    if not gpu_bytes:
        return Room(main, "mlx" in formats, formats, makeshift, check)
    shared = any(gpu.unified for probe in probes for gpu in probe.gpu_memory)
    free = min(main, gpu_bytes) if shared else gpu_bytes
    return Room(free, True, formats, makeshift, check)


def _working() -> Iterator[tuple[type[Backend], BackendProbe]]:
    """The backends that work here, the better first."""
    from edgespec.backends import installed

    entries = installed()
    for name in (name for name in _BACKENDS if name in entries):
        try:
            backend = entries[name].load()
            probe = backend.probe()
        except (ImportError, OSError, RuntimeError, AttributeError, BackendMissing, EdgespecError):
            continue  # the doctor tells what is wrong with it
        yield backend, probe


def _formats(probes: Iterable[BackendProbe]) -> tuple[Format, ...]:
    """What these take, the best first."""
    from edgespec.models.catalogue import FORMATS

    taken = [name for probe in probes for name in probe.formats]
    return tuple(sorted((kind for kind in FORMATS if kind in taken), key=taken.index))


def _check_of(working: Collection[tuple[type[Backend], BackendProbe]]) -> HeaderCheck | None:
    """What tells whether a GGUF model runs here; None where one backend runs all of them."""
    from edgespec.loading import KeepsOtherwise

    takers: list[object] = [backend for backend, probe in working if "gguf" in probe.formats]
    choosy = [backend for backend in takers if isinstance(backend, KeepsOtherwise)]
    return choosy[0].needs if choosy and len(choosy) == len(takers) else None


def recommend(entries: Iterable[Entry], room: Room) -> Recommendation | None:
    """The largest pair that fits with room, one with a draft model first; small ones on a CPU.

    No base model: such a one does not answer. None where nothing fits, or nothing of known size
    runs here.
    """
    fitting = [
        (entry, build)
        for entry in entries
        if not entry.base and (build := entry.build(*room.formats)) is not None and room.fits(build)
    ]
    if not fitting:
        return None
    if room.gpu:
        entry, build = max(fitting, key=lambda pair: (pair[1].draft is not None, _bytes(pair[1])))
        drafts = "with a draft model " if build.draft else ""
        return Recommendation(
            entry, build, f"it is the largest {drafts}that leaves room in {room.text}"
        )
    small = [pair for pair in fitting if _bytes(pair[1]) <= _CPU_COMFORT_BYTES]
    entry, build = max(
        small or [min(fitting, key=lambda pair: _bytes(pair[1]))], key=lambda pair: _bytes(pair[1])
    )
    return Recommendation(
        entry,
        build,
        "without a GPU every pass reads the whole model from main memory, so a small one answers"
        " much faster",
    )


def _bytes(build: Build) -> int:
    return build.bytes or 0
