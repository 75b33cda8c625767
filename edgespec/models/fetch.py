"""Fetches files of a repository into the cache that all tools for the hub share.

Whatever ends a fetch, what is visible there under a file's name is whole, and a large file goes on
from where it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from filelock import Timeout
from huggingface_hub.utils import WeakFileLock  # type: ignore[attr-defined]

from edgespec.errors import EdgespecError
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.hub_errors import FAILURES, meaning, offline
from edgespec.models.hub_names import check_blob, check_file
from edgespec.models.partial import Part, id_of
from edgespec.models.placing import is_plain, size_here
from edgespec.models.shown import shown
from edgespec.models.sizes import size_text
from edgespec.models.transfer import Report, download

_SPARE = 64 << 20  # bytes that stay free on the disk
_UNTOLD_WAIT_S = 1.0


def fetch(hub: Hub, snapshot: Snapshot, files: Sequence[RemoteFile], report: Report) -> list[Path]:
    """The files' paths in the cache, in order, fetching those that are not there.

    Nothing that a server says becomes a path but the listed names and hashes, once checked.
    Raises: BadInput for kinds of files that are never fetched; NotFound; NoAccess; NetworkError;
    ModelFileError for content that is not what the hub promised; EdgespecError for unsafe names or
    a full disk.
    """
    for file in files:
        check_file(snapshot.repo, file.name)
        if not hub.offline:
            check_blob(snapshot.repo, file.name, file.blob)
    missing = [file for file in files if hub.cached(snapshot, file) is None]
    if missing and hub.offline:
        raise offline(snapshot.repo)
    try:
        if missing:
            _fetch_missing(hub, snapshot, missing, report)
    except FAILURES as error:
        raise meaning(error, hub.asked(snapshot)) from error
    folder = hub.folder(snapshot.repo)
    with suppress(OSError):  # only tools that are offline miss it
        folder.remember(snapshot.revision, snapshot.commit)
    return [folder.pointer(snapshot.commit, file.name) for file in files]


def missing_bytes(hub: Hub, snapshot: Snapshot, files: Iterable[RemoteFile]) -> int:
    """What is left to fetch of these files; parts of earlier runs count as fetched."""
    folder = hub.folder(snapshot.repo)
    sizes = {
        file.blob: file.size - min(file.size, size_here(folder.part(file.blob)))
        for file in files
        if hub.cached(snapshot, file) is None and size_here(folder.blob(file.blob)) != file.size
    }
    return sum(sizes.values())


def check_room(hub: Hub, needed: int) -> None:
    """Raises: EdgespecError where the cache's disk has no room for so many bytes."""
    try:
        folder = next(folder for folder in (hub.cache, *hub.cache.parents) if folder.exists())
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise EdgespecError(
            f"The cache {shown(hub.cache)} cannot be used ({shown(error.strerror or error)});"
            " check HF_HOME and its permissions."
        ) from error
    if needed and needed + _SPARE > free:
        raise EdgespecError(
            f"{size_text(needed + _SPARE)} must fit on the disk of {shown(hub.cache)}, which"
            f" has {size_text(free)} free; make room, or move the cache with HF_HOME."
        )


def _fetch_missing(
    hub: Hub, snapshot: Snapshot, files: Sequence[RemoteFile], report: Report
) -> None:
    folder = hub.folder(snapshot.repo)
    check_room(hub, missing_bytes(hub, snapshot, files))
    folder.prepare()
    # small ones first: where access is refused, that shows before the long wait
    for file in sorted(files, key=lambda file: file.size):
        _fetch_one(hub, snapshot, file, report)
        report.progress(file, file.size)


def _fetch_one(hub: Hub, snapshot: Snapshot, file: RemoteFile, report: Report) -> None:
    folder = hub.folder(snapshot.repo)
    with _locked(folder.lock(file.blob), file, report):
        if hub.cached(snapshot, file) is None:  # whoever held the lock may have fetched it
            whole = _whole(hub, snapshot, file, report)
            folder.place(whole, file.blob, folder.pointer(snapshot.commit, file.name))


@contextmanager
def _locked(lock: Path, file: RemoteFile, report: Report) -> Iterator[None]:
    """The library's own lock, so that no other program fetches the same file meanwhile."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    if is_plain(lock) is False:
        lock.unlink()  # taking it would empty the file that it leads to
    with ExitStack() as held:
        try:
            held.enter_context(WeakFileLock(lock, timeout=_UNTOLD_WAIT_S))
        except Timeout:
            report.note(f"another program is fetching {shown(file.name, 100)}; waiting for it")
            held.enter_context(WeakFileLock(lock))
        yield


def _whole(hub: Hub, snapshot: Snapshot, file: RemoteFile, report: Report) -> Path:
    """The complete, checked content: a blob that is here already, or a part just completed."""
    folder = hub.folder(snapshot.repo)
    blob = folder.blob(file.blob)
    if size_here(blob) == file.size:
        if id_of(blob, file, lambda done: report.resumes(file, done)) == file.blob:
            return blob
        report.note(f"the cache holds {shown(file.name, 100)} damaged; it is fetched again")
    with Part(folder, file) as part:
        part.take_up(lambda done: report.resumes(file, done))
        download(hub, snapshot, part, report)
        part.check()
    return part.path
