"""What may be deleted from the cache that all tools for the hub share.

A snapshot's entry is a link into its repository's `blobs/`; what lies there may itself be a link
into the cache's store of shared blobs. Only that goes with an entry, and only when no other entry
leads to it: what else a link names belongs to somebody.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from edgespec.errors import EdgespecError
from edgespec.models.shown import shown

_MOST_LINKS: Final = 40
_BLOB: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class HubPlan:
    """What goes. entries: of snapshots. blobs: their contents. freed: bytes of it all."""

    cache: Path
    entries: tuple[Path, ...]
    blobs: tuple[Path, ...]
    freed: int

    def execute(self) -> None:
        """Entries first, so that none ever leads to nothing. Raises: EdgespecError."""
        delete_all(self.entries)
        links = [blob for blob in self.blobs if blob.is_symlink()]
        if links:
            self._release(links)
        delete_all(self.blobs)
        for entry in self.entries:
            with contextlib.suppress(OSError):  # what is left there takes no room
                _tidy(entry, self.cache)

    def _release(self, links: Collection[Path]) -> None:
        """Give up blobs of the shared store, whose own books tell who else has them."""
        from huggingface_hub import DeleteCacheStrategy

        none: frozenset[Path] = frozenset()
        DeleteCacheStrategy(0, frozenset(links), none, none, none, cache_dir=self.cache).execute()


def real_place(file: Path) -> Path:
    """Where a file lies; a link is not followed, the folders above it are."""
    return Path(os.path.realpath(file.parent)) / file.name


def is_entry(file: Path, cache: Path) -> bool:
    """Whether a file lies in a snapshot of the cache, wherever it leads."""
    try:
        parts = real_place(file).relative_to(os.path.realpath(cache)).parts
    except ValueError:
        return False
    return len(parts) >= 4 and "--" in parts[0] and parts[1] == "snapshots" and ".." not in parts


def plan_removal(files: Iterable[Path], cache: Path) -> HubPlan:
    """What goes with these entries of snapshots."""
    cache = Path(os.path.realpath(cache))
    wanted = {real_place(file) for file in files}
    others = _entries(cache) - wanted
    kept = {hop for entry in others for hop in _hops(entry)}
    entries = sorted(entry for entry in wanted if os.path.lexists(entry))
    blobs = {blob for entry in entries if (blob := _blob(entry, cache)) and blob not in kept}
    copies = [entry for entry in entries if not entry.is_symlink()]
    freed = {Path(os.path.realpath(file)) for file in (*copies, *blobs)} - kept
    return HubPlan(cache, tuple(entries), tuple(sorted(blobs)), sum(map(_size, freed)))


def delete_all(files: Collection[Path]) -> None:
    """Delete each file or link. Raises: EdgespecError that tells how many are left."""
    faults: list[OSError] = []
    for file in files:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            faults.append(error)
    if faults:
        first = faults[0]
        where = shown(first.filename) if first.filename else "A file"
        raise EdgespecError(
            f"{where} cannot be deleted ({shown(first.strerror or first, 120)}), so"
            f" {len(faults)} of {len(files)} files are left; check the permissions and run this"
            " again."
        ) from first


def drop_if_empty(root: Path) -> None:
    """Delete a repository that nothing can be opened from, unless a fetch has left a part there.

    root: its real folder. Raises: OSError where something is left in it.
    """
    if (root / "snapshots").is_dir() and any((root / "snapshots").iterdir()):
        return
    kept = {hop for entry in _entries(root.parent) for hop in _hops(entry)}
    blobs = root / "blobs"
    if blobs.is_dir() and not blobs.is_symlink():
        for blob in [blob for blob in blobs.iterdir() if _BLOB.fullmatch(blob.name)]:
            if _is_regular(blob) and blob not in kept:
                blob.unlink()
        blobs.rmdir()
    for folder in (root / ".no_exist", root / "refs", root / "snapshots"):
        for at, _, _ in os.walk(folder, topdown=False):
            os.rmdir(at)
    root.rmdir()


def _entries(cache: Path) -> set[Path]:
    """The entries of every snapshot of every repository."""
    return {
        real_place(Path(folder) / name)
        for snapshots in cache.glob("*--*/snapshots")
        for folder, folders, names in os.walk(snapshots)
        for name in (*names, *folders)
        if name in names or os.path.islink(os.path.join(folder, name))
    }


def _hops(entry: Path) -> Iterator[Path]:
    """An entry, and everything that its links lead over."""
    at = entry
    for _ in range(_MOST_LINKS):
        at = real_place(at)
        yield at
        try:
            at = at.parent / os.readlink(at)
        except OSError:  # no link, or nothing
            return


def _blob(entry: Path, cache: Path) -> Path | None:
    """What an entry leads to, if it is a blob of its own repository."""
    _, *hops = _hops(entry)
    blobs = cache / entry.relative_to(cache).parts[0] / "blobs"
    if not hops or hops[0].parent != blobs:
        return None
    goal = Path(os.path.realpath(hops[0]))
    shared = goal.is_relative_to(cache / "blobs")
    return hops[0] if (goal == hops[0] or shared) and _is_regular(goal) else None


def _is_regular(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode)
    except OSError:
        return False


def _size(file: Path) -> int:
    return file.stat().st_size if _is_regular(file) else 0


def _tidy(entry: Path, cache: Path) -> None:
    """Delete the snapshot that became empty, what refers to it, and a repository without any."""
    repo, _, commit, *_ = entry.relative_to(cache).parts
    root = cache / repo
    snapshot = root / "snapshots" / commit
    folder = entry.parent
    while folder.is_relative_to(snapshot):
        if folder.exists():
            folder.rmdir()  # one that is not empty ends this
        folder = folder.parent
    _drop_refs(root / "refs", commit)
    if os.path.realpath(root / ".no_exist") == str(root / ".no_exist"):
        shutil.rmtree(root / ".no_exist" / commit, ignore_errors=True)
    drop_if_empty(root)


def _drop_refs(refs: Path, commit: str) -> None:
    if refs.is_symlink():
        return
    for folder, _, names in os.walk(refs):
        for ref in (Path(folder) / name for name in names):
            if _is_regular(ref) and ref.read_bytes().strip() == commit.encode():
                ref.unlink()
