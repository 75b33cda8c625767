"""Folders as other programs keep their models in, made of tiny files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from gguf_bytes import Gguf

from edgespec.models.installed import InstalledModel, InstalledPair

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "f" * 40


def gguf(seed: int = 0) -> bytes:
    """A sound model file; different seeds give different contents."""
    return Gguf().bytes() + bytes([seed])


def hub_repo(
    cache: Path, repo: str, files: Mapping[str, bytes], commit: str = COMMIT, ref: str = "main"
) -> Path:
    """A repository as the hub's cache holds it; returns the snapshot's folder."""
    root = cache / f"models--{repo.replace('/', '--')}"
    snapshot = root / "snapshots" / commit
    for name, content in files.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        link = snapshot / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    if ref:
        (root / "refs").mkdir(parents=True, exist_ok=True)
        (root / "refs" / ref).write_text(commit)
    return snapshot


def ollama_model(root: Path, name: str, content: bytes) -> Path:
    """A model as Ollama holds it; `name` is model/tag. Returns the manifest."""
    layers = []
    for kind, data in (("image.model", content), ("image.license", b"free")):
        digest = hashlib.sha256(data).hexdigest()
        blob = root / "blobs" / f"sha256-{digest}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(data)
        layers.append({"mediaType": f"application/vnd.ollama.{kind}", "digest": f"sha256:{digest}"})
    manifest = root / "manifests" / "registry.ollama.ai" / "library" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"schemaVersion": 2, "layers": layers}))
    return manifest


def installed_pair(
    name: str, target: Path, draft: Path | None = None, pulled: float = 1e9
) -> InstalledPair:
    """A record of GGUF files that lie somewhere."""
    return InstalledPair(name, "gguf", _model(target), _model(draft) if draft else None, pulled)


def _model(file: Path) -> InstalledModel:
    size = file.stat().st_size if file.exists() else 1
    return InstalledModel("org/repo", COMMIT, (file,), size)
