"""What a pair needs, what is there, and what helps where it does not fit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf
from tiny_models import TinyModels

from edgespec.errors import BadInput, OutOfMemory
from edgespec.models import available
from edgespec.models.available import available_memory, cgroup_room
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader
from edgespec.models.memory import MemoryPlan, ModelNeeds, check, plan

GIB = 1 << 30


@pytest.fixture
def target(tiny_models: TinyModels) -> GgufHeader:
    return read_header(tiny_models())


@pytest.fixture
def draft(tiny_models: TinyModels) -> GgufHeader:
    return read_header(tiny_models(layers=2))


@pytest.mark.parametrize(
    ("kv_type", "bytes_per_32"), [("f32", 128), ("f16", 64), ("q8_0", 34), ("q4_0", 18)]
)
def test_the_cache_is_counted_by_layers_heads_and_type(
    target: GgufHeader, kv_type: str, bytes_per_32: int
) -> None:
    elements = 4 * 2 * (16 + 16) * 1000
    assert plan(target, None, 1000, kv_type).kv_bytes == elements // 32 * bytes_per_32


def test_weights_count_in_full_for_both_models(target: GgufHeader, draft: GgufHeader) -> None:
    both = plan(target, draft, 512)
    assert both.weight_bytes == target.weight_bytes + draft.weight_bytes
    assert both.total_bytes > both.weight_bytes + both.kv_bytes


def test_the_drafts_cache_is_never_quantised(target: GgufHeader, draft: GgufHeader) -> None:
    needed = plan(target, draft, 512, "q4_0")
    assert needed.draft is not None
    assert (needed.target.kv_type, needed.draft.kv_type) == ("q4_0", "f16")


def test_layers_without_attention_need_no_growing_cache(tmp_path: Path) -> None:
    def kv(**changes: object) -> int:
        metadata = MODEL | {key.replace("__", "."): v for key, v in changes.items()}
        header = read_header(Gguf(metadata).write(tmp_path / "m.gguf"))
        return plan(header, None, 100).target.kv_elements

    assert kv() == 2 * 2 * 32
    assert kv(llama__attention__head_count_kv=[2, 0]) == 2 * 32
    assert kv(llama__full_attention_interval=2) == 2 * 32


def test_a_recurrent_model_has_no_growing_cache(tiny_models: TinyModels) -> None:
    assert plan(read_header(tiny_models(recurrent=True)), None, 4096).kv_bytes == 0


def test_settings_that_cannot_work_are_refused(target: GgufHeader) -> None:
    with pytest.raises(BadInput, match="--kv-type q3 is unknown; choose from f32, f16"):
        plan(target, None, 512, "q3")
    with pytest.raises(BadInput, match="context of 0 tokens"):
        plan(target, None, 0)


def big(kv_type: str = "f16") -> MemoryPlan:
    """8 GiB of target weights with 8e9 parameters, 1 GiB of draft, 4 GiB of cache at f16."""
    target = ModelNeeds(8 * 10**9, 8 * GIB, 65536, kv_type, 0)
    return MemoryPlan(target, ModelNeeds(10**9, GIB, 0, "f16", 0), 32768)


def test_what_fits_passes() -> None:
    check(big(), 13 * GIB)


def test_what_does_not_fit_says_by_how_much_and_what_helps_in_order() -> None:
    with pytest.raises(OutOfMemory) as caught:
        check(big(), 12 * GIB)
    message = str(caught.value)
    assert "needs 13.0 GiB (9.0 GiB of weights, 4.0 GiB of cache)" in message
    assert "12.0 GiB are free, 1.0 GiB too little" in message
    ways = message.split(": ")[1].split("; or ")
    assert ways == [
        "--context 24576",
        "--kv-type q8_0 (saves 1.9 GiB)",
        "--draft none (saves 1.0 GiB)",
        "a smaller quantisation, with weights of at most 7.0 GiB.",
    ]


def test_a_proposed_context_fits_and_the_next_step_would_not() -> None:
    free = 12 * GIB + 12345
    with pytest.raises(OutOfMemory) as caught:
        check(big(), free)
    match = re.search(r"--context (\d+)", str(caught.value))
    assert match is not None
    context = int(match[1])
    fits = big()
    check(MemoryPlan(fits.target, fits.draft, context), free)
    with pytest.raises(OutOfMemory):
        check(MemoryPlan(fits.target, fits.draft, context + 256), free)


def test_a_change_that_is_not_enough_alone_says_so() -> None:
    with pytest.raises(OutOfMemory, match=r"--draft none \(saves 1\.0 GiB, not enough alone\)"):
        check(big(), 10 * GIB)


def test_q8_0_is_not_proposed_to_who_has_it() -> None:
    with pytest.raises(OutOfMemory) as caught:
        check(big("q8_0"), 10 * GIB)
    assert "--kv-type" not in str(caught.value)


def test_a_hopeless_case_asks_for_a_smaller_model() -> None:
    alone = MemoryPlan(big("q8_0").target, None, 32768)
    with pytest.raises(OutOfMemory, match=r"too little: use a smaller model\."):
        check(alone, GIB)


def test_this_machine_has_memory() -> None:
    assert 0 < available_memory() < 1 << 50


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_AS is enforced on Linux only")
def test_the_process_limit_counts() -> None:
    code = (
        "import resource\n"
        "from edgespec.models.available import available_memory\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "print(available_memory())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 0 < int(out.stdout) < 4 << 30


def group(folder: Path, limit: str, used: int, inactive: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\n")


def test_the_narrowest_control_group_on_the_way_up_counts(tmp_path: Path) -> None:
    group(tmp_path / "user" / "app", "max", 100, 0)
    group(tmp_path / "user", "1000", 400, 50)
    group(tmp_path, "5000", 4500, 0)
    assert cgroup_room("0::/user/app\n", tmp_path) == 500
    group(tmp_path / "user", "1000", 800, 50)
    assert cgroup_room("0::/user/app\n", tmp_path) == 250


def test_the_older_control_groups_count_too(tmp_path: Path) -> None:
    folder = tmp_path / "memory" / "docker"
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("1000")
    (folder / "memory.usage_in_bytes").write_text("300")
    (folder / "memory.stat").write_text("total_inactive_file 100")
    membership = "12:cpu,cpuacct:/x\n5:memory:/docker\n"
    assert cgroup_room(membership, tmp_path) == 800


def test_without_control_groups_there_is_no_such_limit(tmp_path: Path) -> None:
    assert cgroup_room("", tmp_path) is None
    assert cgroup_room("0::/nowhere\nnonsense\n", tmp_path) is None


def test_a_limit_that_is_already_passed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group(tmp_path, "1000", 4000, 0)
    (tmp_path / "membership").write_text("0::/\n")
    monkeypatch.setattr(available, "_CGROUPS", tmp_path)
    monkeypatch.setattr(available, "_MEMBERSHIP", tmp_path / "membership")
    assert available_memory() == 0
