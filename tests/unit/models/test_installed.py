"""The record of what was pulled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_folders import COMMIT, installed_pair

from edgespec.errors import EdgespecError
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    data_dir,
    find_installed,
    forget,
    installed_pairs,
    last_used,
    mark_used,
    record,
    used_names,
)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    file = tmp_path / "m.gguf"
    file.write_bytes(b"weights")
    return file


def test_what_is_recorded_comes_back(weights: Path) -> None:
    whole = InstalledModel("org/big", COMMIT, (weights, weights.with_name("n.gguf")), 123)
    small = InstalledModel("org/small", "f" * 40, (weights,), 4)
    pair = InstalledPair("qwen3-8b", "gguf", whole, small, 1.5e9)
    record(pair)
    assert installed_pairs().pairs == (pair,)
    assert find_installed("QWEN3-8B") == pair
    assert pair.size == 127


def test_a_pair_named_by_its_repository_is_recorded_too(weights: Path) -> None:
    record(installed_pair("org/Model-GGUF:Q4_K_M", weights))
    assert find_installed("org/model-gguf:q4_k_m") is not None
    assert find_installed("org/model-gguf") is None


def test_names_that_differ_only_at_their_end_are_kept_apart(weights: Path) -> None:
    names = [f"{'a' * 96}/{'b' * 90}{end}:Q4_K_M" for end in ("1", "2")]
    for name in names:
        record(installed_pair(name, weights))
        mark_used(name)
    assert [pair.name for pair in installed_pairs().pairs] == names
    forget(names[0])
    assert (last_used(names[0]), last_used(names[1]) is not None) == (None, True)


def test_recording_again_replaces(weights: Path) -> None:
    record(installed_pair("one", weights, pulled=1.0))
    record(installed_pair("one", weights, pulled=2.0))
    assert [pair.pulled for pair in installed_pairs().pairs] == [2.0]


def test_a_pair_is_complete_while_all_its_files_are_there(tmp_path: Path, weights: Path) -> None:
    draft = tmp_path / "d.gguf"
    draft.write_bytes(b"d")
    pair = installed_pair("one", weights, draft)
    assert pair.complete
    draft.unlink()
    assert not pair.complete
    assert pair.models[1].missing == (draft,)


def test_a_backend_loads_the_first_file_or_an_mlx_folder(weights: Path) -> None:
    pair = installed_pair("one", weights)
    assert pair.path(pair.target) == weights
    mlx = InstalledPair("two", "mlx", pair.target, None, 1.0)
    assert mlx.path(mlx.target) == weights.parent


NO_SIZES = [b"1e400", b"-5", b"NaN", b"Infinity", b"1" * 400, b"1" * 5000, b"true", b'"1"', b"1.5"]
NO_DATES = [b"Infinity", b"-Infinity", b"NaN", b"-1", b"1e300", b"9" * 400, b"false", b"null"]
sound = (
    b'{"name": "broken", "format": "gguf", "pulled": 1, "draft": null,'
    b' "target": {"repo": "a/b", "commit": "c", "files": ["/x"], "size": 1}}'
)
DAMAGED = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"{}",
    b'{"name": 3}',
    b'{"name": "a", "format": "onnx", "pulled": 1, "target": {}, "draft": null}',
    b'{"name": "a", "format": "gguf", "pulled": 1, "draft": null,'
    b' "target": {"repo": "a/b", "commit": "c", "files": ["relative"], "size": 1}}',
    b'{"name": "a\\u001b[2J", "format": "gguf", "pulled": 1, "draft": null,'
    b' "target": {"repo": "a/b", "commit": "c", "files": ["/x"], "size": 1}}',
    b"\xff\xfe",
    b'{"a":' * 100_000,
    b"[" * 100_000,
    b" " * 2_000_000,
    *(sound.replace(b'"size": 1', b'"size": ' + n) for n in NO_SIZES),
    *(sound.replace(b'"pulled": 1', b'"pulled": ' + n) for n in NO_DATES),
    sound.replace(b"/x", b"/x\\u0000"),
    sound.replace(b"/x", b"/x\\ud800"),
    sound.replace(b"broken", b"sound"),
]


@pytest.mark.parametrize("content", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_record_is_set_aside_and_the_others_stay(content: bytes, weights: Path) -> None:
    record(installed_pair("sound", weights))
    file = data_dir() / "pairs" / "broken.json"
    file.write_bytes(content)
    records = installed_pairs()
    assert [pair.name for pair in records.pairs] == ["sound"]
    (note,) = records.notes
    assert "'broken' is damaged and was set aside" in note
    assert [kept.read_bytes() for kept in file.parent.glob("broken.json.damaged-*")] == [content]
    assert installed_pairs().notes == ()


def test_the_record_that_the_damaged_ones_are_made_from_is_sound() -> None:
    file = data_dir() / "pairs" / "broken.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(sound)
    assert [pair.name for pair in installed_pairs().pairs] == ["broken"]


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="has no such files")
@pytest.mark.parametrize("make", [pipe, zeros, Path.mkdir])
def test_what_is_no_regular_file_is_set_aside_unread(
    make: Callable[[Path], None], weights: Path
) -> None:
    record(installed_pair("sound", weights))
    make(data_dir() / "pairs" / "odd.json")
    records = installed_pairs()
    assert [pair.name for pair in records.pairs] == ["sound"]
    (note,) = records.notes
    assert "'odd' is damaged and was set aside" in note


def test_a_folder_of_records_that_cannot_be_read_is_one_note(
    monkeypatch: pytest.MonkeyPatch, weights: Path
) -> None:
    record(installed_pair("sound", weights))

    def refuse(folder: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(os, "scandir", refuse)
    records = installed_pairs()
    assert records.pairs == ()
    (note,) = records.notes
    assert "pairs cannot be read (Permission denied); check its permissions." in note
    assert find_installed("sound") is None
    assert used_names() == ()


def test_forgetting_leaves_the_files(weights: Path) -> None:
    record(installed_pair("one", weights))
    mark_used("one")
    forget("one")
    assert installed_pairs().pairs == ()
    assert weights.exists()
    assert last_used("one") is None
    forget("one")


def test_use_is_noted_and_the_last_comes_first() -> None:
    assert (used_names(), last_used("one")) == ((), None)
    for age, name in enumerate(("demo", "one", "org/m:Q4")):
        mark_used(name)
        os.utime(next((data_dir() / "used").glob(f"{name[:3]}*")), (1000 + age, 1000 + age))
    assert used_names() == ("org/m:q4", "one", "demo")
    assert last_used("one") == 1001


def test_where_use_cannot_be_noted_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESPEC_DATA_DIR", os.devnull)
    mark_used("one")
    assert used_names() == ()
    assert installed_pairs().pairs == ()


def test_a_record_that_cannot_be_kept_is_an_error(
    monkeypatch: pytest.MonkeyPatch, weights: Path
) -> None:
    monkeypatch.setenv("EDGESPEC_DATA_DIR", os.devnull)
    with pytest.raises(EdgespecError, match="cannot be used"):
        record(installed_pair("one", weights))


def test_programs_that_record_at_once_lose_nothing(weights: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from edgespec.models.installed import *\n"
        "model = InstalledModel('org/repo', 'c', (Path(sys.argv[2]),), 1)\n"
        "for n in range(10):\n"
        "    record(InstalledPair(f'{sys.argv[1]}-{n}', 'gguf', model, None, 1.0))\n"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, name, str(weights)]) for name in "ab"
    ]
    assert [process.wait() for process in started] == [0, 0]
    assert len(installed_pairs().pairs) == 20
