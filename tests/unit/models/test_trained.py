"""Pairs of which the drafter was trained here."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tiny_models import TinyModels
from trimmed_drafter import write_trimmed

from edgespec.cli.root import edgespec
from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models import store
from edgespec.models.choices import Choice, chosen_for, remember
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    data_dir,
    find_installed,
    record,
    trained_dir,
)
from edgespec.models.pairs import resolve
from edgespec.models.trained import (
    GGUF_NAME,
    check_name,
    folder_of,
    install,
    name_from,
    put_in_place,
    room_to_make,
)


@pytest.fixture
def target(tiny_models: TinyModels, tmp_path: Path) -> Path:
    return _copied(tiny_models(layers=2), tmp_path / "target.gguf")


def _copied(source: Path, goal: Path) -> Path:
    goal.write_bytes(source.read_bytes())
    return goal


@pytest.fixture
def pair(target: Path) -> InstalledPair:
    folder_of("mine").mkdir(parents=True)
    write_trimmed(folder_of("mine") / GGUF_NAME, target, list(range(0, 384, 2)))
    return install("mine", target)


def _edgespec(*arguments: str) -> Result:
    return CliRunner().invoke(edgespec, arguments)


def test_it_is_found_by_its_name_with_its_drafter(pair: InstalledPair, target: Path) -> None:
    found = resolve("mine", None, None)
    assert (found.target, found.draft) == (target, trained_dir() / "mine" / GGUF_NAME)
    assert "its draft model was trained here" in _edgespec("list").stdout


def test_what_was_chosen_without_it_is_forgotten(pair: InstalledPair, target: Path) -> None:
    remember(target, Choice("target.gguf", None, "none", None, "2026-01-01", "x", 1.0, 1.0))
    install("mine", target)
    assert chosen_for(target) is None


def _made(folder: Path, drafter: bytes = b"new") -> Path:
    """A drafter as a training leaves it, which is in no pair yet."""
    folder.mkdir()
    (folder / GGUF_NAME).write_bytes(drafter)
    return folder


def test_training_it_again_replaces_it(pair: InstalledPair, target: Path, tmp_path: Path) -> None:
    assert name_from("Mine") == "mine"
    check_name("mine", target)
    put_in_place("mine", _made(tmp_path / "made"))
    install("mine", target)
    assert os.listdir(trained_dir()) == ["mine"]
    again = find_installed("mine")
    assert again is not None
    assert again.draft is not None
    assert [file.read_bytes() for file in again.draft.files] == [b"new"]
    assert again.draft.size == len(b"new")


def test_a_drafter_stays_where_the_new_one_cannot_be_put(
    pair: InstalledPair, target: Path, tmp_path: Path
) -> None:
    before = (folder_of("mine") / GGUF_NAME).read_bytes()
    with pytest.raises(FileNotFoundError):
        put_in_place("mine", tmp_path / "never made")
    assert (folder_of("mine") / GGUF_NAME).read_bytes() == before
    assert resolve("mine", None, None).draft == folder_of("mine") / GGUF_NAME


def test_what_another_process_is_making_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgespec.models.trained._PATIENCE_S", 0.0)
    with room_to_make() as made:
        (made / GGUF_NAME).write_bytes(b"whole")
        with pytest.raises(EdgespecError, match="Another edgespec has been"), room_to_make():
            pytest.fail("two at once")
        put_in_place("mine", made)
    assert os.listdir(trained_dir()) == ["mine"]
    assert (folder_of("mine") / GGUF_NAME).read_bytes() == b"whole"


@pytest.mark.parametrize("new_one_there", [False, True])
def test_what_was_killed_while_it_replaced_a_drafter_is_made_good(
    pair: InstalledPair, tmp_path: Path, new_one_there: bool
) -> None:
    folder_of("mine").rename(trained_dir() / ".old-mine")
    if new_one_there:
        _made(folder_of("mine"), b"newer")
    put_in_place("mine", _made(tmp_path / "made"))
    assert os.listdir(trained_dir()) == ["mine"]
    assert (folder_of("mine") / GGUF_NAME).read_bytes() == b"new"


def test_the_name_of_another_targets_drafter_is_taken(pair: InstalledPair, target: Path) -> None:
    other = _copied(target, target.with_name("other.gguf"))
    with pytest.raises(BadInput, match=r"guesses for .*target\.gguf; choose another .*--out"):
        check_name("mine", other)


@pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")
def test_a_link_to_a_target_is_that_target(pair: InstalledPair, target: Path) -> None:
    link = target.with_name("link.gguf")
    link.symlink_to(target)
    check_name("mine", link)


def test_a_target_that_is_gone_keeps_its_drafters_name(pair: InstalledPair, target: Path) -> None:
    moved = target.rename(target.with_name("moved.gguf"))
    with pytest.raises(BadInput, match=r"delete it first with 'edgespec rm mine'"):
        check_name("mine", moved)


def test_a_choice_outlives_a_pair_that_could_not_be_recorded(target: Path) -> None:
    remember(target, Choice("target.gguf", None, "none", None, "2026-01-01", "x", 1.0, 1.0))
    trained_dir().mkdir(parents=True)
    _made(folder_of("mine"))
    (data_dir() / "pairs").write_text("a file where a folder should be")
    with pytest.raises(EdgespecError, match="cannot be used"):
        install("mine", target)
    assert chosen_for(target) is not None


def test_deleting_it_leaves_its_target(pair: InstalledPair, target: Path) -> None:
    result = _edgespec("rm", "mine", "--yes")
    assert result.exit_code == 0
    assert f"its target stays, in {target}" in result.stderr
    assert target.exists()
    assert not folder_of("mine").exists()
    assert find_installed("mine") is None


def test_deleting_it_also_frees_what_a_killed_training_left_of_the_one_before(
    pair: InstalledPair,
) -> None:
    earlier = _made(trained_dir() / ".old-mine", b"x" * 5_000_000)
    _made(trained_dir() / ".old-other")
    told = json.loads(_edgespec("rm", "mine", "--yes", "--json").stdout)
    assert told["freed_bytes"] > 5_000_000
    assert not earlier.exists()
    assert os.listdir(trained_dir()) == [".old-other"], "of another pair"


def test_a_drafter_that_was_deleted_costs_the_guesses_not_the_answers(
    pair: InstalledPair, target: Path
) -> None:
    (folder_of("mine") / GGUF_NAME).unlink()
    found = resolve("mine", None, None)
    assert (found.target, found.draft) == (target, None)
    assert "'edgespec train TARGET --out mine' makes it anew" in found.notes[0]
    told = " ".join(_edgespec("list").stdout.split())
    assert "its draft model is gone: 'edgespec train TARGET --out mine' makes it anew" in told


def test_a_target_that_was_moved_is_named(pair: InstalledPair, target: Path) -> None:
    target.unlink()
    with pytest.raises(NotFound, match=r"lacks target\.gguf; put it back, or delete the pair"):
        resolve("mine", None, None)
    told = " ".join(_edgespec("list").stdout.split())
    assert "its target is gone: put it back, or delete the pair with 'edgespec rm mine'" in told


@pytest.mark.parametrize("draft", ["../trained/../keep.gguf", "trained/../keep.gguf"])
def test_a_record_that_points_elsewhere_deletes_nothing_there(target: Path, draft: str) -> None:
    """Such a pair counts as pulled, and what lies outside the hub's cache is left alone."""
    kept = data_dir() / "keep.gguf"
    kept.parent.mkdir(parents=True, exist_ok=True)
    _copied(target, kept)
    (data_dir() / "trained").mkdir()
    there = InstalledModel("x", "y", (data_dir() / draft,), 1)
    model = InstalledModel("x", "y", (target,), 1)
    record(InstalledPair("bad", "gguf", model, there, 0.0))
    assert _edgespec("rm", "bad", "--yes").exit_code == 2
    assert kept.exists()
    assert target.exists()


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("demo", "demo-trained"),
        ("Qwen/Qwen2.5-Coder-0.5B-GGUF:Q4_K_M", "qwen2.5-coder-0.5b-gguf-q4_k_m-trained"),
        ("tiny llama 0", "tiny-llama-0-trained"),
        ("模型", "model-trained"),
    ],
)
def test_a_pair_is_called_after_its_target(label: str, name: str) -> None:
    assert name_from(label) == name


@pytest.mark.parametrize("place", ["assets", "edgespec/assets"], ids=["checkout", "installed"])
def test_the_demo_guesses_with_the_drafter_that_comes_with_edgespec(
    target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setattr(store, "__file__", str(tmp_path / "edgespec" / "models" / "store.py"))
    monkeypatch.setattr("edgespec.models.pairs.find_demo", lambda: target)
    assert resolve("demo", None, None).draft is None
    drafter = tmp_path / place / "smollm2-135m-drafter.gguf"
    drafter.parent.mkdir(parents=True)
    write_trimmed(drafter, target, list(range(0, 384, 2)))
    assert resolve("demo", None, None).draft == drafter
    assert resolve("demo", None, "none").draft is None


@pytest.mark.skipif(os.name == "nt", reason="there links need rights of their own")
def test_it_stays_a_trained_one_where_the_data_folder_goes_by_a_link(
    pair: InstalledPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(os.environ["EDGESPEC_DATA_DIR"])
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "link"))
    found = find_installed("mine")
    assert found is not None
    assert found.trained
    _edgespec("rm", "mine", "--yes")
    assert find_installed("mine") is None
    assert not folder_of("mine").exists()
