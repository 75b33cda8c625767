"""What tests of the hub share beside the fake hub itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import Result
from fake_hub import FakeHub
from huggingface_hub import scan_cache_dir

from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub, RemoteFile, Snapshot

TARGET, DRAFT = "org/big-GGUF", "org/small-GGUF"
Pull = Callable[..., Result]
TOKEN = "hf_the_secret_of_the_test"


@dataclass
class Told:
    """A report that remembers."""

    done: list[tuple[str, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)

    def resumes(self, file: RemoteFile, done: int) -> None:
        self.resumed.append(done)

    def progress(self, file: RemoteFile, done: int) -> None:
        self.done.append((file.name, done))

    def note(self, text: str) -> None:
        self.notes.append(text)


@dataclass
class Scene:
    """A hub with one repository, and a client with a cache. waits: seconds between tries."""

    hub: FakeHub
    client: Hub
    snapshot: Snapshot
    waits: list[float]
    told: Told = field(default_factory=Told)

    def fetch(self) -> bytes:
        """The content of the first file, fetched."""
        return fetch(self.client, self.snapshot, self.snapshot.files[:1], self.told)[0].read_bytes()

    @property
    def part(self) -> Path:
        return self.client.folder(self.snapshot.repo).part(self.snapshot.files[0].blob)

    @property
    def ranges(self) -> list[str | None]:
        """What was asked of the storage host, request by request."""
        return [seen.headers.get("range") for seen in self.hub.content_requests()]

    @property
    def visible(self) -> list[str]:
        """Files that other tools see."""
        root = self.client.folder(self.snapshot.repo).root
        return sorted(path.name for path in (root / "snapshots").rglob("*") if path.is_file())

    @property
    def is_clean(self) -> bool:
        """Whether the library finds nothing half done and nothing damaged."""
        scanned = scan_cache_dir(self.client.cache)
        return not scanned.incomplete_files and not scanned.warnings
