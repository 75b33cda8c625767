"""What the hub has: a repository at one commit, and the files of it that may be fetched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository. size: bytes. blob: the name of its content in the cache.

    sha256: of the content; None for small files kept in git, whose blob is a git object id.
    """

    name: str
    size: int
    sha256: str | None
    blob: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository pinned to a commit; files: those that may be fetched, by name.

    licence: as the repository states it; None where it does not.
    """

    repo: str
    revision: str
    commit: str
    files: tuple[RemoteFile, ...]
    licence: str | None = None
