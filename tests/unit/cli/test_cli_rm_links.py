"""`edgespec rm` and links: a link may go, what it leads to stays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pair_fakes import blobs, hub_repo, ollama_model, pulled, weights

from edgespec.models.installed import find_installed, record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")

Cli = Callable[..., Result]


def test_a_link_goes_and_its_goal_stays(cli: Cli, cache: Path, tmp_path: Path) -> None:
    goal = tmp_path / "elsewhere.gguf"
    goal.write_bytes(weights(1))
    link = tmp_path / ".lmstudio/models/pub/L-GGUF/L-Q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(goal)
    assert cli("rm", "pub/L-GGUF:Q8_0", "--yes", "--others").exit_code == 0
    assert goal.exists()
    assert not link.is_symlink()


def test_a_folder_that_leads_elsewhere_is_refused(cli: Cli, cache: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "L-Q8_0.gguf").write_bytes(weights(1))
    link = tmp_path / ".lmstudio/models/pub/L-GGUF"
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere, target_is_directory=True)
    for name, code in (("pub/L-GGUF:Q8_0", 3), (str(link / "L-Q8_0.gguf"), 2)):
        assert cli("rm", name, "--yes", "--others").exit_code == code
    assert (elsewhere / "L-Q8_0.gguf").exists()


class TestLinksThatLeadElsewhere:
    """Whoever can write into a folder of models cannot have other files deleted."""

    @pytest.fixture
    def precious(self, tmp_path: Path) -> Path:
        file = tmp_path / "home" / "precious.gguf"
        file.parent.mkdir()
        file.write_bytes(weights(9))
        return file

    def test_a_snapshots_link_out_of_the_cache_goes_alone(
        self, cli: Cli, cache: Path, precious: Path
    ) -> None:
        snapshot = hub_repo(cache, "org/M", {"M-Q8_0.gguf": weights(1)})
        (snapshot / "P-Q4_0.gguf").symlink_to(precious)
        result = cli("rm", "org/M:Q4_0", "--yes")
        assert result.stdout == "Deleted org/M:Q4_0 from Hugging Face cache; 0 MB freed.\n"
        assert precious.exists()
        assert not (snapshot / "P-Q4_0.gguf").is_symlink()
        assert blobs(cache) == {b"\x01"}

    def test_so_does_one_into_another_repository(self, cli: Cli, cache: Path) -> None:
        other = hub_repo(cache, "org/N", {"N-Q4_0.gguf": weights(2)})
        snapshot = hub_repo(cache, "org/M", {"M-Q8_0.gguf": weights(1)})
        for goal in (other / "N-Q4_0.gguf", (other / "N-Q4_0.gguf").resolve()):
            (snapshot / "P-Q4_0.gguf").symlink_to(goal)
            assert cli("rm", str(snapshot / "P-Q4_0.gguf"), "--yes").exit_code in (0, 3)
            (snapshot / "P-Q4_0.gguf").unlink(missing_ok=True)
        assert blobs(cache, "org--N") == {b"\x02"}

    def test_a_blob_that_is_a_link_leaves_its_goal(
        self, cli: Cli, cache: Path, precious: Path
    ) -> None:
        snapshot = hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1)})
        blob = (snapshot / "M-Q4_0.gguf").resolve()
        blob.unlink()
        blob.symlink_to(precious)
        assert cli("rm", "org/M:Q4_0", "--yes").exit_code == 0
        assert precious.exists()

    def test_a_folder_of_blobs_that_is_a_link_keeps_what_it_holds(
        self, cli: Cli, cache: Path, precious: Path
    ) -> None:
        snapshot = hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1)})
        folder = cache / "models--org--M/blobs"
        folder.rename(precious.parent / "blobs")
        folder.symlink_to(precious.parent / "blobs", target_is_directory=True)
        assert cli("rm", "org/M:Q4_0", "--yes").exit_code == 0
        assert not (snapshot / "M-Q4_0.gguf").is_symlink()
        assert len(list((precious.parent / "blobs").iterdir())) == 1

    def test_a_repository_that_is_a_link_out_of_the_cache_is_refused(
        self, cli: Cli, cache: Path, precious: Path
    ) -> None:
        hub_repo(precious.parent, "org/M", {"M-Q4_0.gguf": weights(1)})
        cache.mkdir()
        (cache / "models--org--M").symlink_to(precious.parent / "models--org--M")
        result = cli("rm", "org/M:Q4_0", "--yes")
        assert (result.exit_code, result.stdout) == (2, "")
        assert blobs(precious.parent) == {b"\x01"}

    @pytest.mark.parametrize("inside", ["blobs/x", "refs/main", "snapshots/x", "../y"])
    def test_a_record_names_entries_of_snapshots_or_nothing(
        self, cli: Cli, cache: Path, inside: str
    ) -> None:
        hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1)})
        file = cache / "models--org--M" / inside
        file.write_text("there") if not file.exists() else None
        record(pulled("one", file))
        result = cli("rm", "one", "--yes")
        assert result.exit_code == 2
        assert file.exists()
        assert find_installed("one") is not None

    def test_a_cache_that_is_a_link_itself_is_as_good(
        self, cli: Cli, cache: Path, precious: Path
    ) -> None:
        snapshot = hub_repo(precious.parent, "org/M", {"M-Q4_0.gguf": weights(1)})
        cache.symlink_to(precious.parent, target_is_directory=True)
        record(pulled("one", cache / snapshot.relative_to(precious.parent) / "M-Q4_0.gguf"))
        assert cli("rm", str(snapshot / "M-Q4_0.gguf"), "--yes").exit_code == 2
        assert cli("rm", "one", "--yes").exit_code == 0
        assert not (precious.parent / "models--org--M").exists()

    def test_the_store_of_shared_blobs_keeps_what_another_repository_has(
        self, cli: Cli, cache: Path
    ) -> None:
        goal = cache / "blobs" / "ab" / ("ab" * 32)
        goal.parent.mkdir(parents=True)
        (cache / "blobs" / ".huggingface-shared-blobs").write_text("1\n")
        goal.write_bytes(weights(1, 2_000_000))
        links = []
        for repo in ("org/M", "org/N"):
            blob = hub_repo(cache, repo, {"M-Q4_0.gguf": weights(1)}) / "M-Q4_0.gguf"
            links.append(blob.resolve())
        for link in links:
            link.unlink()
            link.symlink_to(f"../../blobs/ab/{goal.name}")
        names = "".join(f"{link.relative_to(cache).as_posix()}\n" for link in links)
        goal.with_name(f"{goal.name}.refs").write_text(names)
        assert "; 0 MB freed" in cli("rm", str(links[0]), "--yes").stdout
        assert goal.exists()

    def test_an_ollama_manifest_behind_a_link_is_left(
        self, cli: Cli, cache: Path, tmp_path: Path, precious: Path
    ) -> None:
        root = tmp_path / ".ollama/models"
        ollama_model(root, "a/1", weights(1))
        library = root / "manifests/registry.ollama.ai/library"
        library.rename(precious.parent / "library")
        library.symlink_to(precious.parent / "library", target_is_directory=True)
        assert cli("rm", "a:1", "--yes", "--others").exit_code in (2, 3)
        assert (precious.parent / "library/a/1").exists()
        assert len(list((root / "blobs").iterdir())) == 1


def test_a_model_beside_a_broken_link_is_deleted(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1)})
    (snapshot / "broken.gguf").symlink_to("nowhere")
    assert cli("rm", "org/M:Q4_0", "--yes").exit_code == 0
    assert blobs(cache) == set()
