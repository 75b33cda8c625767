"""What the hub, the network or the disk refuses: one line, the promised exit code, nothing half
visible.
"""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from fake_hub import COMMIT, FakeHub, Fault
from huggingface_hub import constants
from scene import TOKEN, Scene, Told

from edgespec.errors import BadInput, EdgespecError, NetworkError, NoAccess, NotFound
from edgespec.models import fetch as fetching
from edgespec.models import partial
from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub, RemoteFile

REPO = "org/model"
CONTENT = bytes(range(256)) * 4000
CUT = 300_000


@pytest.fixture
def scene(fake_hub: FakeHub, client: Hub, waits: list[float]) -> Scene:
    """One repository with one large file, CONTENT, and a small one."""
    fake_hub.add(REPO, {"m.gguf": CONTENT, "tokenizer.json": b"{}", "run.py": b"import os"})
    snapshot = client.snapshot(REPO)
    large_first = sorted(snapshot.files, key=lambda file: -file.size)
    return Scene(fake_hub, client, replace(snapshot, files=tuple(large_first)), waits)


def one_line(error: EdgespecError) -> str:
    text = str(error)
    assert text.isprintable()
    assert text.endswith(".")
    return text


def test_a_snapshot_is_pinned_to_the_commit_and_lists_only_what_may_be_fetched(
    scene: Scene,
) -> None:
    assert scene.snapshot.commit == COMMIT
    assert scene.snapshot.licence == "apache-2.0"
    assert [file.name for file in scene.snapshot.files] == ["m.gguf", "tokenizer.json"]
    large, small = scene.snapshot.files
    assert large.sha256 == large.blob
    assert small.sha256 is None
    assert len(small.blob) == 40


def test_the_token_goes_to_the_hub_and_never_to_the_storage_host(scene: Scene) -> None:
    assert scene.fetch() == CONTENT
    by_host = {
        host: {seen.headers.get("authorization") for seen in scene.hub.seen if seen.host == host}
        for host in ("hub", "storage")
    }
    assert by_host == {"hub": {f"Bearer {TOKEN}"}, "storage": {None}}
    assert TOKEN not in repr(scene.client)


def test_without_a_token_none_is_sent_even_if_one_is_stored(
    fake_hub: FakeHub, hub_cache: Path, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    fake_hub.add(REPO, {"m.gguf": CONTENT, "config.json": b"{}"})
    client = Hub(fake_hub.endpoint, hub_cache)
    snapshot = client.snapshot(REPO)
    fetch(client, snapshot, snapshot.files, told)
    assert not any("authorization" in seen.headers for seen in fake_hub.seen)


def test_a_repository_that_is_not_there(client: Hub) -> None:
    with pytest.raises(NotFound) as caught:
        client.snapshot("org/mdoel")
    assert caught.value.exit_code == 3
    assert "shows no repository org/mdoel; check the spelling" in one_line(caught.value)


def test_a_private_repository_is_there_for_its_reader_alone(
    fake_hub: FakeHub, client: Hub, hub_cache: Path
) -> None:
    fake_hub.add(REPO, {"m.gguf": CONTENT}, reader=TOKEN)
    assert client.snapshot(REPO).commit == COMMIT
    with pytest.raises(NotFound, match="hf auth login"):
        Hub(fake_hub.endpoint, hub_cache).snapshot(REPO)


def test_a_revision_that_is_not_there(scene: Scene) -> None:
    with pytest.raises(NotFound, match="no revision 'v2'") as caught:
        scene.client.snapshot(REPO, "v2")
    assert caught.value.exit_code == 3


def test_a_gated_repository_says_where_its_terms_are(scene: Scene) -> None:
    scene.hub.repos[REPO].gated = True
    with pytest.raises(NoAccess) as caught:
        scene.fetch()
    assert caught.value.exit_code == 4
    assert "accept its terms at https://hf.co/org/model, then 'hf auth login'" in one_line(
        caught.value
    )
    assert scene.visible == []
    assert scene.waits == []


def test_a_gated_repository_says_the_same_about_a_small_file(scene: Scene) -> None:
    scene.hub.repos[REPO].gated = True
    with pytest.raises(NoAccess, match=r"https://hf\.co/org/model"):
        fetch(scene.client, scene.snapshot, scene.snapshot.files[1:], scene.told)


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (401, NoAccess, "does not accept your token"),
        (403, NoAccess, "your account may not read org/model"),
        (404, NotFound, "shows no repository"),
        (400, NetworkError, "status 400"),
        (418, NetworkError, "status 418"),
    ],
)
def test_a_refusal_is_final(
    scene: Scene, status: int, kind: type[EdgespecError], says: str
) -> None:
    scene.hub.api_faults += [Fault(status=status)]
    with pytest.raises(kind, match=says) as caught:
        scene.client.snapshot(REPO)
    one_line(caught.value)
    assert scene.waits == []


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_refusal_is_tried_again_and_waited_for_longer_each_time(
    scene: Scene, status: int
) -> None:
    scene.hub.api_faults += [Fault(status=status)] * 3
    assert scene.client.snapshot(REPO).commit == COMMIT
    assert len(scene.waits) == 3
    assert scene.waits == sorted(set(scene.waits))


def test_tries_have_an_end(scene: Scene) -> None:
    scene.hub.api_faults += [Fault(status=503)] * 100
    with pytest.raises(NetworkError, match="status 503") as caught:
        scene.client.snapshot(REPO)
    assert caught.value.exit_code == 5
    assert len(scene.waits) == 5


@pytest.mark.parametrize("where", ["api", "content"])
def test_a_busy_host_is_waited_for_as_long_as_it_asks(scene: Scene, where: str) -> None:
    busy = Fault(status=429, headers={"Retry-After": "7"})
    (scene.hub.api_faults if where == "api" else scene.hub.faults).append(busy)
    assert scene.client.snapshot(REPO).commit == COMMIT
    assert scene.fetch() == CONTENT
    assert scene.waits == [7.0]


def test_a_host_that_asks_for_an_hour_is_not_waited_for(scene: Scene) -> None:
    scene.hub.api_faults += [Fault(status=429, headers={"Retry-After": "3600"})]
    with pytest.raises(NetworkError, match="again in 3600 s"):
        scene.client.snapshot(REPO)
    assert scene.waits == []


@pytest.mark.parametrize("told", ["-5", "soon", "Wed, 21 Oct 2015 07:28:00 GMT", "9" * 400, "\x1b"])
def test_a_wait_that_makes_no_sense_does_no_harm(scene: Scene, told: str) -> None:
    scene.hub.api_faults += [Fault(status=429, headers={"Retry-After": told})]
    if told.startswith("9"):
        with pytest.raises(NetworkError):
            scene.client.snapshot(REPO)
    else:
        assert scene.client.snapshot(REPO).commit == COMMIT
        assert all(0 <= wait < 60 for wait in scene.waits)


def test_an_address_that_expired_on_the_storage_host_is_asked_for_again(scene: Scene) -> None:
    scene.hub.faults += [Fault(status=403), Fault(status=401)]
    assert scene.fetch() == CONTENT
    asked = [seen for seen in scene.hub.content_requests("hub") if "m.gguf" in seen.path]
    assert len(asked) == 3


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"[]", b'{"sha": 7}', b'{"id": "x"}'])
def test_an_answer_that_no_hub_gives(scene: Scene, body: bytes) -> None:
    scene.hub.api_faults += [Fault(status=200, body=body)]
    with pytest.raises(NetworkError, match="not what a hub says"):
        scene.client.snapshot(REPO)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sha", "../../../../tmp"),
        ("sha", "main"),
        ("size", -1),
        ("size", "12"),
        ("sha256", "../../x"),
        ("blobId", "../../x"),
    ],
)
def test_a_listing_with_figures_that_could_become_paths_is_not_believed(
    scene: Scene, key: str, value: object
) -> None:
    lfs = {"size": 3, "sha256": "a" * 64, "pointerSize": 130}
    large = {"rfilename": "m.gguf", "size": 3, "blobId": "b" * 40, "lfs": lfs}
    small = {"rfilename": "c.json", "size": 3, "blobId": "b" * 40}
    listing = {"id": REPO, "sha": COMMIT, "siblings": [large, small]}
    for table in (listing, lfs, small):
        if key in table:
            table[key] = value
    scene.hub.api_faults += [Fault(status=200, body=json.dumps(listing).encode())]
    with pytest.raises(NetworkError, match="not what a hub says"):
        scene.client.snapshot(REPO)


def test_a_hub_that_cannot_be_reached(hub_cache: Path, waits: list[float]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(NetworkError, match="cannot be reached") as caught:
            Hub(endpoint, hub_cache).snapshot(REPO)
    assert caught.value.exit_code == 5
    assert len(waits) == 5
    one_line(caught.value)


def test_offline_what_is_in_the_cache_is_found_and_nothing_is_asked(scene: Scene) -> None:
    paths = fetch(scene.client, scene.snapshot, scene.snapshot.files, scene.told)
    scene.hub.seen.clear()
    offline = replace(scene.client, offline=True)
    for revision in (None, COMMIT):
        snapshot = offline.snapshot(REPO, revision)
        assert snapshot.commit == COMMIT
        assert set(snapshot.files) == set(scene.snapshot.files)
    assert fetch(offline, scene.snapshot, scene.snapshot.files, scene.told) == paths
    assert scene.hub.seen == []


def test_offline_what_is_not_in_the_cache_is_an_error_that_says_how_to_get_it(
    scene: Scene,
) -> None:
    offline = replace(scene.client, offline=True)
    with pytest.raises(NetworkError, match="unset it") as caught:
        offline.snapshot(REPO)
    assert caught.value.exit_code == 5
    with pytest.raises(NetworkError, match="unset it"):
        fetch(offline, scene.snapshot, scene.snapshot.files, scene.told)
    assert not scene.client.cache.exists()


@pytest.mark.parametrize(
    "name",
    ["../x.gguf", "a/../../x.gguf", "/etc/x.gguf", "a\\x.gguf", "C:x.gguf", "a//x.gguf",
     "./x.gguf", "x\x1b]52;c;aGk=\x07.gguf", "x\n.gguf", "x\u202efugg.gguf", "a" * 300 + ".gguf",
     "a /x.gguf", "x\0.gguf"],
)  # fmt: skip
def test_a_name_that_could_leave_its_folder_or_fool_a_reader_is_refused(
    fake_hub: FakeHub, client: Hub, told: Told, name: str
) -> None:
    fake_hub.add(REPO, {"good.gguf": CONTENT, name: CONTENT})
    with pytest.raises(EdgespecError, match="unsafe name") as caught:
        client.snapshot(REPO)
    assert caught.value.exit_code == 1
    one_line(caught.value)
    fake_hub.repos[REPO].files.pop(name)
    snapshot = client.snapshot(REPO)
    evil = RemoteFile(name, 1, "a" * 64, "a" * 64)
    with pytest.raises(EdgespecError, match="unsafe name"):
        fetch(client, snapshot, [*snapshot.files, evil], told)
    assert not client.cache.exists()


@pytest.mark.parametrize("name", ["run.py", "pytorch_model.bin", "m.gguf.exe", "README.md"])
def test_other_kinds_of_files_are_never_fetched(scene: Scene, name: str) -> None:
    with pytest.raises(BadInput, match="not fetched"):
        fetch(scene.client, scene.snapshot, [RemoteFile(name, 1, None, "a" * 40)], scene.told)


@pytest.mark.parametrize(
    "repo", ["../x", "a/b/c", "a--b/c", "a/b:c", "a/\x1b[2J", "", "a/..", "https://evil.test/a"]
)
def test_an_impossible_repository_is_not_asked_for(
    fake_hub: FakeHub, client: Hub, repo: str
) -> None:
    with pytest.raises(BadInput) as caught:
        client.snapshot(repo)
    one_line(caught.value)
    assert fake_hub.seen == []


@pytest.mark.parametrize("revision", ["../../main", "/main", "a\\b", "a:b", "\x1b[2J"])
def test_an_impossible_revision_is_not_asked_for(
    fake_hub: FakeHub, client: Hub, revision: str
) -> None:
    with pytest.raises(BadInput, match="revision"):
        client.snapshot(REPO, revision)
    assert fake_hub.seen == []


def test_a_repository_of_pickle_files_is_named_for_what_it_is(
    fake_hub: FakeHub, client: Hub
) -> None:
    fake_hub.add(REPO, {"pytorch_model.bin": b"\x80", "config.json": b"{}"})
    with pytest.raises(NotFound, match=r"only as pickle files \(pytorch_model\.bin\)") as caught:
        client.snapshot(REPO)
    assert caught.value.exit_code == 3


def test_a_file_that_does_not_fit_is_not_started(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage("/")._replace(free=1_000_000)
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: free)
    with pytest.raises(EdgespecError, match=r"68 MB must fit .* 1 MB free; make room") as caught:
        scene.fetch()
    assert caught.value.exit_code == 1
    assert scene.hub.content_requests() == []


class FullDisk(io.FileIO):
    """A file on a disk with room for CUT bytes of it."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        room = CUT - self.tell()
        if room <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(data[:room])


def test_a_disk_that_fills_up_keeps_the_part_and_the_next_run_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            partial, "open", lambda path, mode, buffering: FullDisk(path, mode), raising=False
        )
        with pytest.raises(EdgespecError, match="the disk is full; what has arrived") as caught:
            scene.fetch()
    assert caught.value.exit_code == 1
    one_line(caught.value)
    assert scene.part.read_bytes() == CONTENT[:CUT]
    assert scene.visible == []
    assert scene.is_clean
    assert scene.fetch() == CONTENT
    assert scene.ranges == [None, f"bytes={CUT}-"]


@pytest.mark.skipif(os.name == "nt", reason="there permissions are not bits")
def test_a_cache_that_cannot_be_written_is_one_line(scene: Scene) -> None:
    scene.client.cache.parent.mkdir(exist_ok=True)
    scene.client.cache.write_text("a file where a folder should be")
    with pytest.raises(EdgespecError, match="check the cache's folder and its disk") as caught:
        scene.fetch()
    assert type(caught.value) is EdgespecError
    one_line(caught.value)


def test_without_links_the_file_itself_lies_under_its_name(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_SYMLINKS", True)
    paths = fetch(scene.client, scene.snapshot, scene.snapshot.files, scene.told)
    assert not any(path.is_symlink() for path in paths)
    assert paths[0].read_bytes() == CONTENT
    assert scene.is_clean
    assert list(scene.part.parent.iterdir()) == []
    scene.hub.seen.clear()
    assert scene.fetch() == CONTENT
    assert scene.hub.seen == []


def test_a_file_that_another_commit_shares_is_not_fetched_again(scene: Scene) -> None:
    scene.fetch()
    scene.hub.repos[REPO].commit = "d" * 40
    newer = replace(scene, snapshot=scene.client.snapshot(REPO))
    scene.hub.seen.clear()
    assert newer.fetch() == CONTENT
    assert scene.hub.seen == []
    assert scene.client.folder(REPO).ref("main").read_text() == "d" * 40


def test_the_library_finds_what_was_fetched(scene: Scene) -> None:
    from huggingface_hub import try_to_load_from_cache

    fetch(scene.client, scene.snapshot, scene.snapshot.files, scene.told)
    found = try_to_load_from_cache(REPO, "m.gguf", cache_dir=scene.client.cache)
    assert isinstance(found, str)
    assert Path(found).read_bytes() == CONTENT
