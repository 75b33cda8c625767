"""Models that other programs have put on the disk."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf
from model_folders import COMMIT, OTHER_COMMIT, gguf, hub_repo, ollama_model

from edgespec.models import found
from edgespec.models.found import Place, find_model, found_models, inspect, snapshot_files

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home; the hub's cache lies in it."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(found, "hub_cache", lambda: home / "hub")
    monkeypatch.setattr(found, "_OLLAMA_SERVICE", tmp_path / "service" / "models")
    return home


def put(file: Path, content: bytes = b"") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content or gguf())
    return file


def test_an_empty_machine_has_nothing(home: Path) -> None:
    assert found_models() == ()


def test_every_place_is_looked_into_and_nothing_is_copied(home: Path) -> None:
    snapshot = hub_repo(home / "hub", "org/M-GGUF", {"M-Q4_K_M.gguf": gguf(1)})
    studio = put(home / ".lmstudio/models/pub/S-GGUF/S-Q8_0.gguf", gguf(2))
    older = put(home / ".cache/lm-studio/models/pub/Old-GGUF/Old-Q2_K.gguf", gguf(3))
    ollama_model(home / ".ollama/models", "llama3.2/3b", gguf(4))
    cached = put(home / ".cache/llama.cpp/org_L_L-Q6_K.gguf", gguf(5))
    told = {(model.place, model.name): model for model in found_models()}
    assert list(told) == [
        (Place.HUB, "org/M-GGUF:Q4_K_M"),
        (Place.LM_STUDIO, "pub/Old-GGUF:Q2_K"),
        (Place.LM_STUDIO, "pub/S-GGUF:Q8_0"),
        (Place.OLLAMA, "llama3.2:3b"),
        (Place.LLAMA_CPP, "org_L_L-Q6_K"),
    ]
    assert told[Place.HUB, "org/M-GGUF:Q4_K_M"].path == snapshot / "M-Q4_K_M.gguf"
    paths = {model.path for model in told.values()}
    assert {studio, older, cached} <= paths
    assert all(model.size == len(gguf()) for model in told.values())
    assert all(inspect(model).about == "llama, F32" for model in told.values())


def test_environment_variables_move_the_places(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "o"))
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "l"))
    ollama_model(tmp_path / "o", "m/latest", gguf(1))
    hub_repo(tmp_path / "l", "org/N-GGUF", {"N-Q4_0.gguf": gguf(2)})
    assert [(m.place, m.name) for m in found_models()] == [
        (Place.OLLAMA, "m:latest"),
        (Place.LLAMA_CPP, "org/N-GGUF:Q4_0"),
    ]


def test_models_of_ollamas_service_are_found_beside_ones_own(home: Path, tmp_path: Path) -> None:
    ollama_model(home / ".ollama/models", "mine/latest", gguf(1))
    ollama_model(tmp_path / "service/models", "theirs/latest", gguf(2))
    assert [(model.place, model.name) for model in found_models()] == [
        (Place.OLLAMA, "mine:latest"),
        (Place.OLLAMA, "theirs:latest"),
    ]


def test_llama_cpps_cache_is_found_where_windows_keeps_such(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub_repo(home / "AppData/Local/llama.cpp", "org/N", {"N-Q4_0.gguf": gguf(1)})
    assert [(m.place, m.name) for m in found_models()] == [(Place.LLAMA_CPP, "org/N:Q4_0")]
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    put(tmp_path / "local/llama.cpp/old-Q8_0.gguf")
    assert [(m.place, m.name) for m in found_models()] == [(Place.LLAMA_CPP, "old-Q8_0")]


def test_a_name_is_found_whatever_its_case(home: Path) -> None:
    ollama_model(home / ".ollama/models", "Qwen/latest", gguf())
    assert find_model("qwen:LATEST") is not None
    assert find_model("qwen") is not None
    assert find_model("qwe") is None


def test_split_models_sidecars_and_mlx_folders_are_told_apart(home: Path) -> None:
    folder = home / ".lmstudio/models/pub"
    for name in ("B-Q8_0-00001-of-00002.gguf", "B-Q8_0-00002-of-00002.gguf", "mmproj-B.gguf"):
        put(folder / "B-GGUF" / name)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        put(folder / "C-MLX" / name, b"{}")
    split, mlx = found_models()
    assert (split.name, len(split.files), split.format) == ("pub/B-GGUF:Q8_0", 2, "gguf")
    assert (mlx.name, mlx.path, mlx.format) == ("pub/C-MLX", folder / "C-MLX", "mlx")
    assert mlx.size == 6


@pytest.mark.parametrize(
    "content",
    [b"GGUF", b"<html>", b"\0" * 100, gguf()[:-200], b"PK\x03\x04"],
    ids=["cut", "page", "zeros", "short", "zip"],
)
def test_a_damaged_file_is_told_as_such(home: Path, content: bytes) -> None:
    put(home / ".lmstudio/models/pub/D-GGUF/D-Q4_0.gguf", content)
    (model,) = found_models()
    assert model.fault == ""
    assert "D-Q4_0.gguf" in inspect(model).fault


def test_what_is_no_language_model_is_told_as_such(home: Path) -> None:
    projector = Gguf(MODEL | {"general.type": "mmproj"}).bytes()
    put(home / ".lmstudio/models/pub/P-GGUF/P.gguf", projector)
    (model,) = found_models()
    assert inspect(model).fault == "not a language model by itself"


def test_the_snapshot_that_main_names_counts(home: Path) -> None:
    hub_repo(home / "hub", "org/M", {"M-Q8_0.gguf": gguf(1)}, OTHER_COMMIT, ref="")
    hub_repo(home / "hub", "org/M", {"M-Q4_0.gguf": gguf(2)}, COMMIT)
    assert [file.name for file in snapshot_files("org/M")] == ["M-Q4_0.gguf"]
    assert [file.name for file in snapshot_files("ORG/m")] == ["M-Q4_0.gguf"]
    assert snapshot_files("org/none") == ()


def test_two_names_for_one_file_are_one_model(home: Path) -> None:
    snapshot = hub_repo(home / "hub", "org/M", {"M-Q4_0.gguf": gguf()})
    link = home / ".lmstudio/models/org/M/M-Q4_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(snapshot / "M-Q4_0.gguf")
    assert [model.place for model in found_models()] == [Place.HUB]


def cycle(folder: Path) -> None:
    (folder / "again").symlink_to(folder, target_is_directory=True)
    (folder / "self").symlink_to("self")


def dangling(folder: Path) -> None:
    (folder / "gone.gguf").symlink_to(folder / "nowhere.gguf")


def forbidden(folder: Path) -> None:
    locked = folder / "locked"
    locked.mkdir()
    locked.chmod(0)


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.gguf")


def deep(folder: Path) -> None:
    down = folder
    for _ in range(40):
        down = down / "d"
    down.mkdir(parents=True)
    (down / "deep.gguf").write_bytes(gguf())


@pytest.mark.parametrize("obstacle", [cycle, dangling, forbidden, pipe, deep])
def test_obstacles_hide_no_model(home: Path, obstacle: Callable[[Path], None]) -> None:
    for root in (home / ".lmstudio/models/pub/M", home / ".cache/llama.cpp"):
        put(root / f"{root.name}-Q4_0.gguf", gguf(len(root.name)))
        obstacle(root)
    hub_repo(home / "hub", "org/H", {"H-Q4_0.gguf": gguf(9)})
    obstacle(home / "hub" / "models--org--H" / "snapshots" / COMMIT)
    told = [model.name for model in found_models()]
    assert told == ["org/H:Q4_0", "pub/M:Q4_0", "llama.cpp-Q4_0"]


def test_a_huge_folder_is_not_walked_for_ever(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "_MOST_ENTRIES", 100)
    for number in range(300):
        put(home / f".cache/llama.cpp/m{number:03}.gguf", b"x")
    assert len(found_models()) == 100


MANIFESTS = [
    b"",
    b"[]",
    b'{"layers": 3}',
    b'{"layers": [3]}',
    b'{"layers": [{"mediaType": "application/vnd.ollama.image.model"}]}',
    b'{"layers": [{"mediaType": "application/vnd.ollama.image.model",'
    b' "digest": "sha256:../../../../etc/passwd"}]}',
    b'{"layers": [{"mediaType": "application/vnd.ollama.image.model",'
    b' "digest": "sha256:' + b"0" * 64 + b'"}]}',
    b"[" * 100_000,
]


@pytest.mark.parametrize("content", MANIFESTS, ids=range(len(MANIFESTS)))
def test_a_strange_manifest_is_passed_over(home: Path, content: bytes) -> None:
    root = home / ".ollama/models"
    ollama_model(root, "sound/latest", gguf())
    put(root / "manifests/registry.ollama.ai/library/strange/latest", content or b" ")
    assert [model.name for model in found_models()] == ["sound:latest"]


def test_models_of_the_hub_have_the_same_name_in_ollama(home: Path) -> None:
    root = home / ".ollama/models"
    manifest = ollama_model(root, "x/latest", gguf())
    other = root / "manifests/hf.co/org/M-GGUF/Q4_K_M"
    other.parent.mkdir(parents=True)
    manifest.rename(other)
    assert json.loads(other.read_text())
    assert [model.name for model in found_models()] == ["org/M-GGUF:Q4_K_M"]


@pytest.mark.parametrize(
    "link", [".lmstudio/models/pub", ".lmstudio/models/pub/L-GGUF", ".cache/llama.cpp/more"]
)
def test_a_link_to_a_folder_elsewhere_is_not_followed(
    home: Path, tmp_path: Path, link: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere / "L-GGUF" / "L-Q8_0.gguf")
    put(elsewhere / "L-Q4_0.gguf")
    (home / link).parent.mkdir(parents=True, exist_ok=True)
    (home / link).symlink_to(elsewhere, target_is_directory=True)
    assert found_models() == ()


def test_a_program_whose_own_folder_is_a_link_is_looked_into(home: Path, tmp_path: Path) -> None:
    put(tmp_path / "disk/pub/L-GGUF/L-Q8_0.gguf")
    (home / ".lmstudio").mkdir(parents=True, exist_ok=True)
    (home / ".lmstudio/models").symlink_to(tmp_path / "disk", target_is_directory=True)
    assert [model.name for model in found_models()] == ["pub/L-GGUF:Q8_0"]
