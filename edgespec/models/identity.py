"""A short name for what is in a model file, for caches of measurements."""

from __future__ import annotations

import hashlib
from pathlib import Path

from edgespec.models.gguf import read_header


def fingerprint(path: Path) -> str:
    """16 hexadecimal digits from the file's size, its time of change and its header.

    The weights are not read. Raises: as read_header().
    """
    header = read_header(path)
    digest = hashlib.blake2b(digest_size=8)
    digest.update(f"{header.file_size},{path.stat().st_mtime_ns}".encode())
    with path.open("rb") as file:
        digest.update(file.read(min(header.data_offset, header.file_size)))
    return digest.hexdigest()
