"""What ended fetches left is found, so that it can be shown and deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_hub import FakeHub, Fault
from scene import Told

from edgespec.errors import NetworkError
from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub
from edgespec.models.partial import Unfinished, unfinished

REPO = "org/model"
CONTENT = bytes(range(256)) * 4000
CUT = 300_000


def test_a_part_is_found_with_what_it_has_and_what_it_would_have(
    fake_hub: FakeHub, client: Hub, waits: list[float], told: Told
) -> None:
    fake_hub.add(REPO, {"m.gguf": CONTENT})
    fake_hub.faults += [Fault(cut=CUT), *[Fault(status=404)] * 9]
    snapshot = client.snapshot(REPO)
    with pytest.raises(NetworkError):
        fetch(client, snapshot, snapshot.files, told)
    folder = client.folder(REPO)
    part = folder.part(snapshot.files[0].blob)
    assert unfinished(folder.root) == [Unfinished(part, CUT, len(CONTENT))]
    assert unfinished(folder.root)[0].files == (part, folder.note(snapshot.files[0].blob))
    fake_hub.faults.clear()
    fetch(client, snapshot, snapshot.files, told)
    assert unfinished(folder.root) == []


@pytest.mark.parametrize("note", [None, b"{", b"[" * 100_000, b'{"size": "12"}', b"[]"])
def test_a_part_without_a_sound_note_has_no_known_total(tmp_path: Path, note: bytes | None) -> None:
    part = tmp_path / "blobs" / f"{'a' * 64}.part"
    part.parent.mkdir()
    part.write_bytes(b"123")
    if note is not None:
        part.with_name(f"{part.name}.json").write_bytes(note)
    assert unfinished(tmp_path) == [Unfinished(part, 3, None)]


@pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")
def test_links_folders_and_other_files_are_no_parts(tmp_path: Path) -> None:
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    (tmp_path / "precious").write_bytes(b"mine")
    (blobs / f"{'a' * 64}.part").symlink_to(tmp_path / "precious")
    (blobs / f"{'b' * 64}.part").mkdir()
    (blobs / "notes.part").write_bytes(b"x")
    (blobs / ("c" * 64)).write_bytes(b"x")
    assert unfinished(tmp_path) == []


def test_a_folder_that_is_not_there_has_no_parts(tmp_path: Path) -> None:
    assert unfinished(tmp_path / "nowhere") == []
