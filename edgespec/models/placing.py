"""Where the cache that all tools for the hub share keeps one repository.

    models--org--name/blobs/<blob>                a file's content, by its hash
    models--org--name/snapshots/<commit>/<name>   a link to it; without links, the file itself
    models--org--name/refs/<revision>             the commit that a branch or tag stood for
    .locks/models--org--name/<blob>.lock          held while a blob is being fetched
Source: huggingface_hub, file_download.py.
"""

from __future__ import annotations

import os
import shutil
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from huggingface_hub.file_download import are_symlinks_supported, repo_folder_name

from edgespec.errors import EdgespecError
from edgespec.models.shown import shown

_LONGEST_NOTE = 200  # bytes
_PART = ".part"  # not the library's ".incomplete", which its prune command deletes


@dataclass(frozen=True, slots=True)
class RepoFolder:
    """Paths of one repository. cache: the folder above all repositories."""

    cache: Path
    repo: str

    @property
    def root(self) -> Path:
        return self.cache / self._name

    def blob(self, blob: str) -> Path:
        return self.root / "blobs" / blob

    def part(self, blob: str) -> Path:
        """What has arrived of a blob so far."""
        return self.root / "blobs" / f"{blob}{_PART}"

    def note(self, blob: str) -> Path:
        """What is known of the part."""
        return self.root / "blobs" / f"{blob}{_PART}.json"

    def pointer(self, commit: str, name: str) -> Path:
        return self.root / "snapshots" / commit / name

    def ref(self, revision: str) -> Path:
        return self.root / "refs" / revision

    def lock(self, blob: str) -> Path:
        return self.cache / ".locks" / self._name / f"{blob}.lock"

    @property
    def _name(self) -> str:
        return repo_folder_name(repo_id=self.repo, repo_type="model")

    def prepare(self) -> None:
        """Make the folders without which the library takes a repository for damaged."""
        for folder in (self.root / "blobs", self.root / "snapshots"):
            folder.mkdir(parents=True, exist_ok=True)

    def place(self, whole: Path, name: str, pointer: Path) -> None:
        """Make complete, checked content visible at `pointer`.

        whole: the part that holds it, or the blob by this name if that is there already.
        Raises: EdgespecError where a link in the cache leads to a folder outside.
        """
        blob = self.blob(name)
        if self._is_outside(pointer):
            raise EdgespecError(
                f"{shown(pointer.parent)} leads out of the cache, so nothing is put there; remove"
                " the link and run this again."
            )
        pointer.parent.mkdir(parents=True, exist_ok=True)
        if self._links():
            if whole != blob:
                os.replace(whole, blob)
            target = os.path.relpath(blob, pointer.parent)
            self._swap(pointer, lambda path: path.symlink_to(target))
        elif whole != blob:
            os.replace(whole, pointer)
        else:
            # other snapshots may use this blob, so it stays
            self._swap(pointer, lambda path: shutil.copyfile(blob, path))
        self.note(name).unlink(missing_ok=True)

    def remember(self, revision: str, commit: str) -> None:
        """Note what a branch or tag stands for, as tools need it when they are offline."""
        ref = self.ref(revision)
        if revision == commit or self.commit_of(revision) == commit:
            return
        if self._is_outside(ref):
            return
        ref.parent.mkdir(parents=True, exist_ok=True)
        self._swap(ref, lambda path: path.write_text(commit))

    def commit_of(self, revision: str) -> str | None:
        """What was noted of a branch or tag; None for nothing, or nothing readable."""
        try:
            with self.ref(revision).open("rb") as noted:
                return noted.read(_LONGEST_NOTE).decode("ascii").strip()
        except (OSError, ValueError):
            return None

    def _links(self) -> bool:
        with warnings.catch_warnings():
            # the library warns once in a paragraph that says nothing to do
            warnings.simplefilter("ignore")
            return are_symlinks_supported(self.cache)

    def _is_outside(self, path: Path) -> bool:
        """Whether links lead what is put at `path` out of this repository's folder."""
        # the folder itself may be a link: people move their caches to other disks
        return not path.parent.resolve().is_relative_to(self.root.resolve())

    def _swap(self, path: Path, make: Callable[[Path], object]) -> None:
        """Put something new at `path`, whole, whatever was there."""
        # not beside `path`: a leftover there would be taken for a file or a revision
        new = self.root / "blobs" / f".{uuid4().hex[:12]}.new"
        try:
            make(new)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)


def is_plain(path: Path) -> bool | None:
    """Whether a file lies there that is one by itself: no link, by either kind; None for nothing.

    Whatever else could lead what is written there to another file.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def size_here(path: Path) -> int:
    """Bytes of a file; -1 for links and whatever else is no file."""
    try:
        found = path.lstat()
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1
