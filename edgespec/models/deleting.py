"""Deletes models, and nothing that somebody else still refers to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from edgespec.errors import BadInput, EdgespecError
from edgespec.models import trained
from edgespec.models.copies import Copy, copies_of
from edgespec.models.found import FoundModel, Place, hub_cache, layers_of, ollama_root, places
from edgespec.models.hub_removal import (
    delete_all,
    drop_if_empty,
    is_entry,
    plan_removal,
    real_place,
)
from edgespec.models.installed import InstalledPair, forget, installed_pairs
from edgespec.models.interrupted import InterruptedFetch
from edgespec.models.shown import shown


@dataclass(frozen=True, slots=True)
class Removal:
    """What would go. freed: bytes of it that nobody else refers to. kept: why some stays."""

    freed: int
    execute: Callable[[], None]
    kept: str = ""


def removal_of_pair(pair: InstalledPair) -> Removal:
    """A pulled pair: its files that are there, but for those of other pulled pairs, and its record.

    Of a trained pair only the drafter goes.
    """
    if pair.trained:
        return _of_trained(pair)
    others = [other for other in installed_pairs().pairs if other.name != pair.name]
    files = _fetched(pair)
    needed = {file for other in others for file in _files_of(other)}
    users = [other.name for other in others if _files_of(other) & files]
    inner = _and_copies(_from_hub(files - needed), files - needed)
    kept = f"what {', '.join(shown(name, 80) for name in users)} uses stays" if users else ""

    def execute() -> None:
        inner.execute()
        forget(pair.name)  # last: what could not be deleted can still be asked for by name

    return Removal(inner.freed, execute, kept)


def _of_trained(pair: InstalledPair) -> Removal:
    def execute() -> None:
        trained.remove(pair)
        forget(pair.name)

    where = shown(pair.path(pair.target))
    removal = Removal(trained.bytes_of(pair), execute, f"its target stays, in {where}")
    return removal if pair.draft is None else _and_copies(removal, pair.draft.files)


def _and_copies(removal: Removal, files: Collection[Path]) -> Removal:
    """The same, and what was made of these files in another format."""
    copies = copies_of(files)  # while the files are there to tell

    def execute() -> None:
        removal.execute()
        for copy in copies:
            copy.delete()

    return replace(removal, freed=removal.freed + sum(c.size for c in copies), execute=execute)


def removal_of_copies(copies: Collection[Copy]) -> Removal:
    """Copies in another format; they are made again when they are needed."""

    def execute() -> None:
        for copy in copies:
            copy.delete()

    return Removal(sum(copy.size for copy in copies), execute)


def removal_of_model(model: FoundModel) -> Removal:
    """A model of the hub's cache or of another program.

    Raises: BadInput for anything outside their folders.
    """
    files = {real_place(file) for file in model.files}
    users = [pair for pair in installed_pairs().pairs if _files_of(pair) & files]
    if users:
        names = ", ".join(shown(pair.name, 80) for pair in users)
        what = "the drafter that was trained for it" if users[0].trained else "both"
        raise BadInput(
            f"The pair {names} uses this model; 'edgespec rm {users[0].name}' deletes {what}."
        )
    return _and_copies(_of_model(model, files), files)


def _of_model(model: FoundModel, files: Collection[Path]) -> Removal:
    if model.place is Place.HUB:
        return _from_hub(files)
    roots = places()[model.place]
    # llama.cpp lays its folder out as the hub's cache
    laid_out = next((root for root in roots if all(is_entry(file, root) for file in files)), None)
    if laid_out is not None:
        plan = plan_removal(files, laid_out)
        return Removal(plan.freed, plan.execute)
    if model.manifest is not None:
        return _from_ollama(model, model.manifest, roots)
    _check_inside(model.files, roots)
    return Removal(_size(model.files), lambda: _unlink(model.files, roots))


def removal_of_interrupted(fetches: Collection[InterruptedFetch]) -> Removal:
    """What has arrived of files that never became whole.

    Its execute() raises EdgespecError while another program goes on fetching one of them.
    """
    files = [file for fetch in fetches for file in fetch.files]

    def execute() -> None:
        with contextlib.ExitStack() as held:
            for fetch in fetches:
                for lock in filter(os.path.exists, fetch.locks):
                    held.enter_context(_not_fetching(fetch, lock))
            delete_all(files)
        for fetch in fetches:
            for part in fetch.parts:
                with contextlib.suppress(OSError):  # a repository that holds more
                    drop_if_empty(part.path.parent.parent)

    return Removal(_size(files), execute)


@contextlib.contextmanager
def _not_fetching(fetch: InterruptedFetch, lock: Path) -> Iterator[None]:
    try:
        with FileLock(lock, timeout=0):
            yield
    except Timeout as error:
        raise EdgespecError(
            f"{fetch.repo} is being fetched by another program; stop that, or let it finish."
        ) from error


def _files_of(pair: InstalledPair) -> set[Path]:
    return {real_place(file) for model in pair.models for file in model.files}


def _fetched(pair: InstalledPair) -> set[Path]:
    """Files of it that a pull has brought and that are still there."""
    brought = [model for model in pair.models if model.commit != trained.HERE]
    files = (file for model in brought for file in model.files)
    return {real_place(file) for file in files if os.path.lexists(file)}


def _check_inside(files: Iterable[Path], roots: Iterable[Path]) -> None:
    """A link is judged by where it lies: deleting it leaves its goal alone."""
    tops = [os.path.realpath(root) for root in roots]
    for file in files:
        if not any(real_place(file).is_relative_to(top) for top in tops):
            raise _outside(file)


def _outside(file: Path) -> BadInput:
    return BadInput(
        f"{shown(file)} lies outside the folders that edgespec looks after; delete it yourself."
    )


def _from_hub(files: Collection[Path]) -> Removal:
    cache = hub_cache()
    for file in files:
        if not is_entry(file, cache):
            raise _outside(file)
    plan = plan_removal(files, cache)
    return Removal(plan.freed, plan.execute)


def _from_ollama(model: FoundModel, manifest: Path, roots: Collection[Path]) -> Removal:
    root = ollama_root(model)
    others = [file for file in (root / "manifests").rglob("*") if file != manifest]
    shared = {digest for file in others for _, digest in layers_of(file)}
    own = [digest for _, digest in layers_of(manifest) if digest not in shared]
    blobs = [root / "blobs" / digest.replace(":", "-") for digest in own]
    kept = "" if model.path in blobs else "other models of Ollama share its weights, which stay"
    _check_inside([manifest, *blobs], roots)
    return Removal(_size(blobs), lambda: _unlink([manifest, *blobs], [root]), kept)


def _size(files: Iterable[Path]) -> int:
    """Bytes that deleting these frees; what a link leads to stays."""
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def _unlink(files: Collection[Path], roots: Collection[Path]) -> None:
    """Delete files, then the folders that became empty, up to a program's own folder."""
    tops = {Path(os.path.realpath(root)) for root in roots}
    delete_all(files)
    for file in files:
        folder = Path(os.path.realpath(file.parent))
        while folder not in tops and any(folder.is_relative_to(top) for top in tops):
            with contextlib.suppress(OSError):  # not empty
                folder.rmdir()
            folder = folder.parent
