"""What a plan says a model takes is what llama.cpp then sets aside."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path

import gguf
import numpy as np
import pytest
from tiny_models import TinyModels

from edgespec.backends import Placement, SessionOptions
from edgespec.models.memory import DRAFT_ROWS, TARGET_ROWS, ModelUse, plan
from edgespec.models.needs import needs_of
from edgespec.models.split import read_model
from edgespec.models.store import find_demo
from edgespec_llamacpp import LlamaCppBackend, library

pytest.importorskip("llama_cpp", reason="llama.cpp is not installed")

MIB = 1 << 20
_BUFFER = re.compile(r"(\w+) +(model|KV|RS|output|compute) buffer size = +([\d.]+) MiB")
_WIDTH, _HEADS, _KV_HEADS, _HIDDEN, _VOCAB = 128, 4, 2, 256, 384

Reported = Callable[[Path, SessionOptions], Mapping[str, float]]


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> Reported:
    """Loads a model, opens a session, and gives the sizes that llama.cpp logs, in bytes."""

    def report(path: Path, options: SessionOptions) -> Mapping[str, float]:
        log = deque[tuple[int, str]]()  # nothing that was said falls out of it
        monkeypatch.setattr(library, "_LOG", log)
        model = LlamaCppBackend.load(path, Placement())
        model.session(options)
        sizes: Counter[str] = Counter()
        for place, kind, mebibytes in _BUFFER.findall("".join(text for _, text in log)):
            if place != "CPU_REPACK":  # a copy whose pages in the file can be dropped
                sizes[kind] += float(mebibytes) * MIB
        model.close()
        return sizes

    return report


def planned(path: Path, options: SessionOptions) -> ModelUse:
    flash = options.flash_attention != "off"
    return ModelUse(
        needs_of(read_model(path)), options.kv_type, options.rows, flash_attention=flash
    )


def assert_as_planned(reported: Reported, path: Path, options: SessionOptions) -> None:
    """In all, and what can be told exactly by itself, up to the rounding of the log."""
    share, _ = planned(path, options).shares(options.context, gpu=False)
    sizes = reported(path, options)
    assert sizes["model"] > 0 < sizes["compute"]
    assert share.weights == pytest.approx(sizes["model"], rel=0.01, abs=0.01 * MIB)
    assert share.cache == pytest.approx(sizes["KV"] + sizes["RS"], abs=0.015 * MIB)
    assert share.working == pytest.approx(sizes["output"] + sizes["compute"], rel=0.2)
    assert share.total == pytest.approx(sum(sizes.values()), rel=0.1)


@pytest.mark.parametrize("flash_attention", ["auto", "off"])
@pytest.mark.parametrize("context", [256, 300, 4096])
@pytest.mark.parametrize("shape", [{}, {"sliding_window": 64}, {"recurrent": True}])
def test_tiny_models_take_what_was_planned(
    reported: Reported,
    tiny_models: TinyModels,
    shape: Mapping[str, int],
    context: int,
    flash_attention: str,
) -> None:
    path = tiny_models(width=128, **shape)  # type: ignore[arg-type]
    options = SessionOptions(context, 1, "f16", flash_attention)
    assert_as_planned(reported, path, options)


@pytest.mark.parametrize("kv_type", ["f32", "bf16", "q8_0", "q4_0"])
def test_every_number_format_of_the_cache_is_planned(
    reported: Reported, tiny_models: TinyModels, kv_type: str
) -> None:
    assert_as_planned(reported, tiny_models(width=128), SessionOptions(2048, 1, kv_type))


def test_a_drafters_memory_is_planned(reported: Reported, tiny_models: TinyModels) -> None:
    options = SessionOptions(2048, 1, "f16", rows=DRAFT_ROWS, lazy=True)
    assert_as_planned(reported, tiny_models(width=128), options)


def test_a_mixture_of_experts_takes_what_was_planned(reported: Reported, tmp_path: Path) -> None:
    path = tmp_path / "mixture.gguf"
    writer = _writer(path, "llama", layers=2)
    writer.add_head_count_kv(_KV_HEADS)
    writer.add_expert_count(8)
    writer.add_expert_used_count(2)
    shapes = {"output.weight": (_VOCAB, _WIDTH), "output_norm.weight": (_WIDTH,)}
    for n in range(2):
        shapes |= _attention(n)
        shapes |= {
            f"blk.{n}.ffn_norm.weight": (_WIDTH,),
            f"blk.{n}.ffn_gate_inp.weight": (8, _WIDTH),
            f"blk.{n}.ffn_gate_exps.weight": (8, _HIDDEN, _WIDTH),
            f"blk.{n}.ffn_up_exps.weight": (8, _HIDDEN, _WIDTH),
            f"blk.{n}.ffn_down_exps.weight": (8, _WIDTH, _HIDDEN),
        }
    _write(writer, shapes)
    assert_as_planned(reported, path, SessionOptions(2048, 1, "f16"))


def test_a_hybrid_with_older_states_takes_what_was_planned(
    reported: Reported, tmp_path: Path
) -> None:
    path = tmp_path / "hybrid.gguf"
    writer = _writer(path, "lfm2", layers=3)
    writer.add_head_count_kv([0, _KV_HEADS, 0])
    writer.add_shortconv_l_cache(3)
    shapes: dict[str, tuple[int, ...]] = {"token_embd_norm.weight": (_WIDTH,)}
    for n in range(3):
        shapes |= {
            f"blk.{n}.ffn_norm.weight": (_WIDTH,),
            f"blk.{n}.ffn_gate.weight": (_HIDDEN, _WIDTH),
            f"blk.{n}.ffn_up.weight": (_HIDDEN, _WIDTH),
            f"blk.{n}.ffn_down.weight": (_WIDTH, _HIDDEN),
        }
        if n == 1:
            head = (_WIDTH // _HEADS,)
            shapes |= _attention(n)
            shapes |= {f"blk.{n}.attn_{k}_norm.weight": head for k in ("q", "k")}
            continue
        shapes |= {
            f"blk.{n}.attn_norm.weight": (_WIDTH,),
            f"blk.{n}.shortconv.conv.weight": (_WIDTH, 3),
            f"blk.{n}.shortconv.in_proj.weight": (3 * _WIDTH, _WIDTH),
            f"blk.{n}.shortconv.out_proj.weight": (_WIDTH, _WIDTH),
        }
    _write(writer, shapes)
    assert_as_planned(reported, path, SessionOptions(2048, 1, "f16"))


@pytest.mark.real_model
@pytest.mark.parametrize("rows", [TARGET_ROWS, DRAFT_ROWS])
@pytest.mark.parametrize("kv_type", ["bf16", "q8_0"])
@pytest.mark.parametrize("context", [512, 4096])
def test_the_demo_model_takes_what_was_planned(
    reported: Reported, context: int, kv_type: str, rows: int
) -> None:
    path = find_demo()
    assert path is not None, "the dev group brings the demo's weights"
    assert_as_planned(reported, path, SessionOptions(context, 1, kv_type, rows=rows))


_ANSWER = """
import re, sys, edgespec
target, draft, proposer = sys.argv[1:]
speculation = edgespec.Speculation(proposer, 0 if proposer == "none" else 4)
settings = {"draft": draft} if draft else {}
with edgespec.load(
    target=target, context=2048, threads=1, speculation=speculation, **settings
) as model:
    reply = model.generate("The tide " * 40, max_tokens=24, seed=1)
    # getrusage() would count what the parent held when this process began
    kibibytes = re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]
    print(int(kibibytes) << 10, reply.stats.drafted)
"""


@pytest.mark.real_model
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
def test_a_drafter_adds_its_weights_and_its_cache_to_the_peak_and_little_else(
    tmp_path: Path,
) -> None:
    target = find_demo()
    assert target is not None, "the dev group brings the demo's weights"
    draft = tmp_path / "draft.gguf"
    shutil.copy(target, draft)  # one file would be mapped once for both

    def peak(*arguments: str) -> tuple[int, int]:
        command = [sys.executable, "-c", _ANSWER, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        used, drafted = done.stdout.split()
        return int(used), int(drafted)

    peak(str(target), "", "none")  # measures what passes cost, which the next runs find
    plain, none = peak(str(target), "", "none")
    with_draft, drafted = peak(str(target), str(draft), "draft")
    assert (none, drafted > 0) == (0, True)
    use, context = list(plan(read_model(target), read_model(draft), 2048).uses())[1]
    share, _ = use.shares(context, gpu=False)
    assert share.weights < with_draft - plain
    assert with_draft < 1.05 * (plain + share.weights + 2 * share.cache)


def _writer(path: Path, architecture: str, layers: int) -> gguf.GGUFWriter:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_vocab_size(_VOCAB)
    writer.add_context_length(4096)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(_HIDDEN)
    writer.add_head_count(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("none")
    return writer


def _attention(layer: int) -> dict[str, tuple[int, ...]]:
    cached = _WIDTH // _HEADS * _KV_HEADS
    return {
        f"blk.{layer}.attn_norm.weight": (_WIDTH,),
        f"blk.{layer}.attn_q.weight": (_WIDTH, _WIDTH),
        f"blk.{layer}.attn_k.weight": (cached, _WIDTH),
        f"blk.{layer}.attn_v.weight": (cached, _WIDTH),
        f"blk.{layer}.attn_output.weight": (_WIDTH, _WIDTH),
    }


def _write(writer: gguf.GGUFWriter, shapes: Mapping[str, tuple[int, ...]]) -> None:
    for name, shape in {"token_embd.weight": (_VOCAB, _WIDTH), **shapes}.items():
        writer.add_tensor(name, np.full(shape, 0.01, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
