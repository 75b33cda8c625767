"""A file on its way: what has arrived so far, with its hash, ready to go on after any end.

    <blob>.part        the first bytes of the file, in order
    <blob>.part.json   of which file they are: {"blob", "size", "etag"}
A note that does not fit, or none, makes the bytes worthless: they are dropped.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple, Self

from edgespec.errors import EdgespecError, ModelFileError
from edgespec.models.hub import RemoteFile
from edgespec.models.placing import RepoFolder, is_plain
from edgespec.models.shown import shown
from edgespec.models.sizes import size_text
from edgespec.models.store import write_atomically

_SYNC_EVERY = 64 << 20  # bytes that a power cut may cost
_READ = 1 << 20
_OPEN = (
    os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
)
_NOTE_AT_MOST = 1 << 16
_PART_NAME = re.compile(r"[0-9a-f]{40,64}\.part")


class Unfinished(NamedTuple):
    """What an ended fetch left. done, total: bytes; total is None where nobody knows it."""

    path: Path
    done: int
    total: int | None

    @property
    def files(self) -> tuple[Path, Path]:
        """The part and its note, which go together; the note may be missing."""
        return self.path, _note_of(self.path)


def unfinished(repo_folder: Path) -> list[Unfinished]:
    """The parts that lie in a repository's folder of the cache, whatever commit they are of.

    A fetch that still goes on is among them. Links and folders are none; an unreadable folder has
    none.
    """
    try:
        entries = sorted(os.scandir(repo_folder / "blobs"), key=lambda entry: entry.name)
        parts = [
            (Path(entry.path), entry.stat(follow_symlinks=False).st_size)
            for entry in entries
            if _PART_NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
        ]
    except OSError:
        return []
    return [Unfinished(part, done, _total(_note_of(part))) for part, done in parts]


def id_of(path: Path, file: RemoteFile, progress: Callable[[int], None]) -> str:
    """What the hub would call the content at `path` if it is `file`; `progress` hears the bytes."""
    found, done = _hash_for(file), 0
    with path.open("rb") as content:
        while piece := content.read(_READ):
            found.update(piece)
            done += len(piece)
            progress(done)
    return found.hexdigest()


class Part:
    """The bytes of `file` that are here; size and hash always say what the disk holds.

    etag: what the serving host calls this content; empty where it does not tell.
    """

    def __init__(self, folder: RepoFolder, file: RemoteFile) -> None:
        self.path = folder.part(file.blob)
        self.file = file
        self.size = 0
        self.etag = ""
        self._hash = _hash_for(file)
        self._synced = 0
        self._note = folder.note(file.blob)
        self._out: BinaryIO | None = None

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if is_plain(self.path) is False:
            self.path.unlink()
        # without links, should one have come between; for all to read, as the library's files are
        handle = os.open(self.path, _OPEN, 0o666)
        self._out = open(handle, "a+b", buffering=0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._out is not None:
            # what could not be synced is hashed again anyway
            with contextlib.suppress(OSError):
                os.fsync(self._out.fileno())
            self._out.close()
            self._out = None

    @property
    def complete(self) -> bool:
        return self.size == self.file.size

    def take_up(self, progress: Callable[[int], None]) -> None:
        """Go on from what an earlier run left; `progress` hears the bytes read so far."""
        etag = self._noted_etag()
        if etag is None or os.fstat(self._file.fileno()).st_size > self.file.size:
            self.start_over("")
            return
        self.etag = etag
        self._file.seek(0)
        while piece := self._file.read(_READ):
            self._hash.update(piece)
            self.size += len(piece)
            progress(self.size)
        self._synced = self.size

    def start_over(self, etag: str) -> None:
        """Drop what is here; what comes next is served under `etag`."""
        self._file.seek(0)
        self._file.truncate()
        self.size = self._synced = 0
        self.etag = etag
        self._hash = _hash_for(self.file)
        note = {"blob": self.file.blob, "size": self.file.size, "etag": etag}
        write_atomically(self._note, json.dumps(note).encode())

    def add(self, piece: bytes) -> None:
        """Write the next bytes. Raises: EdgespecError where the disk refuses; the part stays."""
        rest = memoryview(piece)
        try:
            while rest:
                n = self._file.write(rest)
                self._hash.update(rest[:n])
                self.size += n
                rest = rest[n:]
            if self.size - self._synced >= _SYNC_EVERY:
                os.fsync(self._file.fileno())
                self._synced = self.size
        except OSError as error:
            raise self._refused(error) from error

    def check(self) -> None:
        """Raises: ModelFileError if the bytes are not what the hub promised; they are gone then."""
        found = self._hash.hexdigest()
        if found != self.file.blob:
            self.forget()
            kind = "git object" if self.file.sha256 is None else "SHA-256"
            raise ModelFileError(
                f"{shown(self.file.name)} arrived damaged ({kind} {found[:12]}…, the hub says"
                f" {self.file.blob[:12]}…) and was removed; run this again."
            )
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise self._refused(error) from error

    def forget(self) -> None:
        """Remove the bytes and what is known of them."""
        if self._out is not None:
            self._out.close()  # an open file cannot be removed everywhere
            self._out = None
        self.path.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)

    def _noted_etag(self) -> str | None:
        """None if the note is missing, damaged, or about another file."""
        note = _read_note(self._note)
        wanted = {"blob": self.file.blob, "size": self.file.size}
        if {key: note.get(key) for key in wanted} != wanted:
            return None
        etag = note.get("etag")
        return etag if isinstance(etag, str) else None

    def _refused(self, error: OSError) -> EdgespecError:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else shown(error.strerror or error)
        return EdgespecError(
            f"{shown(self.file.name)} cannot be written: {reason}; what has arrived"
            f" ({size_text(self.size)}) is kept, so make room and run this again to go on."
        )

    @property
    def _file(self) -> BinaryIO:
        assert self._out is not None, "a part is written inside its with block"
        return self._out


def _hash_for(file: RemoteFile) -> hashlib._Hash:
    """SHA-256 of the content, or for what git keeps, SHA-1 of it behind git's own head."""
    if file.sha256 is not None:
        return hashlib.sha256()
    return hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)


def _note_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _total(note: Path) -> int | None:
    size = _read_note(note).get("size")
    return size if type(size) is int and size >= 0 else None


def _read_note(note: Path) -> dict[str, object]:
    """What a note says; empty if it is missing, damaged, or no plain file."""
    try:
        if not stat.S_ISREG(note.lstat().st_mode):
            return {}
        with note.open("rb") as written:
            said = json.loads(written.read(_NOTE_AT_MOST))
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
