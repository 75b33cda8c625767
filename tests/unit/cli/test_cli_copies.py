"""What was converted into the cache is listed, goes with its model, and can be deleted alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pair_fakes import hub_repo, pulled, weights

from edgespec.models.copies import all_copies, place_of_copy
from edgespec.models.installed import record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")

Cli = Callable[..., Result]


@pytest.fixture
def snapshot(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pair in the hub's cache, its target with a copy."""
    files = {"t.gguf": weights(1), "d.gguf": weights(2)}
    folder = hub_repo(cache, "org/M", files)
    monkeypatch.setattr("edgespec.models.copies.fingerprint", lambda path: path.stem)
    copy = place_of_copy(folder / "t.gguf", 1) / "t"
    copy.mkdir(parents=True)
    (copy / "model.safetensors").write_bytes(b"x" * 5000)
    return folder


def test_a_pair_goes_with_the_copies_of_its_models(cli: Cli, snapshot: Path) -> None:
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    result = cli("rm", "one", "--yes")
    assert (result.exit_code, result.stdout) == (0, "Deleted the pair one; 7 kB freed.\n")
    assert all_copies() == ()


def test_a_copy_that_another_pair_uses_stays(cli: Cli, snapshot: Path) -> None:
    for name in ("one", "two"):
        record(pulled(name, snapshot / "t.gguf", snapshot / "d.gguf"))
    assert cli("rm", "one", "--yes").exit_code == 0
    assert len(all_copies()) == 1


def test_a_model_goes_with_its_copy(cli: Cli, snapshot: Path) -> None:
    assert cli("rm", str(snapshot / "t.gguf"), "--yes").exit_code == 0
    assert all_copies() == ()
    assert (snapshot / "d.gguf").exists()


def test_a_copy_can_be_deleted_alone(cli: Cli, snapshot: Path) -> None:
    result = cli("rm", "t", "--yes", "--json")
    told = json.loads(result.stdout)
    assert (told["kind"], told["name"], told["freed_bytes"]) == ("copy", "t", 5000)
    assert all_copies() == ()
    assert (snapshot / "t.gguf").exists()


def test_list_and_doctor_tell_of_copies(cli: Cli, snapshot: Path) -> None:
    listed = cli("list")
    assert "Converted for MLX, in the cache" in listed.stdout
    assert "  t  5 kB" in listed.stdout
    assert json.loads(cli("list", "--json").stdout)["copies"][0]["bytes"] == 5000
    assert "Copies    1 for MLX, 5 kB; 'edgespec list' names them" in cli("doctor").stdout
    assert json.loads(cli("doctor", "--json").stdout)["copies"] == {"count": 1, "size": 5000}
    cli("rm", "t", "--yes")
    assert "Converted" not in cli("list").stdout
    assert "Copies" not in cli("doctor").stdout
