"""What a hub may call a repository, a revision and a file, before any of it becomes a path."""

from __future__ import annotations

import re

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from edgespec.errors import BadInput, EdgespecError
from edgespec.models.shown import shown

FETCHED = (".gguf", ".safetensors", ".json", ".jinja", ".txt", ".model")
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# devices on Windows, whatever the ending; source: Microsoft, "Naming Files, Paths and Namespaces"
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$) *(\..*)?", re.I)
_LONGEST = 255  # bytes in one part of a path, on every common file system


def check_repo(repo: str) -> None:
    """Raises: BadInput for what the hub allows no repository to be called."""
    try:
        validate_repo_id(repo)
    except HFValidationError as error:
        raise BadInput(
            f"'{shown(repo, 100)}' cannot be a repository on the hub; give ORGANISATION/NAME."
        ) from error


def check_revision(revision: str) -> None:
    """Raises: BadInput for what can be no branch, tag or commit."""
    if not _is_safe_path(revision):
        raise BadInput(
            f"'{shown(revision, 100)}' cannot be a revision; give a branch, a tag or a commit."
        )


def check_file(repo: str, name: str) -> None:
    """Raises: BadInput for a kind of file that is never fetched; EdgespecError for a name that
    could leave the folder it belongs in.
    """
    if not is_fetched(name):
        kinds = ", ".join(FETCHED)
        raise BadInput(
            f"'{shown(name, 100)}' in {shown(repo)} is not fetched; only {kinds} files are."
        )
    if not _is_safe_path(name):
        raise EdgespecError(
            f"{shown(repo)} holds a file by the unsafe name '{shown(name, 100)}', so nothing of it"
            " is fetched; choose another repository."
        )


def check_blob(repo: str, name: str, blob: str) -> None:
    """Raises: EdgespecError for a content's name that is no hash, since it becomes a path."""
    if not (is_commit(blob) or is_sha256(blob)):
        raise EdgespecError(
            f"{shown(repo)} gives '{shown(blob, 80)}' for the content of {shown(name, 100)}, which"
            " is no hash, so nothing of it is fetched; choose another repository."
        )


def is_fetched(name: str) -> bool:
    return name.lower().endswith(FETCHED)


def is_pickled(name: str) -> bool:
    """Whether loading such a file could run code."""
    return name.lower().endswith(_PICKLED)


def is_commit(text: object) -> bool:
    return isinstance(text, str) and _COMMIT.fullmatch(text) is not None


def is_sha256(text: object) -> bool:
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def _is_safe_path(name: str) -> bool:
    """A relative path that means the same on every system and stays below its folder."""
    if not name.isprintable() or any(c in name for c in '\\:<>"|?*'):
        return False
    parts = name.split("/")
    return all(
        part not in ("", ".", "..")
        and len(part.encode()) <= _LONGEST
        and part[-1] not in " ."
        and _DEVICE.fullmatch(part) is None
        for part in parts
    )
