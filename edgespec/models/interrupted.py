"""Fetches that ended before they were done, as the hub's cache holds them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from edgespec.models.catalogue import catalogue, is_repo
from edgespec.models.found import Place, places
from edgespec.models.partial import Unfinished, unfinished

_PREFIX = "models--"


@dataclass(frozen=True, slots=True)
class InterruptedFetch:
    """What has arrived of a repository's files. repo: as it can be typed."""

    repo: str
    parts: tuple[Unfinished, ...]

    @property
    def done(self) -> int:
        """Bytes."""
        return sum(part.done for part in self.parts)

    @property
    def total(self) -> int | None:
        """Bytes of these files once they are whole; None where nobody knows."""
        totals = [part.total for part in self.parts if part.total is not None]
        return sum(totals) if len(totals) == len(self.parts) else None

    @property
    def locks(self) -> tuple[Path, ...]:
        """What a program holds while it fetches one of these files. Source: huggingface_hub."""
        folders = [part.path.parent.parent for part in self.parts]
        return tuple(
            root.parent / ".locks" / root.name / f"{part.path.stem}.lock"
            for root, part in zip(folders, self.parts, strict=True)
        )

    @property
    def files(self) -> tuple[Path, ...]:
        """The parts and what is known of them."""
        return tuple(file for part in self.parts for file in part.files)


def interrupted_fetches() -> tuple[InterruptedFetch, ...]:
    """All of them, by repository. One that still goes on in another program is among them."""
    (cache,) = places()[Place.HUB]
    try:
        names = sorted(name for name in os.listdir(cache) if name.startswith(_PREFIX))
    except OSError:
        return ()
    fetches = (_fetch(Path(os.path.realpath(cache)), name) for name in names)
    return tuple(fetch for fetch in fetches if fetch is not None)


def find_interrupted(name: str) -> tuple[InterruptedFetch, ...]:
    """Those that a repository's name, `user/repo:quant` or a pair of the catalogue stands for."""
    entry = catalogue().find(name)
    sources = [s for build in entry.builds for s in build.sources] if entry else []
    wanted = {source.repo.casefold() for source in sources} or {name.casefold().partition(":")[0]}
    return tuple(fetch for fetch in interrupted_fetches() if fetch.repo.casefold() in wanted)


def _fetch(cache: Path, folder: str) -> InterruptedFetch | None:
    repo = folder.removeprefix(_PREFIX).replace("--", "/", 1)
    root = cache / folder
    elsewhere = any(path.is_symlink() for path in (root, root / "blobs"))
    if elsewhere or not is_repo(repo):
        return None
    parts = tuple(unfinished(root))
    return InterruptedFetch(repo, parts) if parts else None
