"""Which pair of the catalogue suits this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgespec.errors import BackendMissing, EdgespecError
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.models.catalogue import Build, Entry, Format

_FORMATS: Final[dict[str, Format]] = {"mlx": "mlx", "llamacpp": "gguf"}  # the better first
_OVERHEAD: Final = 1.1  # working memory grows with the model
_CACHE_BYTES: Final = 1 << 30  # a conversation of some thousand tokens, target and draft
_CPU_COMFORT_BYTES: Final = 3_000_000_000


@dataclass(frozen=True, slots=True)
class Room:
    """Where models run here. free_bytes: what they may take. formats: those that run, best first.

    gpu: whether the weights lie in memory that a GPU reads. makeshift: formats that run slowly, for
    who names such a model.
    """

    free_bytes: int
    gpu: bool
    formats: tuple[Format, ...]
    makeshift: tuple[Format, ...] = ()

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
    from edgespec.backends import installed
    from edgespec.models.available import available_memory

    formats: list[Format] = []
    makeshift: list[Format] = []
    gpu_bytes, shared = 0, False
    entries = installed()
    for name in (name for name in _FORMATS if name in entries):
        try:
            probe = entries[name].load().probe()
        except (ImportError, OSError, RuntimeError, AttributeError, BackendMissing, EdgespecError):
            continue  # the doctor tells what is wrong with it
        (makeshift if probe.makeshift else formats).append(_FORMATS[name])
        gpu_bytes = max(gpu_bytes, sum(memory.free_bytes for memory in probe.gpu_memory))
        shared = shared or any(memory.unified for memory in probe.gpu_memory)
    main = available_memory()
    if not gpu_bytes:
        return Room(main, "mlx" in formats, tuple(formats), tuple(makeshift))
    free = min(main, gpu_bytes) if shared else gpu_bytes
    return Room(free, True, tuple(formats), tuple(makeshift))


def recommend(entries: Iterable[Entry], room: Room) -> Recommendation | None:
    """The largest pair that fits with room, one with a draft model first; small ones on a CPU.

    None where nothing fits, or nothing of known size runs here.
    """
    fitting = [
        (entry, build)
        for entry in entries
        if (build := entry.build(*room.formats)) is not None and room.fits(build)
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
