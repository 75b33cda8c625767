"""A GGUF file becomes a folder for MLX once, whole or not at all, and says the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from mlx_folders import write_folder
from tiny_models import TinyModels, write_tiny_llama

import edgespec
from edgespec.errors import EdgespecError, ModelFileError, OutOfMemory
from edgespec.models.folder_header import read_folder
from edgespec.models.memory import MemoryPlan
from edgespec.models.split import read_model
from edgespec_mlx import convert
from edgespec_mlx.architectures import FACTORS, Target, config_of
from edgespec_mlx.convert import converted

PROMPT = "the user asked for a short answer"
NOTES: list[str] = []


def answer(target: Path, backend: str, **settings: Any) -> tuple[int, ...]:
    if backend == "llamacpp":
        pytest.importorskip("llama_cpp", reason="llama.cpp is not installed")
    whole_floats: dict[str, Any] = {"kv_type": "f32", "flash_attention": "off"}
    usual = whole_floats | {"context": 256, "threads": 1}
    with edgespec.load(target=str(target), backend=backend, tuned=False, **usual) as model:
        ends = model.loaded.models[0].tokenizer.end_tokens
        never = dict.fromkeys(ends, -100.0)  # a random model ends its answers at random
        return model.generate(PROMPT, max_tokens=40, logit_bias=never, **settings).token_ids


GREEDY: dict[str, Any] = {"temperature": 0.0}
WARM: dict[str, Any] = {"temperature": 0.8, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 11}


@pytest.mark.parametrize("sampler", [GREEDY, WARM], ids=["greedy", "sampled"])
def test_one_llama_says_the_same_as_gguf_and_as_safetensors(
    sampler: dict[str, Any], tiny_models: TinyModels, tmp_path: Path
) -> None:
    source = tiny_models(seed=4)
    folder = write_folder(tmp_path / "tiny", source)
    native = answer(source, "llamacpp", **sampler)
    assert len(native) == 40
    assert answer(folder, "mlx", **sampler) == native
    assert answer(source, "mlx", **sampler) == native


def test_what_is_converted_equals_what_transformers_would_have_saved(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file

    source = tiny_models(seed=4)
    by_hand = load_file(write_folder(tmp_path / "tiny", source) / "model.safetensors")
    made = load_file(converted(source, NOTES.append) / "model.safetensors")
    assert made.keys() == by_hand.keys()
    for name, weight in by_hand.items():
        assert np.array_equal(made[name], weight), name


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "F16", "BF16"])
def test_every_number_format_is_kept(kind: str, tiny_models: TinyModels, tmp_path: Path) -> None:
    import mlx.core as mx

    source = requantized(tiny_models(seed=4), tmp_path / f"{kind}.gguf", kind)
    folder = converted(source, NOTES.append)
    weights = mx.load(str(folder / "model.safetensors"))
    packing = json.loads((folder / "config.json").read_text()).get("quantization")
    stored = {str(t.name): t for t in gguf.GGUFReader(source).tensors}
    expected = gguf.quants.dequantize(
        np.array(stored["blk.0.ffn_up.weight"].data), gguf.GGMLQuantizationType[kind]
    )
    name = "model.layers.0.mlp.up_proj"
    found = weights[f"{name}.weight"]
    if packing:
        scale, bias = (weights[f"{name}.{p}"].astype(mx.float32) for p in ("scales", "biases"))
        found = mx.dequantize(found, scale, bias, group_size=32, bits=packing["bits"])
    assert np.array_equal(np.array(found.astype(mx.float32)), expected)
    assert len(answer(source, "mlx", **GREEDY)) == 40


def begun(source: gguf.GGUFReader, target: Path, arch: str = "llama") -> gguf.GGUFWriter:
    """A file with the metadata of another one."""
    writer = gguf.GGUFWriter(target, arch)
    for field in source.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        name = field.name.replace("llama.", f"{arch}.")
        main = field.types[0]
        inner = field.types[-1] if main == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), main, sub_type=inner)
    return writer


def ended(writer: gguf.GGUFWriter, target: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def requantized(source: Path, target: Path, kind: str) -> Path:
    """The same model with its matrices in another format."""
    reader = gguf.GGUFReader(source)
    writer = begun(reader, target)
    number = gguf.GGMLQuantizationType[kind]
    for tensor in reader.tensors:
        data = np.array(tensor.data)
        if data.ndim == 2 and kind == "F16":
            writer.add_tensor(tensor.name, data.astype(np.float16))
        elif data.ndim == 2:
            writer.add_tensor(tensor.name, gguf.quants.quantize(data, number), raw_dtype=number)
        else:
            writer.add_tensor(tensor.name, data)
    return ended(writer, target)


def in_blocks(source: Path, target: Path, kind: str) -> Path:
    """A model of the same shapes whose matrices are nothing but zeros."""
    reader = gguf.GGUFReader(source)
    writer = begun(reader, target)
    number = gguf.GGMLQuantizationType[kind]
    weights, size = gguf.GGML_QUANT_SIZES[number]
    for tensor in reader.tensors:
        data = np.array(tensor.data)
        if data.ndim == 2:
            raw = np.zeros((len(data), data.shape[1] // weights * size), np.uint8)
            writer.add_tensor(tensor.name, raw, raw_dtype=number)
        else:
            writer.add_tensor(tensor.name, data)
    return ended(writer, target)


@pytest.mark.parametrize("kind", ["Q6_K", "Q4_K", "Q8_0"])
def test_memory_is_planned_for_what_a_file_becomes(
    kind: str, tiny_models: TinyModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = [
        in_blocks(tiny_models(layers=layers, width=256), tmp_path / f"{layers}.gguf", kind)
        for layers in (2, 1)
    ]
    plans: list[MemoryPlan] = []

    def enough(plan: MemoryPlan, free: object) -> None:
        plans.append(plan)
        raise OutOfMemory("Nothing is to be loaded.")

    monkeypatch.setattr("edgespec.loading.fit.check", enough)
    with pytest.raises(OutOfMemory, match="Nothing is to be loaded"):
        edgespec.load(target=str(sources[0]), draft=str(sources[1]), backend="mlx", context=64)
    for planned, source in zip((plans[0].target, plans[0].draft), sources, strict=True):
        made = read_folder(converted(source, NOTES.append)).needs()
        assert planned is not None
        assert planned.weight_bytes == pytest.approx(made.weight_bytes, rel=0.02)
        assert (planned.layers, planned.shared_bytes) == (made.layers, made.shared_bytes)
        if kind == "Q6_K":
            assert planned.weight_bytes > 1.3 * read_model(source).needs().weight_bytes


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_a_qwen_says_the_same_on_both_backends(
    family: str, tiny_models: TinyModels, tmp_path: Path
) -> None:
    source = as_family(tiny_models(seed=6), tmp_path / "qwen.gguf", family)
    native = answer(source, "llamacpp", **GREEDY)
    assert len(native) == 40
    assert answer(source, "mlx", **GREEDY) == native


def as_family(source: Path, target: Path, arch: str) -> Path:
    """The weights of a llama, and what a family has beside them."""
    reader, rng = gguf.GGUFReader(source), np.random.default_rng(0)
    writer = begun(reader, target, arch)
    for tensor in reader.tensors:
        name, data = str(tensor.name), np.array(tensor.data)
        kind = name.split(".")[-2]
        writer.add_tensor(name, data)
        if arch == "qwen2" and kind in ("attn_q", "attn_k", "attn_v"):
            bias = rng.normal(0, 0.3, len(data)).astype(np.float32)
            writer.add_tensor(name.replace(".weight", ".bias"), bias)
        if arch == "qwen3" and kind in ("attn_q", "attn_k"):
            norm = rng.uniform(0.5, 2.0, 16).astype(np.float32)
            writer.add_tensor(name.replace(kind, f"{kind}_norm"), norm)
    return ended(writer, target)


def test_packed_weights_say_the_same_as_llama_cpp_with_the_same_weights_unpacked(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    """llama.cpp rounds what it multiplies with packed weights; with unpacked ones it does not."""
    packed = requantized(tiny_models(seed=4), tmp_path / "q.gguf", "Q4_0")
    reader = gguf.GGUFReader(packed)
    tensors = {
        str(t.name): gguf.quants.dequantize(np.array(t.data), t.tensor_type) for t in reader.tensors
    }
    plain = tmp_path / "f32.gguf"
    write_tiny_llama(plain, seed=4)
    overwrite(plain, tensors)
    assert answer(packed, "mlx", **GREEDY) == answer(plain, "llamacpp", **GREEDY)


def overwrite(path: Path, tensors: dict[str, np.ndarray[Any, Any]]) -> None:
    """Put other numbers into a file's float32 tensors."""
    for tensor in gguf.GGUFReader(path, "r+").tensors:
        tensor.data[:] = tensors[str(tensor.name)].reshape(tensor.data.shape)


def test_the_second_time_nothing_is_written(tiny_models: TinyModels) -> None:
    first: list[str] = []
    folder = converted(tiny_models(seed=5), first.append)
    assert first[0].startswith("converting tiny-")
    before = (folder / "model.safetensors").stat().st_mtime_ns
    again: list[str] = []
    assert converted(tiny_models(seed=5), again.append) == folder
    assert again == []
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_kill_leaves_no_folder_that_loads(
    tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch, cache_of_the_test: Path
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(convert, "_convert", killed)
    with pytest.raises(Killed):
        converted(tiny_models(), NOTES.append)
    monkeypatch.undo()
    monkeypatch.setenv("EDGESPEC_CACHE_DIR", str(cache_of_the_test))
    (place,) = (cache_of_the_test / "mlx").iterdir()
    # as a kill leaves it that lets no line of ours run any more
    (place / "unfinished-abc").mkdir()
    (place / "unfinished-abc" / "config.json").write_text("{}")
    folder = converted(tiny_models(), NOTES.append)
    assert sorted(path.name for path in place.iterdir()) == sorted(["lock", folder.name])
    read_folder(folder)


def test_a_folder_that_lost_a_file_is_written_again(tiny_models: TinyModels) -> None:
    for lost in ("model.safetensors", "tokenizer.json", "config.json"):
        folder = converted(tiny_models(), NOTES.append)
        (folder / lost).unlink()
        assert converted(tiny_models(), NOTES.append) == folder
        assert (folder / lost).is_file()


def test_too_little_room_is_told_before_anything_is_written(
    tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch, cache_of_the_test: Path
) -> None:
    class Full:
        free = 1000

    monkeypatch.setattr(convert.shutil, "disk_usage", lambda _: Full)
    with pytest.raises(EdgespecError, match=r"takes .* where 1 kB are free; make room"):
        converted(tiny_models(), NOTES.append)
    assert not list((cache_of_the_test / "mlx").rglob("*.safetensors"))


def test_other_families_are_refused_with_what_works(tiny_models: TinyModels) -> None:
    with pytest.raises(ModelFileError, match=r"of the architecture 'gemma2'; GGUF files of llama"):
        converted(tiny_models(sliding_window=32), NOTES.append)


def test_a_model_that_the_catalogue_has_for_mlx_is_named(
    tmp_path: Path, tiny_models: TinyModels
) -> None:
    from edgespec.models.catalogue import catalogue

    build = next(b for e in catalogue().entries if (b := e.build("mlx")) is not None)
    name = build.target.repo.partition("/")[2]
    path = tmp_path / "x.gguf"
    writer = gguf.GGUFWriter(path, "gemma2")
    writer.add_name(name)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelFileError, match="use the MLX repository "):
        converted(path, NOTES.append)


def test_rows_of_a_llama_are_put_in_the_order_of_halves_and_others_stay() -> None:
    rows = Target("q", "weight", heads=2).rows(8)
    assert rows is not None
    assert rows.tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert Target("k", "weight").rows(8) is None


def test_how_llama_3_stretches_positions_is_found_again(
    tmp_path: Path, change: Callable[..., Path]
) -> None:
    header = read_model(change(freq_base=500000.0))
    head = header.key_length
    for factor in (8.0, 32.0):
        scaling = config_of(header, llama3_factors(factor, head))["rope_scaling"]
        assert scaling["factor"] == factor
        assert scaling["rope_type"] == "llama3"
    with pytest.raises(ModelFileError, match="in a way of its own"):
        config_of(header, llama3_factors(8.0, head) ** 2)


def llama3_factors(factor: float, head: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """What llama.cpp's converter writes for Llama 3.1. Source: convert_hf_to_gguf.py."""
    found = []
    for n in range(0, head, 2):
        wave = 2 * np.pi * 500000.0 ** (n / head)
        if wave < 8192 / 4:
            found.append(1.0)
        elif wave > 8192:
            found.append(factor)
        else:
            smooth = (8192 / wave - 1) / 3
            found.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(found, np.float32)


@pytest.fixture
def change(tmp_path: Path) -> Callable[..., Path]:
    """Writes a header of a llama with some entries changed."""

    def write(freq_base: float = 10000.0, scaling: str = "", experts: int = 0) -> Path:
        path = tmp_path / "changed.gguf"
        writer = gguf.GGUFWriter(path, "llama")
        writer.add_context_length(512)
        writer.add_embedding_length(256)
        writer.add_block_count(1)
        writer.add_feed_forward_length(64)
        writer.add_head_count(4)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_freq_base(freq_base)
        writer.add_vocab_size(10)
        if scaling:
            writer.add_string("llama.rope.scaling.type", scaling)
        if experts:
            writer.add_expert_count(experts)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.close()
        return path

    return write


def test_ways_to_stretch_positions_that_are_not_known_are_refused(
    change: Callable[..., Path],
) -> None:
    with pytest.raises(ModelFileError, match="stretched in the way 'yarn'"):
        config_of(read_model(change(scaling="yarn")), None)


def test_a_mixture_of_experts_is_refused(change: Callable[..., Path]) -> None:
    with pytest.raises(ModelFileError, match="it has expert_count"):
        converted(change(experts=8), NOTES.append)


def test_the_tensor_with_stretching_factors_is_no_weight() -> None:
    assert FACTORS == "rope_freqs.weight"


def test_a_copy_is_used_where_the_cache_cannot_be_written(
    tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = converted(tiny_models(), NOTES.append)

    def read_only(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(convert, "FileLock", read_only)
    assert converted(tiny_models(), NOTES.append) == folder
    (folder / "config.json").unlink()
    with pytest.raises(EdgespecError, match=r"cannot be written \(Read-only file system\)"):
        converted(tiny_models(), NOTES.append)
