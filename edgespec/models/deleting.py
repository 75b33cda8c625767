"""Deletes models, and nothing that somebody else still refers to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.errors import BadInput, EdgespecError
from edgespec.models.found import FoundModel, Place, hub_cache, layers_of, ollama_root, places
from edgespec.models.installed import InstalledPair, forget, installed_pairs
from edgespec.models.shown import shown

if TYPE_CHECKING:
    from huggingface_hub import CachedFileInfo, HFCacheInfo


@dataclass(frozen=True, slots=True)
class Removal:
    """What would go. freed: bytes of it that nobody else refers to. kept: why some stays."""

    freed: int
    execute: Callable[[], None]
    kept: str = ""


def removal_of_pair(pair: InstalledPair) -> Removal:
    """A pulled pair: its record and its files, but for those of other pulled pairs."""
    others = [other for other in installed_pairs().pairs if other.name != pair.name]
    needed = {file for other in others for model in other.models for file in model.files}
    files = {file for model in pair.models for file in model.files}
    users = [other.name for other in others if _files_of(other) & files]
    inner = _from_hub(files - needed)
    kept = f"what {', '.join(shown(name, 80) for name in users)} uses stays" if users else ""

    def execute() -> None:
        forget(pair.name)
        inner.execute()

    return Removal(inner.freed, execute, kept)


def removal_of_model(model: FoundModel) -> Removal:
    """A model of the hub's cache or of another program.

    Raises: BadInput for anything outside their folders.
    """
    users = [pair.name for pair in installed_pairs().pairs if _files_of(pair) & set(model.files)]
    if users:
        names = ", ".join(shown(name, 80) for name in users)
        raise BadInput(f"The pair {names} uses this model; 'edgespec rm {users[0]}' deletes both.")
    roots = places()[model.place]
    for file in model.files:
        _check_inside(file, roots)
    if model.place is Place.HUB:
        return _from_hub(model.files)
    if model.manifest is not None:
        return _from_ollama(model, model.manifest)
    return Removal(model.size, lambda: _unlink(model.files, roots))


def _files_of(pair: InstalledPair) -> set[Path]:
    return {file for model in pair.models for file in model.files}


def _check_inside(file: Path, roots: Iterable[Path]) -> None:
    """A link is judged by where it lies: deleting it leaves its goal alone."""
    folder = Path(os.path.realpath(file.parent))
    if not any(folder.is_relative_to(os.path.realpath(root)) for root in roots):
        raise BadInput(
            f"{shown(file)} lies outside the folders that edgespec looks after; delete it yourself."
        )


def _from_hub(files: Collection[Path]) -> Removal:
    for file in files:
        _check_inside(file, [hub_cache()])
    wanted = {_place_of(file) for file in files}
    strategy = _scan().delete_files(*_cached(wanted)) if wanted else None
    if strategy is None:
        return Removal(0, lambda: None)

    def execute() -> None:
        try:
            strategy.execute()
            _drop_empty({file.parent for file in wanted})
        except OSError as error:
            raise _stuck(error) from error

    return Removal(strategy.expected_freed_size, execute)


def _cached(wanted: Collection[Path]) -> list[CachedFileInfo]:
    return [
        file
        for repo in _scan().repos
        for revision in repo.revisions
        for file in revision.files
        if file.file_path in wanted
    ]


def _drop_empty(folders: Collection[Path]) -> None:
    """Delete the revisions of which no file is left, their references included."""
    commits = {
        revision.commit_hash
        for repo in _scan().repos
        for revision in repo.revisions
        if not revision.files
        and any(folder.is_relative_to(revision.snapshot_path) for folder in folders)
    }
    if commits:
        _scan().delete_revisions(*commits).execute()


def _scan() -> HFCacheInfo:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        return scan_cache_dir(hub_cache())
    except (CacheNotFound, ValueError, OSError) as error:
        raise EdgespecError(
            f"The cache {shown(hub_cache())} cannot be read ({shown(error, 120)}); check its path."
        ) from error


def _place_of(file: Path) -> Path:
    # the scan tells files below the real path of the cache, their own links unresolved
    return Path(os.path.realpath(file.parent)) / file.name


def _from_ollama(model: FoundModel, manifest: Path) -> Removal:
    root = ollama_root(model)
    others = [file for file in (root / "manifests").rglob("*") if file != manifest]
    shared = {digest for file in others for _, digest in layers_of(file)}
    own = [digest for _, digest in layers_of(manifest) if digest not in shared]
    blobs = [root / "blobs" / digest.replace(":", "-") for digest in own]
    freed = sum(blob.stat().st_size for blob in blobs if blob.is_file())
    kept = "" if model.path in blobs else "other models of Ollama share its weights, which stay"
    return Removal(freed, lambda: _unlink([manifest, *blobs], [root]), kept)


def _unlink(files: Iterable[Path], roots: Collection[Path]) -> None:
    """Delete files, then the folders that became empty, up to a program's own folder."""
    tops = {Path(os.path.realpath(root)) for root in roots}
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise _stuck(error) from error
        folder = Path(os.path.realpath(file.parent))
        while folder not in tops and any(folder.is_relative_to(top) for top in tops):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()
            folder = folder.parent


def _stuck(error: OSError) -> EdgespecError:
    where = f"{shown(error.filename)} " if error.filename else "A file "
    return EdgespecError(
        f"{where}cannot be deleted ({shown(error.strerror or error, 120)}); check its permissions."
    )
