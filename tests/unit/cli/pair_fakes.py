"""A machine whose memory, backends and model folders the test decides."""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

from edgespec.cli.recommend import Room
from edgespec.models.installed import InstalledModel, InstalledPair

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CPU = Room(12_000_000_000, False, ("gguf",))
GPU = Room(24_000_000_000, True, ("gguf",))
MAC = Room(20_000_000_000, True, ("mlx", "gguf"))
NOTHING = Room(12_000_000_000, False, ())


def weights(seed: int, size: int = 1000) -> bytes:
    """Something of the size of a model file; no header, so it is told as damaged."""
    return struct.pack("<Q", seed).ljust(size, b"w")


def hub_repo(
    cache: Path, repo: str, files: Mapping[str, bytes], commit: str = COMMIT, ref: str = "main"
) -> Path:
    """A repository as the hub's cache holds it; returns the snapshot's folder."""
    root = cache / f"models--{repo.replace('/', '--')}"
    snapshot = root / "snapshots" / commit
    for name, content in files.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        for path in (blob, snapshot / name):
            path.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
        (snapshot / name).symlink_to(blob)
    (root / "refs").mkdir(parents=True, exist_ok=True)
    (root / "refs" / ref).write_text(commit)
    return snapshot


def blobs(cache: Path, repo: str = "org--M") -> set[bytes]:
    """The contents that a repository of the cache still holds, by their first byte."""
    return {blob.read_bytes()[:1] for blob in (cache / f"models--{repo}" / "blobs").glob("*")}


def ollama_model(root: Path, name: str, *contents: bytes) -> None:
    """A model as Ollama keeps it; the contents are its weights and its licences."""
    layers = []
    for number, content in enumerate(contents):
        digest = hashlib.sha256(content).hexdigest()
        (root / "blobs").mkdir(parents=True, exist_ok=True)
        (root / "blobs" / f"sha256-{digest}").write_bytes(content)
        kind = "application/vnd.ollama.image." + ("license" if number else "model")
        layers.append({"mediaType": kind, "digest": f"sha256:{digest}"})
    manifest = root / "manifests/registry.ollama.ai/library" / name
    manifest.parent.mkdir(parents=True, exist_ok=True)
    manifest.write_text(json.dumps({"layers": layers}))


def pulled(
    name: str, target: Path, draft: Path | None = None, pulled: float = 1e9
) -> InstalledPair:
    """A record of GGUF files in the hub's cache."""
    sides = [
        InstalledModel("org/repo", file.parent.name, (file,), file.stat().st_size)
        for file in (target, draft)
        if file is not None
    ]
    return InstalledPair(name, "gguf", sides[0], sides[1] if draft else None, pulled)


if __name__ == "__main__":  # as edgespec, on a machine without the demo, with a pull of its own
    import click

    from edgespec.cli import recommend, root, usual
    from edgespec.models import store

    @click.command()
    @click.argument("pair")
    def pull(pair: str) -> None:
        click.echo(f"pulled {pair}")

    root.edgespec.add_command(pull, "pull")
    store.find_demo = lambda: None
    usual.room_here = recommend.room_here = lambda: CPU
    sys.argv[0] = "edgespec"
    root.main()
