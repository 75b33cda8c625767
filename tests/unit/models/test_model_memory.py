"""What a pair needs of each kind of memory, and what is there."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from gguf_bytes import MODEL, Gguf, Tensor
from tiny_models import TinyModels

from edgespec import backends, cgroups
from edgespec.errors import BadInput
from edgespec.models.available import Available, GpuMemory, available_memory, cgroup_room
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader
from edgespec.models.memory import TARGET_ROWS, MemoryPlan, check_kv_type, describe, one_line, plan
from edgespec.models.needs import LayerNeeds, ModelNeeds, needs_of

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def target(tiny_models: TinyModels) -> GgufHeader:
    return read_header(tiny_models())


@pytest.fixture
def draft(tiny_models: TinyModels) -> GgufHeader:
    return read_header(tiny_models(layers=2))


def cache(needed: MemoryPlan) -> int:
    return needed.shares(gpu=False)[0].cache


def weights(needed: MemoryPlan) -> int:
    return needed.shares(gpu=False)[0].weights


@pytest.mark.parametrize(
    ("kv_type", "bytes_per_32"),
    [("f32", 128), ("f16", 64), ("bf16", 64), ("auto", 64), ("q8_0", 34), ("q4_0", 18)],
)
def test_the_cache_is_counted_by_layers_heads_and_type(
    target: GgufHeader, kv_type: str, bytes_per_32: int
) -> None:
    elements = 4 * 2 * (16 + 16) * 1024
    assert cache(plan(target, None, 1024, kv_type)) == elements // 32 * bytes_per_32


def test_a_cache_grows_in_steps_of_256_tokens(target: GgufHeader) -> None:
    assert cache(plan(target, None, 257)) == cache(plan(target, None, 512))
    assert cache(plan(target, None, 513)) > cache(plan(target, None, 512))


def test_weights_count_in_full_for_both_models(target: GgufHeader, draft: GgufHeader) -> None:
    both = plan(target, draft, 512)
    assert weights(both) == target.weight_bytes + draft.weight_bytes


def test_the_drafts_cache_is_never_quantised_and_no_longer_than_its_training(
    target: GgufHeader, tiny_models: TinyModels
) -> None:
    draft = read_header(tiny_models(layers=2, context=256))
    for kv_type in ("q4_0", "f32"):
        both, alone = plan(target, draft, 512, kv_type), plan(target, None, 512, kv_type)
        assert cache(both) - cache(alone) == 2 * 2 * (16 + 16) * 2 * 256


def test_a_draft_keeps_scores_of_fewer_rows_than_a_target(target: GgufHeader) -> None:
    alone, both = (plan(target, d, 512).shares(gpu=False)[0] for d in (None, target))
    assert both.working - alone.working < 0.75 * alone.working


def test_the_planned_width_of_a_pass_is_the_one_that_sessions_set_aside() -> None:
    assert backends.SessionOptions(context=512).rows == TARGET_ROWS


def needs(folder: Path, *tensors: str, **changes: object) -> ModelNeeds:
    """Of a model of two layers with such metadata and such tensors beside the embeddings."""
    metadata = MODEL | {key.replace("__", "."): v for key, v in changes.items()}
    made = [Tensor(), *(Tensor(name, (32,), offset=0) for name in tensors)]
    return needs_of(read_header(Gguf(metadata, made).write(folder / "m.gguf")))


def test_layers_without_attention_need_no_growing_cache(tmp_path: Path) -> None:
    assert [x.keys for x in needs(tmp_path).layers] == [32, 32]
    no_heads = needs(tmp_path, llama__attention__head_count_kv=[2, 0])
    assert [x.keys for x in no_heads.layers] == [32, 0]
    hybrid = needs(
        tmp_path,
        "blk.0.ssm_conv1d.weight",
        "blk.1.attn_k.weight",
        llama__ssm__conv_kernel=4,
        llama__ssm__inner_size=128,
        llama__ssm__state_size=16,
        llama__ssm__group_count=1,
    )
    assert [x.keys for x in hybrid.layers] == [0, 32]
    assert [x.state_bytes for x in hybrid.layers] == [4 * (3 * (128 + 2 * 16) + 128 * 16), 0]


def test_models_whose_state_can_be_taken_back_keep_sixteen_older_states(tmp_path: Path) -> None:
    metadata = {key.replace("llama.", "lfm2."): v for key, v in MODEL.items()}
    metadata |= {"general.architecture": "lfm2", "lfm2.shortconv.l_cache": 3}
    tensors = (Tensor(), Tensor("blk.1.shortconv.conv.weight", (32,)))
    header = read_header(Gguf(metadata, tensors).write(tmp_path / "m.gguf"))
    assert [x.state_bytes for x in needs_of(header).layers] == [0, 17 * 4 * 64 * 2]


def test_layers_with_a_window_keep_the_whole_text_in_heads_of_their_own_size(
    tmp_path: Path,
) -> None:
    windowed = needs(tmp_path, llama__attention__sliding_window=128)
    assert [x.keys for x in windowed.layers] == [32, 32]
    assert windowed.masks == 2
    own = needs(
        tmp_path,
        llama__attention__sliding_window=128,
        llama__attention__key_length_swa=8,
        llama__attention__value_length_swa=4,
        llama__attention__sliding_window_pattern=[True, False],
    )
    assert [(x.keys, x.values) for x in own.layers] == [(16, 8), (32, 32)]


def test_layers_that_share_a_cache_or_only_guess_ahead_have_none(tmp_path: Path) -> None:
    assert [x.keys for x in needs(tmp_path, llama__nextn_predict_layers=1).layers] == [32, 0]
    shared = needs(tmp_path, llama__attention__shared_kv_layers=1)
    assert [x.keys for x in shared.layers] == [32, 0]


def test_compressed_attention_keeps_no_values(tmp_path: Path) -> None:
    latent = needs(tmp_path, llama__attention__key_length_mla=24)
    assert [(x.keys, x.values) for x in latent.layers] == [(32, 0), (32, 0)]


def test_experts_are_told_apart_from_the_rest(tmp_path: Path) -> None:
    mixture = needs(tmp_path, "blk.1.ffn_up_exps.weight", "blk.1.attn_q.weight")
    assert [(x.weight_bytes, x.expert_bytes) for x in mixture.layers] == [(0, 0), (256, 128)]


def test_a_recurrent_model_has_no_growing_cache(tiny_models: TinyModels) -> None:
    header = read_header(tiny_models(recurrent=True))
    assert cache(plan(header, None, 4096)) == cache(plan(header, None, 256)) > 0


def test_settings_that_cannot_work_are_refused(target: GgufHeader) -> None:
    with pytest.raises(BadInput, match="--kv-type q3 is unknown; choose from f32, f16"):
        plan(target, None, 512, "q3")
    with pytest.raises(BadInput, match="context of 0 tokens"):
        plan(target, None, 0)


def test_a_cache_that_llama_cpp_does_not_keep_is_named_before_anything_is_loaded(
    target: GgufHeader, tiny_models: TinyModels
) -> None:
    with pytest.raises(BadInput, match=r"q8_0 packs 32 numbers together.*heads hold 16"):
        check_kv_type(plan(target, None, 512, "q8_0"))
    even = plan(read_header(tiny_models(width=128)), None, 512, "q8_0")
    check_kv_type(even)
    with pytest.raises(BadInput, match="q8_0 needs flash attention, which --flash-attention off"):
        check_kv_type(replace(even, flash_attention="off"))
    check_kv_type(plan(read_header(tiny_models(recurrent=True)), None, 512, "q8_0"))


def four_layers() -> MemoryPlan:
    """4 layers of 1 GiB, half of each experts, with 256 MiB of cache each, 1 GiB of embeddings
    that also give the scores."""
    layer = LayerNeeds(GIB, GIB // 2, keys=MIB // 4, values=MIB // 4)
    return MemoryPlan(ModelNeeds(10**9, (layer,) * 4, GIB, shared_bytes=GIB), None, 256)


def test_layers_go_to_the_gpu_from_the_end_and_embeddings_stay() -> None:
    whole = four_layers()
    main, gpu = whole.shares(gpu=True)
    assert (main.weights, main.cache) == (GIB, 0)
    assert (gpu.weights, gpu.cache) == (5 * GIB, GIB)
    main, gpu = replace(whole, gpu_layers=2).shares(gpu=True)
    assert (main.weights, main.cache) == (4 * GIB, GIB * 3 // 4)
    assert (gpu.weights, gpu.cache) == (2 * GIB, GIB // 4)
    assert replace(whole, gpu_layers=0).shares(gpu=True)[1].total == 0
    assert whole.shares(gpu=False)[0].weights == 5 * GIB


def test_experts_can_stay_in_main_memory() -> None:
    main, gpu = replace(four_layers(), cpu_moe=True).shares(gpu=True)
    assert (main.weights, gpu.weights) == (3 * GIB, 3 * GIB)


def test_each_kind_of_memory_is_held_against_what_is_free_of_it() -> None:
    card = Available(2 * GIB, (GpuMemory(7 * GIB),))
    assert four_layers().fits(card)
    assert not four_layers().fits(Available(2 * GIB, (GpuMemory(6 * GIB),)))
    assert not four_layers().fits(Available(GIB, (GpuMemory(7 * GIB),)))
    assert four_layers().fits(Available(2 * GIB, (GpuMemory(4 * GIB), GpuMemory(4 * GIB))))


def test_a_gpu_that_uses_main_memory_adds_none() -> None:
    shared = Available(7 * GIB, (GpuMemory(7 * GIB, unified=True),))
    assert not four_layers().fits(shared)
    assert four_layers().fits(replace(shared, main_bytes=8 * GIB))
    assert not four_layers().fits(Available(8 * GIB, (GpuMemory(5 * GIB, unified=True),)))


def test_the_plan_is_told_in_plain_words(target: GgufHeader, draft: GgufHeader) -> None:
    lines = describe(plan(target, draft, 512), Available(GIB, (GpuMemory(GIB),)))
    assert [line.split(":")[0] for line in lines] == [
        "target",
        "draft",
        "main memory",
        "GPU memory",
    ]
    assert "of cache for 512 tokens" in lines[0]
    assert lines[2].endswith("of the 1.0 GiB free")
    short = one_line(plan(target, None, 512), Available(16 * MIB))
    assert short.startswith("main memory: takes 34 MiB of the 16 MiB free, 18 MiB too little")
    assert one_line(plan(target, None, 512), Available(35 * MIB)).endswith("free, tight")


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
    monkeypatch.setattr(cgroups, "ROOT", tmp_path)
    monkeypatch.setattr(cgroups, "_MEMBERSHIP", tmp_path / "membership")
    assert available_memory() == 0
