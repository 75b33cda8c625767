"""A hub or a cache made to do harm: nothing is written elsewhere, nothing wrong is visible."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fake_hub import COMMIT, FakeHub, Fault, git_id_of
from huggingface_hub import close_session
from scene import TOKEN, Scene

from edgespec.errors import BadInput, EdgespecError, ModelFileError, NetworkError
from edgespec.models import hub as hubs
from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub

REPO = "org/model"
CONTENT = bytes(range(256)) * 4000
CONFIG = b'{"num_hidden_layers": 1}'
links = pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")


@pytest.fixture
def scene(fake_hub: FakeHub, client: Hub, waits: list[float]) -> Scene:
    """A repository with a large file and one that git keeps."""
    fake_hub.add(REPO, {"m.gguf": CONTENT, "config.json": CONFIG})
    snapshot = client.snapshot(REPO)
    large_first = sorted(snapshot.files, key=lambda file: -file.size)
    return Scene(fake_hub, client, replace(snapshot, files=tuple(large_first)), waits)


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """A file of the user's, which stays as it is."""
    file = tmp_path / "precious.txt"
    file.write_bytes(b"mine")
    yield file
    assert file.read_bytes() == b"mine"


def fetch_all(scene: Scene) -> list[bytes]:
    paths = fetch(scene.client, scene.snapshot, scene.snapshot.files, scene.told)
    return [path.read_bytes() for path in paths]


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"../../../../precious.txt"'},
        {"ETag": '"{precious}"'},
        {"X-Repo-Commit": "../../../.."},
        {"X-Repo-Commit": "1" * 40},
        {"X-Xet-Hash": "a" * 64, "X-Xet-Refresh-Route": "{storage}/xet"},
        {"Link": '<{storage}/xet>; rel="xet-auth"', "X-Xet-Hash": "a" * 64},
    ],
)
def test_no_header_of_an_answer_says_where_content_goes_or_comes_from(
    scene: Scene, precious: Path, headers: dict[str, str]
) -> None:
    known = {"precious": precious, "storage": scene.hub.storage}
    sent = {name: value.format(**known) for name, value in headers.items()}
    scene.hub.small_faults += [Fault(headers=sent)] * 3
    assert fetch_all(scene) == [CONTENT, CONFIG]
    root = scene.client.folder(REPO).root
    assert {path.name for path in (root / "blobs").iterdir()} == {
        file.blob for file in scene.snapshot.files
    }
    assert [path.name for path in (root / "snapshots").iterdir()] == [COMMIT]
    assert scene.is_clean
    assert {seen.headers.get("authorization") for seen in scene.hub.content_requests()} == {None}


@pytest.mark.parametrize("body", [CONFIG.replace(b"1", b"9"), CONFIG.replace(b" ", b"\n")])
def test_a_small_file_with_other_content_never_becomes_visible(scene: Scene, body: bytes) -> None:
    scene.hub.small_faults += [Fault(body=body)]
    with pytest.raises(ModelFileError, match=r"config\.json arrived damaged \(git object"):
        fetch_all(scene)
    assert scene.visible == []
    assert fetch_all(scene) == [CONTENT, CONFIG]


@pytest.mark.parametrize("gentle", [True, False])
def test_no_more_of_a_small_file_is_written_than_was_listed(scene: Scene, gentle: bool) -> None:
    scene.hub.small_faults += [Fault(body=bytes(50_000_000), gentle=gentle)]
    with pytest.raises(NetworkError, match="bytes came"):
        fetch_all(scene)
    blobs = scene.client.folder(REPO).root / "blobs"
    assert sum(path.stat().st_size for path in blobs.iterdir()) < 1000
    assert scene.waits == []


def test_a_small_file_goes_on_where_it_broke(scene: Scene) -> None:
    scene.hub.small_faults += [Fault(cut=5)]
    assert fetch_all(scene) == [CONTENT, CONFIG]
    asked = [seen.headers.get("range") for seen in scene.hub.content_requests("hub")]
    assert "bytes=5-" in asked


@pytest.mark.parametrize("blob", ["../../x", "A" * 40, "a" * 41, "", "/etc/passwd"])
def test_content_by_a_name_that_is_no_hash_is_refused(scene: Scene, blob: str) -> None:
    file = replace(scene.snapshot.files[1], blob=blob)
    with pytest.raises(EdgespecError, match="no hash"):
        fetch(scene.client, scene.snapshot, [file], scene.told)
    assert not scene.client.cache.exists()


@links
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("which", ["part", "note", "lock", "blob"])
@pytest.mark.parametrize("hard", [False, True])
def test_a_link_in_the_cache_is_replaced_and_never_written_through(
    scene: Scene, precious: Path, number: int, which: str, hard: bool
) -> None:
    folder, file = scene.client.folder(REPO), scene.snapshot.files[number]
    place = getattr(folder, which)(file.blob)
    place.parent.mkdir(parents=True)
    if hard:
        place.hardlink_to(precious)
    else:
        place.symlink_to(precious)
    assert fetch_all(scene) == [CONTENT, CONFIG]
    assert scene.is_clean


@links
@pytest.mark.parametrize("folder", ["snapshots", f"snapshots/{COMMIT}", "refs"])
def test_a_folder_that_leads_out_of_the_cache_is_not_written_to(
    scene: Scene, tmp_path: Path, folder: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main").write_bytes(b"mine")
    place = scene.client.folder(REPO).root / folder
    place.parent.mkdir(parents=True)
    place.symlink_to(outside)
    if folder == "refs":
        assert fetch_all(scene) == [CONTENT, CONFIG]
    else:
        with pytest.raises(EdgespecError, match="leads out of the cache"):
            fetch_all(scene)
    assert [path.name for path in outside.iterdir()] == ["main"]
    assert (outside / "main").read_bytes() == b"mine"


@links
def test_a_cache_that_is_itself_a_link_is_used(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "large disk").mkdir()
    scene.client.cache.symlink_to(tmp_path / "large disk")
    assert fetch_all(scene) == [CONTENT, CONFIG]


def test_a_cache_that_cannot_be_read_is_one_line(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, _: str) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    fetch_all(scene)
    monkeypatch.setattr(Path, "rglob", refuse)
    with pytest.raises(EdgespecError, match="Permission denied; check the cache's folder"):
        replace(scene.client, offline=True).snapshot(REPO)


def test_a_proxy_that_cannot_be_one_is_named(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    close_session()
    monkeypatch.setenv("HTTP_PROXY", "nonsense://x")
    with pytest.raises(BadInput, match="HTTP_PROXY, HTTPS_PROXY or ALL_PROXY"):
        scene.client.snapshot(REPO)


def test_a_password_in_the_address_of_the_hub_is_not_shown(scene: Scene) -> None:
    address = scene.hub.endpoint.replace("http://", "http://me:secret@")
    scene.hub.api_faults += [Fault(status=418)]
    with pytest.raises(NetworkError) as caught:
        replace(scene.client, endpoint=address).snapshot(REPO)
    assert "secret" not in str(caught.value)


@links
def test_a_part_behind_a_link_is_not_taken_up(scene: Scene, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(CONTENT[:1000])
    folder, file = scene.client.folder(REPO), scene.snapshot.files[0]
    scene.part.parent.mkdir(parents=True)
    scene.part.symlink_to(other)
    folder.note(file.blob).write_text(
        json.dumps({"blob": file.blob, "size": file.size, "etag": ""})
    )
    assert scene.fetch() == CONTENT
    assert other.read_bytes() == CONTENT[:1000]


@pytest.mark.parametrize("number", [0, 1])
def test_a_blob_with_other_content_is_found_and_fetched_again(scene: Scene, number: int) -> None:
    file = scene.snapshot.files[number]
    blob = scene.client.folder(REPO).blob(file.blob)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(bytes(file.size))
    assert fetch_all(scene) == [CONTENT, CONFIG]
    assert scene.told.notes == [f"the cache holds {file.name} damaged; it is fetched again"]


def test_a_sound_blob_is_used_as_it_is(scene: Scene) -> None:
    for file, content in zip(scene.snapshot.files, (CONTENT, CONFIG), strict=True):
        blob = scene.client.folder(REPO).blob(file.blob)
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(content)
    scene.hub.seen.clear()
    assert fetch_all(scene) == [CONTENT, CONFIG]
    assert scene.hub.seen == []


def test_a_note_of_the_commit_that_is_no_text_does_no_harm(scene: Scene) -> None:
    ref = scene.client.folder(REPO).ref("main")
    ref.parent.mkdir(parents=True)
    ref.write_bytes(b"\xff\xfe" * 100)
    with pytest.raises(NetworkError, match="not complete in the cache"):
        replace(scene.client, offline=True).snapshot(REPO)
    assert fetch_all(scene) == [CONTENT, CONFIG]
    assert ref.read_text() == COMMIT


def listing(**changed: object) -> bytes:
    small = {"rfilename": "c.json", "size": len(CONFIG), "blobId": git_id_of(CONFIG)}
    told = {"id": REPO, "sha": COMMIT, "siblings": [small], "tags": []}
    return json.dumps({**told, **changed}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 200_000,
        b'{"sha": "%s", "siblings": %s}' % (COMMIT.encode(), b"[" * 100_000 + b"]" * 100_000),
        listing().replace(b'"size": ', b'"size": ' + b"9" * 5000),
        listing(siblings={"a": 1}),
        listing(siblings=None),
        listing(siblings=[None]),
        listing(siblings=[{"rfilename": 5}]),
        listing(siblings=[{"rfilename": "m.gguf", "lfs": 7}]),
        listing(siblings=[{"rfilename": "m.gguf", "lfs": {"sha256": "a" * 64, "size": True}}]),
        listing(siblings=[{"rfilename": "m.gguf", "lfs": {"sha256": "a" * 64, "size": 1.5}}]),
        listing(siblings=[{"rfilename": "m.gguf", "lfs": {"sha256": "a" * 64, "size": 10**30}}]),
        listing(tags=5),
        listing(tags=[5]),
        listing(sha=None),
        b"\xff\xfe",
    ],
)
def test_a_listing_of_another_form_is_one_line(scene: Scene, body: bytes) -> None:
    scene.hub.api_faults += [Fault(status=200, body=body)]
    with pytest.raises(NetworkError, match="not what a hub says") as caught:
        scene.client.snapshot(REPO)
    assert caught.value.exit_code == 5
    assert str(caught.value).isprintable()
    assert scene.waits == []


def test_a_listing_is_read_only_so_far(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_MOST_LISTED", 2 << 20)
    scene.hub.api_faults += [Fault(status=200, body=listing() + b" " * (3 << 20))]
    with pytest.raises(NetworkError, match=r"larger than 2 MiB\); check HF_ENDPOINT"):
        scene.client.snapshot(REPO)
    assert scene.waits == []


def test_a_listing_that_trickles_has_an_end(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hubs, "_ANSWER_S", -1.0)
    with pytest.raises(NetworkError, match="not complete within"):
        scene.client.snapshot(REPO)


@pytest.mark.parametrize("status", [200, 403, 302])
def test_what_is_packed_is_not_unpacked(scene: Scene, status: int) -> None:
    bomb = gzip.compress(bytes(50 << 20))
    packed = {"Content-Encoding": "gzip", "Location": "/api/models/nowhere/else"}
    scene.hub.api_faults += [Fault(status=status, body=bomb, headers=packed)]
    with pytest.raises(EdgespecError) as caught:
        scene.client.snapshot(REPO)
    assert status != 200 or "sends as gzip what was asked for unpacked" in str(caught.value)


@pytest.mark.parametrize("where", ["api", "small", "large"])
@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://[::1/x", "data:,x"],
)
def test_a_redirect_to_what_is_no_hub_is_final(scene: Scene, where: str, target: str) -> None:
    fault = Fault(status=302, headers={"Location": target})
    named = {"api": "api_faults", "small": "small_faults", "large": "faults"}
    getattr(scene.hub, named[where]).extend([fault] * 9)
    with pytest.raises(NetworkError, match="it sends on to") as caught:
        scene.client.snapshot(REPO) if where == "api" else fetch_all(scene)
    assert "check HF_ENDPOINT" in str(caught.value)
    assert scene.waits == []


def test_redirects_without_end_are_final(scene: Scene) -> None:
    again = f"/api/models/{REPO}/revision/main"
    scene.hub.api_faults += [Fault(status=302, headers={"Location": again})] * 50
    with pytest.raises(NetworkError, match="it sends on and on"):
        scene.client.snapshot(REPO)
    assert scene.waits == []


def test_a_renamed_repository_is_found_where_the_hub_sends_on_to(scene: Scene) -> None:
    scene.hub.add("org/renamed", {"m.gguf": CONTENT}, reader=TOKEN)
    moved = Fault(status=307, headers={"Location": "/api/models/org/renamed?blobs=true"})
    scene.hub.api_faults.append(moved)
    assert [file.name for file in scene.client.snapshot(REPO).files] == ["m.gguf"]


def test_the_token_does_not_follow_to_another_host(scene: Scene) -> None:
    other = f"{scene.hub.storage}/?repo={REPO}&name=config.json"
    scene.hub.api_faults.append(Fault(status=307, headers={"Location": other}))
    with pytest.raises(NetworkError):
        scene.client.snapshot(REPO)
    assert [seen.headers.get("authorization") for seen in scene.hub.content_requests()] == [None]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=204),
        Fault(status=207, body=CONTENT),
        Fault(headers={"Content-Encoding": "gzip"}),
        Fault(body=CONTENT + b"more"),
        Fault(body=CONTENT + b"more", gentle=True),
        Fault(status=200, headers={"Content-Length": "9" * 40}),
    ],
)
def test_an_answer_that_no_host_gives_for_a_file_is_final(scene: Scene, fault: Fault) -> None:
    scene.hub.faults += [fault] * 9
    with pytest.raises(NetworkError):
        fetch_all(scene)
    assert scene.waits == []
    assert scene.visible == ["config.json"]
