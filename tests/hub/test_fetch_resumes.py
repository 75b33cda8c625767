"""Transfers that break: they go on from where they were, and what arrives is what was promised."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from fake_hub import PIECE, FakeHub, Fault, Seen
from filelock import FileLock
from scene import Scene

from edgespec.errors import EdgespecError, ModelFileError, NetworkError
from edgespec.models.fetch import missing_bytes
from edgespec.models.hub import Hub

REPO = "org/model"
CONTENT = random.Random(7).randbytes(3_000_000)
CUT = 1_000_000

Process = subprocess.Popen[bytes]
PROGRAM = """
import sys
from pathlib import Path
from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub
class Quiet:
    def resumes(self, file, done): pass
    def progress(self, file, done): pass
    def note(self, text): pass
hub = Hub(sys.argv[1], Path(sys.argv[2]))
snapshot = hub.snapshot("org/model")
fetch(hub, snapshot, snapshot.files, Quiet())
"""


@pytest.fixture
def scene(fake_hub: FakeHub, client: Hub, waits: list[float]) -> Scene:
    """One repository with one large file, CONTENT."""
    fake_hub.add(REPO, {"m.gguf": CONTENT})
    return Scene(fake_hub, client, client.snapshot(REPO), waits)


@pytest.fixture
def running(fake_hub: FakeHub) -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        process.kill()
        process.wait()


def start(scene: Scene) -> Process:
    environment = {**os.environ, "HF_HUB_DISABLE_TELEMETRY": "1"}
    command = [sys.executable, "-c", PROGRAM, scene.client.endpoint, str(scene.client.cache)]
    return subprocess.Popen(command, env=environment)


def wait_for_size(scene: Scene, size: int, process: Process) -> None:
    while process.poll() is None:
        if scene.part.exists() and scene.part.stat().st_size >= size:
            return
        time.sleep(0.002)


def test_a_broken_connection_goes_on_where_it_broke(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), Fault(cut=CUT)]
    assert scene.fetch() == CONTENT
    assert scene.hub.bytes_sent == len(CONTENT)
    assert scene.ranges == [None, f"bytes={CUT}-", f"bytes={2 * CUT}-"]
    assert len(scene.waits) == len(scene.told.notes) == 2


def test_a_body_that_ends_early_without_a_word_is_not_taken_for_the_file(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT, gentle=True)]
    assert scene.fetch() == CONTENT
    assert scene.ranges == [None, f"bytes={CUT}-"]


def test_many_short_breaks_do_not_use_up_the_patience(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=300_000)] * 9
    assert scene.fetch() == CONTENT
    assert len(scene.waits) == 9
    assert len(set(scene.waits)) == 1


def test_a_host_that_never_gets_anywhere_is_given_up_and_the_part_is_kept(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), *[Fault(cut=0)] * 20]
    with pytest.raises(NetworkError, match="run this again"):
        scene.fetch()
    assert scene.waits == sorted(scene.waits)
    assert len(scene.hub.faults) > 10
    assert scene.part.read_bytes() == CONTENT[:CUT]
    assert scene.visible == []
    assert scene.is_clean
    assert missing_bytes(scene.client, scene.snapshot, scene.snapshot.files) == len(CONTENT) - CUT


def test_the_next_run_goes_on_from_the_part_of_the_last(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), *[Fault(status=404)] * 9]
    with pytest.raises(NetworkError):
        scene.fetch()
    scene.hub.faults.clear()
    scene.hub.seen.clear()
    scene.told.done.clear()
    assert scene.fetch() == CONTENT
    assert scene.ranges == [f"bytes={CUT}-"]
    assert scene.told.resumed[-1] == CUT
    assert scene.told.done[0][1] > CUT
    assert scene.hub.bytes_sent == len(CONTENT)
    assert not scene.part.exists()
    assert [path.name for path in scene.part.parent.iterdir()] == [scene.snapshot.files[0].sha256]


def test_a_host_that_cannot_resume_starts_over(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), Fault(ignore_range=True)]
    assert scene.fetch() == CONTENT
    assert scene.hub.bytes_sent == len(CONTENT) + CUT
    assert "the host sends the file from its beginning" in scene.told.notes


def test_content_under_another_etag_starts_over(scene: Scene) -> None:
    other = bytes(len(CONTENT))
    scene.hub.faults += [Fault(cut=CUT, body=other, etag="another")]
    assert scene.fetch() == CONTENT
    assert scene.hub.content_requests()[1].headers["if-range"] == '"another"'


def test_a_host_that_ignores_the_etag_cannot_mix_two_files(scene: Scene) -> None:
    other = bytes(len(CONTENT))
    scene.hub.faults += [Fault(cut=CUT, body=other, etag="another"), Fault(ignore_if_range=True)]
    assert scene.fetch() == CONTENT
    assert scene.ranges == [None, f"bytes={CUT}-", None]


def test_a_range_the_host_does_not_have_starts_over(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), Fault(body=b"short", ignore_if_range=True)]
    assert scene.fetch() == CONTENT
    assert scene.ranges == [None, f"bytes={CUT}-", None]


@pytest.mark.parametrize(
    "left", [CONTENT + b"more", CONTENT[: CUT - 1] + b"!", b""], ids=["long", "wrong", "empty"]
)
def test_a_part_that_nobody_vouches_for_is_dropped(scene: Scene, left: bytes) -> None:
    scene.part.parent.mkdir(parents=True)
    scene.part.write_bytes(left)
    assert scene.fetch() == CONTENT
    assert scene.ranges == [None]


def test_a_page_in_place_of_the_file_is_not_written_over_the_part(scene: Scene) -> None:
    login_page = Fault(body=b"<html>Log in to this network</html>", ignore_range=True)
    scene.hub.faults += [Fault(cut=CUT), *[login_page] * 9]
    with pytest.raises(NetworkError, match="35 bytes came"):
        scene.fetch()
    assert scene.part.read_bytes() == CONTENT[:CUT]


def test_wrong_content_never_becomes_visible_and_the_next_run_starts_clean(scene: Scene) -> None:
    scene.hub.faults += [Fault(body=bytes(len(CONTENT)))]
    with pytest.raises(ModelFileError, match="arrived damaged") as caught:
        scene.fetch()
    assert caught.value.exit_code == 1
    assert list(scene.part.parent.iterdir()) == []
    assert scene.visible == []
    assert scene.is_clean
    assert scene.fetch() == CONTENT


def test_a_damaged_part_is_found_at_the_end_and_dropped(scene: Scene) -> None:
    scene.hub.faults += [Fault(cut=CUT), *[Fault(status=404)] * 9]
    with pytest.raises(NetworkError):
        scene.fetch()
    scene.part.write_bytes(bytes(CUT))
    scene.hub.faults.clear()
    with pytest.raises(ModelFileError, match="run this again"):
        scene.fetch()
    assert scene.visible == []
    assert scene.fetch() == CONTENT


def test_other_content_than_the_hub_listed_is_not_even_started(scene: Scene) -> None:
    scene.hub.repos[REPO].claimed_sha256["m.gguf"] = "0" * 64
    with pytest.raises(EdgespecError, match=r"other content for m\.gguf than it listed"):
        scene.fetch()
    assert scene.visible == []


def test_two_fetches_at_once_bring_the_file_once(scene: Scene, running: list[Process]) -> None:
    scene.hub.pause_s = 0.01
    running += [start(scene), start(scene)]
    assert [process.wait() for process in running] == [0, 0]
    assert scene.hub.bytes_sent == len(CONTENT)
    assert scene.fetch() == CONTENT


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_killed_at_ten_random_places_the_file_is_whole_and_little_comes_twice(
    scene: Scene, running: list[Process]
) -> None:
    scene.hub.pause_s = 0.02
    kept: list[int] = []
    for size in sorted(random.Random(3).sample(range(1, len(CONTENT) - 16 * PIECE), 10)):
        running.append(start(scene))
        wait_for_size(scene, max([size, *kept]) + 1, running[-1])
        running[-1].send_signal(signal.SIGKILL)
        assert running[-1].wait() == -signal.SIGKILL
        kept.append(scene.part.stat().st_size)
        assert scene.visible == []
    assert scene.is_clean
    scene.hub.pause_s = 0
    running.append(start(scene))
    assert running[-1].wait() == 0
    sent = scene.hub.bytes_sent
    assert scene.fetch() == CONTENT
    assert scene.hub.bytes_sent == sent
    # every run asked for exactly what was not yet on the disk
    asked = [_start(seen) for seen in scene.hub.content_requests()]
    assert asked == [0, *kept]
    # what was on its way at each kill came twice, no more
    assert scene.hub.bytes_sent <= len(CONTENT) + 10 * 8 * PIECE


def _start(seen: Seen) -> int:
    return int(seen.headers.get("range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))


def test_who_waits_for_another_program_is_told_so(scene: Scene) -> None:
    lock = scene.client.folder(REPO).lock(scene.snapshot.files[0].blob)
    lock.parent.mkdir(parents=True)
    with FileLock(lock):
        waiting = threading.Thread(target=scene.fetch)
        waiting.start()
        while not scene.told.notes:
            time.sleep(0.01)
        assert scene.hub.content_requests() == []
    waiting.join()
    assert scene.told.notes == ["another program is fetching m.gguf; waiting for it"]
    assert scene.visible == ["m.gguf"]
