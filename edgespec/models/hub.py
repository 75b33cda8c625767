"""What the hub has: a repository at one commit, and the files of it that may be fetched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from edgespec.errors import EdgespecError, NetworkError, NoAccess, NotFound
from edgespec.models.hub_errors import FAILURES, Asked, Patience, meaning, offline
from edgespec.models.hub_names import (
    check_file,
    check_repo,
    check_revision,
    is_commit,
    is_fetched,
    is_pickled,
    is_sha256,
)
from edgespec.models.hub_settings import check_endpoint, check_token
from edgespec.models.placing import RepoFolder
from edgespec.models.request import body_of, check_status, opened
from edgespec.models.shown import shown

_MAIN = "main"
_ANSWER_S = 60.0
_MOST_LISTED = 64 << 20  # bytes
_MOST_BYTES = 1 << 53  # of one file; beyond it lies no disk
_LICENCE = "license:"
_WEIGHTS = (".gguf", ".safetensors")


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


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub and the cache for what comes from it. offline: the cache alone answers."""

    endpoint: str
    cache: Path
    token: str | None = field(default=None, repr=False)
    offline: bool = False

    @classmethod
    def from_environment(cls) -> Self:
        """As every tool for the hub reads HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE.

        Raises: BadInput, NoAccess or EdgespecError for what cannot be meant.
        """
        from huggingface_hub import constants

        check_endpoint(constants.ENDPOINT)
        return cls(
            constants.ENDPOINT,
            Path(constants.HF_HUB_CACHE),
            None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else _stored_token(),
            constants.HF_HUB_OFFLINE,
        )

    def folder(self, repo: str) -> RepoFolder:
        return RepoFolder(self.cache, repo)

    def asked(self, snapshot: Snapshot) -> Asked:
        return Asked(self.endpoint, snapshot.repo, snapshot.revision, self.token is not None)

    def snapshot(
        self,
        repo: str,
        revision: str | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> Snapshot:
        """The repository at a branch, tag or commit, pinned; `note` hears of retries.

        Offline: the files that the cache has of it. Raises: BadInput for impossible names;
        NotFound; NoAccess; NetworkError; EdgespecError for unsafe names of files.
        """
        check_repo(repo)
        wanted = revision or _MAIN
        check_revision(wanted)
        asked = Asked(self.endpoint, repo, wanted, self.token is not None)
        if self.offline:
            try:
                return self._cached_snapshot(repo, wanted)
            except OSError as error:
                raise meaning(error, asked) from error
        patience = Patience(asked, note)
        while True:
            try:
                answer = self._ask(repo, wanted)
                break
            except FAILURES as error:
                patience.wait(error)
        return _pinned(answer, repo, wanted)

    def cached(self, snapshot: Snapshot, file: RemoteFile) -> Path | None:
        """Where the file lies, whole, under its name; None if it has yet to be fetched."""
        path = self.folder(snapshot.repo).pointer(snapshot.commit, file.name)
        try:
            return path if path.stat().st_size == file.size else None
        except OSError:
            return None

    def _ask(self, repo: str, revision: str) -> bytes:
        """What the hub answers about a repository: JSON, unread."""
        url = f"{self.endpoint}/api/models/{repo}/revision/{quote(revision, safe='')}?blobs=true"
        with opened(url, self.token, {"Accept": "application/json"}) as answer:
            check_status(answer)
            return body_of(answer, _MOST_LISTED, _ANSWER_S)

    def _cached_snapshot(self, repo: str, revision: str) -> Snapshot:
        folder = self.folder(repo)
        commit = folder.commit_of(revision) or revision
        top = folder.pointer(commit, ".") if is_commit(commit) else None
        if top is None or not top.is_dir():
            raise offline(repo)
        found = sorted(path for path in top.rglob("*") if path.is_file())
        named = [(path.relative_to(top).as_posix(), path) for path in found]
        files = tuple(_cached_file(name, path) for name, path in named if is_fetched(name))
        return Snapshot(repo, revision, commit, files)


def _cached_file(name: str, path: Path) -> RemoteFile:
    # the link's first hop: a blob may itself be a link into a store that repositories share
    blob = path.readlink().name if path.is_symlink() else ""
    return RemoteFile(name, path.stat().st_size, blob if is_sha256(blob) else None, blob)


def _stored_token() -> str | None:
    from huggingface_hub import get_token

    try:
        token = get_token()
    except UnicodeDecodeError as error:
        raise NoAccess(
            "The stored token for the hub is damaged; renew it with 'hf auth login'."
        ) from error
    except OSError as error:
        where, reason = shown(error.filename or "HF_HOME"), shown(error.strerror or error)
        raise EdgespecError(
            f"{where}: {reason}, so no token can be read; check HF_HOME and its permissions."
        ) from error
    check_token(token)
    return token


def _pinned(answer: bytes, repo: str, revision: str) -> Snapshot:
    """Raises: NetworkError for anything but what a hub says; NotFound; EdgespecError."""
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError) as error:
        raise _senseless(repo) from error
    match told:
        case {"sha": str(commit), "siblings": list(entries)} if is_commit(commit):
            listed = [_named(repo, entry) for entry in entries]
        case _:
            raise _senseless(repo)
    files = tuple(_remote(repo, name, entry) for name, entry in listed if is_fetched(name))
    pickled = [name for name, _ in listed if is_pickled(name)]
    if pickled and not any(file.name.endswith(_WEIGHTS) for file in files):
        raise NotFound(
            f"{shown(repo)} holds its weights only as pickle files ({shown(pickled[0], 80)}), which"
            " can run code and are never fetched; look for a GGUF version of it."
        )
    files = tuple(sorted(files, key=lambda file: file.name))
    return Snapshot(repo, revision, commit, files, _licence(repo, told.get("tags")))


def _named(repo: str, entry: object) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, dict) and isinstance(name := entry.get("rfilename"), str):
        return name, entry
    raise _senseless(repo)


def _remote(repo: str, name: str, entry: dict[str, Any]) -> RemoteFile:
    check_file(repo, name)
    lfs = entry.get("lfs")
    if lfs is None:
        blob, size = entry.get("blobId"), entry.get("size")
        known = is_commit(blob)
    else:
        blob, size = (lfs.get("sha256"), lfs.get("size")) if isinstance(lfs, dict) else (None, None)
        known = is_sha256(blob)
    if not known or type(size) is not int or not 0 <= size <= _MOST_BYTES:
        raise _senseless(repo)
    return RemoteFile(name, size, None if lfs is None else str(blob), str(blob))


def _licence(repo: str, tags: object) -> str | None:
    if tags is None:
        return None
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _senseless(repo)
    stated = (tag.removeprefix(_LICENCE) for tag in tags if tag.startswith(_LICENCE))
    return next((shown(licence, 80) for licence in stated), None)


def _senseless(repo: str) -> EdgespecError:
    return NetworkError(
        f"The answer about {shown(repo)} is not what a hub says; check HF_ENDPOINT, and whether the"
        " network asks to log in first."
    )
