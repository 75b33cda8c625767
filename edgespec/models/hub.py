"""What the hub has: a repository at one commit, and the files of it that may be fetched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from edgespec.errors import EdgespecError, NetworkError, NotFound
from edgespec.models.hub_errors import FAILURES, Asked, Patience, offline
from edgespec.models.hub_names import (
    check_file,
    check_repo,
    check_revision,
    is_commit,
    is_fetched,
    is_pickled,
    is_sha256,
)
from edgespec.models.placing import RepoFolder
from edgespec.models.shown import shown

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

_MAIN = "main"
_ANSWER_S = 30.0
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
        """As every tool for the hub reads HF_ENDPOINT, HF_TOKEN, HF_HOME and HF_HUB_OFFLINE."""
        from huggingface_hub import constants, get_token

        implicit = not constants.HF_HUB_DISABLE_IMPLICIT_TOKEN
        return cls(
            constants.ENDPOINT,
            Path(constants.HF_HUB_CACHE),
            get_token() if implicit else None,
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
        NotFound; NoAccess; NetworkError.
        """
        check_repo(repo)
        wanted = revision or _MAIN
        check_revision(wanted)
        if self.offline:
            return self._cached_snapshot(repo, wanted)
        patience = Patience(Asked(self.endpoint, repo, wanted, self.token is not None), note)
        while True:
            try:
                info = self._ask(repo, wanted)
                break
            except FAILURES as error:
                patience.wait(error)
        return _pinned(info, repo, wanted)

    def cached(self, snapshot: Snapshot, file: RemoteFile) -> Path | None:
        """Where the file lies, whole, under its name; None if it has yet to be fetched."""
        path = self.folder(snapshot.repo).pointer(snapshot.commit, file.name)
        try:
            return path if path.stat().st_size == file.size else None
        except OSError:
            return None

    def _ask(self, repo: str, revision: str) -> ModelInfo:
        from huggingface_hub import HfApi

        api = HfApi(self.endpoint, token=self.token or False, library_name="edgespec")
        try:
            return api.model_info(repo, revision=revision, files_metadata=True, timeout=_ANSWER_S)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, FAILURES):
                raise
            raise _senseless(repo) from error

    def _cached_snapshot(self, repo: str, revision: str) -> Snapshot:
        folder = self.folder(repo)
        ref = folder.ref(revision)
        commit = ref.read_text().strip() if ref.is_file() else revision
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


def _pinned(info: ModelInfo, repo: str, revision: str) -> Snapshot:
    if not is_commit(info.sha) or info.sha is None or info.siblings is None:
        raise _senseless(repo)
    names = [file.rfilename for file in info.siblings]
    files = tuple(_remote(repo, file) for file in info.siblings if is_fetched(file.rfilename))
    pickled = [name for name in names if is_pickled(name)]
    if pickled and not any(file.name.endswith(_WEIGHTS) for file in files):
        raise NotFound(
            f"{shown(repo)} holds its weights only as pickle files ({shown(pickled[0], 80)}), which"
            " can run code and are never fetched; look for a GGUF version of it."
        )
    stated = (tag for tag in info.tags or () if tag.startswith(_LICENCE))
    licence = next((tag.removeprefix(_LICENCE) for tag in stated), None)
    files = tuple(sorted(files, key=lambda file: file.name))
    return Snapshot(repo, revision, info.sha, files, licence)


def _remote(repo: str, file: RepoSibling) -> RemoteFile:
    check_file(repo, file.rfilename)
    sha256 = file.lfs.sha256 if file.lfs else None
    size = file.lfs.size if file.lfs else file.size
    known = is_sha256(sha256) if file.lfs else is_commit(file.blob_id)
    if not known or type(size) is not int or size < 0:
        raise _senseless(repo)
    return RemoteFile(file.rfilename, size, sha256, sha256 or str(file.blob_id))


def _senseless(repo: str) -> EdgespecError:
    return NetworkError(
        f"The answer about {shown(repo)} is not what a hub says; check HF_ENDPOINT, and whether the"
        " network asks to log in first."
    )
