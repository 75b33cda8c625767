"""Which files a model consists of, and short names for what is in them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from edgespec.models.folder import weight_files
from edgespec.models.gguf import read_header
from edgespec.models.split import parts_of


def fingerprint(path: Path) -> str:
    """16 hexadecimal digits from sizes, times of change and headers of a file or a folder.

    The weights are not read. Raises: as read_header(), or as weight_files().
    """
    if os.path.isdir(path):
        return _of_folder(path)
    header = read_header(path)
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{header.file_size},{path.stat().st_mtime_ns}".encode())
    for part in parts_of(path):
        if part != path and os.path.exists(part):
            status = part.stat()
            digest.update(f",{status.st_size},{status.st_mtime_ns}".encode())
    with path.open("rb") as file:
        digest.update(file.read(min(header.data_offset, header.file_size)))
    return digest.hexdigest()


def files_of(path: Path) -> tuple[Path, ...]:
    """The files with a model's weights: every part of a GGUF file, or those in an MLX folder.

    Raises: as weight_files().
    """
    return tuple(weight_files(path)) if os.path.isdir(path) else parts_of(path)


def label_of(path: Path) -> str:
    """What people call the model at a path: a file or a folder by its name, and a snapshot in the
    hub's cache by its repository."""
    repo = path.parent.parent.name
    if path.parent.name == "snapshots" and repo.startswith("models--"):
        return repo.removeprefix("models--").replace("--", "/", 1)
    return path.name


def _of_folder(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for file in [*sorted(folder.glob("*.json")), *weight_files(folder)]:
        try:
            status = file.stat()
        except FileNotFoundError:  # a link that leads nowhere says nothing of the model
            continue
        digest.update(f"{file.name},{status.st_size},{status.st_mtime_ns};".encode())
    return digest.hexdigest()
