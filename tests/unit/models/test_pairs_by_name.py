"""From a name to files that are on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from model_folders import gguf, hub_repo, installed_pair, ollama_model

from edgespec.errors import BadInput, NotFound
from edgespec.models import found, pairs
from edgespec.models.installed import record, used_names
from edgespec.models.pairs import names_a_pair, resolve
from edgespec.models.sizes import size_text

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, in a home without anything else."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(found, "hub_cache", lambda: tmp_path / "hub")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def test_a_pulled_pair_is_found_by_its_name(cache: Path) -> None:
    files = {"T-Q4_K_M.gguf": gguf(1), "D-Q8_0.gguf": gguf(2)}
    snapshot = hub_repo(cache, "org/M", files)
    target, draft = snapshot / "T-Q4_K_M.gguf", snapshot / "D-Q8_0.gguf"
    record(installed_pair("qwen3-8b", target, draft))
    pair = resolve("Qwen3-8B", None, None)
    assert (pair.name, pair.target, pair.draft, pair.notes) == ("qwen3-8b", target, draft, ())
    assert resolve("qwen3-8b", None, "none").draft is None


def test_a_pulled_pair_without_its_draft_model_still_answers_and_says_so(cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"T-Q4_K_M.gguf": gguf(1)})
    record(installed_pair("qwen3-8b", snapshot / "T-Q4_K_M.gguf", snapshot / "gone.gguf"))
    pair = resolve("qwen3-8b", None, None)
    assert pair.draft is None
    assert pair.notes == (
        "The draft model of 'qwen3-8b' is gone; 'edgespec pull qwen3-8b' fetches it again.",
    )


def test_a_pulled_pair_without_its_target_says_how_to_fetch_it(cache: Path) -> None:
    record(installed_pair("qwen3-8b", cache / "gone.gguf"))
    with pytest.raises(NotFound, match=r"lacks gone\.gguf; 'edgespec pull qwen3-8b' fetches it"):
        resolve("qwen3-8b", None, None)


def test_a_pair_of_the_catalogue_that_is_not_here_tells_the_line_and_the_size(cache: Path) -> None:
    with pytest.raises(NotFound, match=r"'edgespec pull llama-3\.1-8b' fetches it \(5\.7 GB as GG"):
        resolve("llama-3.1-8b", None, None)
    with pytest.raises(NotFound, match="size unknown"):
        resolve("qwen3-32b", None, None)


def test_a_repository_in_the_cache_needs_no_record(cache: Path) -> None:
    files = {"M-Q4_K_M.gguf": gguf(1), "M-Q8_0.gguf": gguf(2), "mmproj-M.gguf": gguf(3)}
    snapshot = hub_repo(cache, "org/M-GGUF", files)
    assert resolve("org/M-GGUF", None, None).target == snapshot / "M-Q4_K_M.gguf"
    pair = resolve("hf.co/org/m-gguf:q8_0", None, None)
    assert (pair.name, pair.target) == ("org/m-gguf:q8_0", snapshot / "M-Q8_0.gguf")


def test_a_quantisation_that_is_not_in_the_cache_names_those_that_are(cache: Path) -> None:
    hub_repo(cache, "org/M-GGUF", {"M-Q4_K_M.gguf": gguf(1)})
    with pytest.raises(NotFound) as caught:
        resolve("org/M-GGUF:Q5_K_M", None, None)
    assert "there are Q4_K_M" in str(caught.value)
    assert "edgespec pull org/M-GGUF:Q5_K_M" in str(caught.value)


def test_a_repository_that_is_not_here_tells_the_line(cache: Path) -> None:
    with pytest.raises(NotFound, match="'edgespec pull org/none:Q4' fetches it"):
        resolve("org/none:Q4", None, None)


def test_an_mlx_repository_in_the_cache_is_its_folder(cache: Path) -> None:
    header = b'{"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}'
    weights = len(header).to_bytes(8, "little") + header + b"x"
    config = b'{"model_type": "llama"}'
    snapshot = hub_repo(cache, "org/MLX", {"config.json": config, "model.safetensors": weights})
    assert resolve("org/MLX", None, None).target == snapshot
    assert resolve(str(snapshot), None, None).target == snapshot


def test_models_of_other_programs_are_used_in_place(cache: Path, tmp_path: Path) -> None:
    ollama_model(tmp_path / ".ollama/models", "llama3.2/3b", gguf(1))
    studio = tmp_path / ".lmstudio/models/pub/S-GGUF/S-Q8_0.gguf"
    studio.parent.mkdir(parents=True)
    studio.write_bytes(gguf(2))
    cached = tmp_path / ".cache/llama.cpp/my_model-q4_0.gguf"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(gguf(3))
    assert resolve("my_model-q4_0", None, None).target == cached
    pair = resolve("llama3.2:3b", None, None)
    assert pair.target.parent == tmp_path / ".ollama/models/blobs"
    assert pair.notes == ("used in place, from Ollama",)
    assert resolve("pub/S-GGUF:Q8_0", None, None).target == studio


def test_target_and_draft_may_be_repositories(cache: Path, tmp_path: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": gguf(1), "M-Q8_0.gguf": gguf(2)})
    pair = resolve(None, "org/M:q8_0", "org/M:q4_k_m")
    assert (pair.target, pair.draft) == (snapshot / "M-Q8_0.gguf", snapshot / "M-Q4_K_M.gguf")


def test_a_file_here_is_meant_before_anything_of_the_same_name(cache: Path, tmp_path: Path) -> None:
    hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": gguf(1)})
    file = tmp_path / "org" / "M"
    file.parent.mkdir()
    file.write_bytes(gguf(2))
    assert resolve("org/M", None, None).target == Path("org/M")


def test_a_slip_of_the_pen_brings_the_nearest_names(cache: Path, tmp_path: Path) -> None:
    ollama_model(tmp_path / ".ollama/models", "my-own-model/latest", gguf())
    with pytest.raises(NotFound, match=r"near it are qwen3-8b"):
        resolve("qwen3-8", None, None)
    with pytest.raises(NotFound, match=r"near it are my-own-model:latest"):
        resolve("my-own-modle", None, None)
    with pytest.raises(NotFound) as caught:
        resolve("zzzzzz", None, None)
    assert "near it" not in str(caught.value)


def test_to_look_a_pair_up_is_not_to_use_it(cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": gguf(1)})
    record(installed_pair("one", snapshot / "M-Q4_K_M.gguf"))
    for name in (None, "one", str(snapshot / "M-Q4_K_M.gguf")):
        resolve(name, None, None)
    assert used_names() == ()
    assert names_a_pair(None)
    assert names_a_pair("one")
    assert not names_a_pair(str(snapshot / "M-Q4_K_M.gguf"))


@pytest.mark.parametrize(
    ("files", "tags"),
    [
        (
            ("M-1.5B-q4_k_m.gguf", "M-32B-q4_k_m.gguf", "M-32B-q8_0.gguf"),
            ("M-1.5B-q4_k_m", "M-32B-q4_k_m", "Q8_0"),
        ),
        (("A-B-Q4_0.gguf", "B-Q4_0.gguf"), ("A-B-Q4_0", "B-Q4_0")),
        (("a/M-Q4_0.gguf", "b/M-Q4_0.gguf"), ("a-M-Q4_0", "b-M-Q4_0")),
        (
            ("A-Q8_0-00001-of-00002.gguf", "A-Q8_0-00002-of-00002.gguf", "B-Q8_0.gguf"),
            ("A-Q8_0", None, "B-Q8_0"),
        ),
    ],
    ids=["sizes", "one name ends as another", "folders", "parts"],
)
def test_each_model_of_a_repository_has_a_name_of_its_own(
    cache: Path, files: tuple[str, ...], tags: tuple[str | None, ...]
) -> None:
    snapshot = hub_repo(cache, "org/M", {name: gguf(n) for n, name in enumerate(files)})
    named = {f"org/M:{tag}": snapshot / file for file, tag in zip(files, tags, strict=True) if tag}
    assert {model.name: model.path for model in found.found_models()} == named
    for name, path in named.items():
        assert resolve(name.lower(), None, None).target == path
        assert resolve(None, name, None).target == path
        model = found.find_model(name)
        assert model is not None
        assert model.path == path


def test_a_part_that_is_missing_of_a_model_is_told_with_the_line_that_fetches_it(
    cache: Path,
) -> None:
    files = {"A-Q8_0-00001-of-00002.gguf": gguf(1), "B-Q8_0.gguf": gguf(2)}
    hub_repo(cache, "org/M", files)
    with pytest.raises(NotFound, match=r"00002-of-00002\.gguf' is missing.*'edgespec pull org/M:A"):
        resolve("org/M:A-Q8_0", None, None)


def test_names_are_found_without_a_network(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": gguf(1)})
    record(installed_pair("one", snapshot / "M-Q4_K_M.gguf"))
    for name in ("demo", "one", "org/M"):
        assert resolve(name, None, None).target.exists()
    for name in ("qwen3-8b", "org/other", "nothing"):
        with pytest.raises(NotFound):
            resolve(name, None, None)


def test_sizes_are_told_as_the_hub_tells_them() -> None:
    assert [size_text(n) for n in (None, 98_362_432, 5_640_000_000)] == [
        "size unknown",
        "98 MB",
        "5.6 GB",
    ]
    assert pairs.DEMO == "demo"


@pytest.mark.parametrize("name", ["some-name", "org/M:Q4_0"])
def test_a_name_cannot_be_looked_up_while_the_hubs_address_is_none(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://[::1")
    with pytest.raises(BadInput, match="no hub's address"):
        resolve(name, None, None)
    if "/" in name:
        with pytest.raises(BadInput, match="no hub's address"):
            resolve(None, name, None)
