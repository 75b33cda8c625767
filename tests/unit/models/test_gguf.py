"""The header reader: what it reads, what it refuses, and that nothing else ever comes out."""

from __future__ import annotations

import struct
import time
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_bytes import ARRAY, MODEL, STRING, U32, U64, Gguf, Tensor, refused, string
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_models import CHATML, TinyModels

from edgespec.errors import EdgespecError, ModelFileError
from edgespec.models.ggml import FILE_TYPES, TENSOR_TYPES
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader


def with_metadata(**changes: Any) -> Gguf:
    return Gguf(MODEL | {key.replace("__", "."): v for key, v in changes.items()})


def ask_everything(header: GgufHeader) -> None:
    """Read every property; a fault in one of them is a ModelFileError or nothing."""
    for name in dir(GgufHeader):
        if isinstance(getattr(GgufHeader, name), property):
            try:
                getattr(header, name)
            except ModelFileError:
                continue
    for special in ("bos", "eos", "eot", "padding"):
        header.special_token(special)


# --- what it reads


def test_a_real_model_file_is_read_as_its_writer_meant_it(tiny_models: TinyModels) -> None:
    header = read_header(tiny_models())
    assert header.version == 3
    assert header.architecture == "llama"
    assert (header.context_length, header.embedding_length, header.block_count) == (512, 64, 4)
    assert header.head_counts == (4, 4, 4, 4)
    assert header.kv_head_counts == (2, 2, 2, 2)
    assert (header.key_length, header.value_length) == (16, 16)
    assert header.feed_forward_length == 128
    assert header.chat_template == CHATML
    assert header.file_type == "F32"
    assert header.tokenizer == "gpt2"
    assert header.vocabulary_size == 384
    assert header.tokens[-1] == b"<|im_end|>"
    assert header.special_token("eos") == 383
    assert header.token_types[-1] == 3
    assert header.parameter_count == sum(t.n_elements for t in header.tensors) > 100_000
    assert header.weight_bytes == 4 * header.parameter_count


def test_the_gguf_package_and_we_agree_on_every_tensor(tiny_models: TinyModels) -> None:
    from gguf import GGUFReader

    path = tiny_models(sliding_window=16)
    header, other = read_header(path), GGUFReader(path)
    assert header.data_offset == other.data_offset
    assert {t.name: t.offset + header.data_offset for t in header.tensors} == {
        t.name: t.data_offset for t in other.tensors
    }
    assert {t.name: t.n_bytes for t in header.tensors} == {t.name: t.n_bytes for t in other.tensors}
    assert header.sliding_window == 16


def test_our_tables_of_types_are_those_of_the_gguf_package() -> None:
    import gguf

    sizes = {t.value: (t.name, *gguf.GGML_QUANT_SIZES[t]) for t in gguf.GGML_QUANT_SIZES}
    ours = {number: tuple(t) for number, t in TENSOR_TYPES.items()}
    # no file holds Q8_1, and the package gives it the size of an older layout
    del sizes[9], ours[9]
    assert ours == sizes
    names = {
        t.value: t.name.removeprefix("MOSTLY_").removeprefix("ALL_") for t in gguf.LlamaFileType
    }
    names.pop(gguf.LlamaFileType.GUESSED.value)
    assert names == FILE_TYPES


def test_version_2_is_read_too(tmp_path: Path) -> None:
    assert read_header(Gguf(version=2).write(tmp_path / "m.gguf")).version == 2


def test_tokens_are_bytes_and_behave_as_a_sequence(tmp_path: Path) -> None:
    tokens = read_header(Gguf().write(tmp_path / "m.gguf")).tokens
    assert list(tokens) == [b"a", b"b", b"ab", b"<|end|>"]
    assert tokens[1:3] == [b"b", b"ab"]
    assert tokens[-1] == b"<|end|>"
    with pytest.raises(IndexError):
        tokens[4]


def test_key_value_heads_may_differ_by_layer(tmp_path: Path) -> None:
    gguf = with_metadata(llama__attention__head_count_kv=[2, 0])
    assert read_header(gguf.write(tmp_path / "m.gguf")).kv_head_counts == (2, 0)


def test_head_sizes_default_to_an_even_share_of_the_width(tmp_path: Path) -> None:
    header = read_header(Gguf().write(tmp_path / "m.gguf"))
    assert (header.key_length, header.value_length) == (16, 16)


def test_recommended_sampling_is_read_and_nonsense_in_it_left_out(tmp_path: Path) -> None:
    gguf = with_metadata(
        general__sampling__temp=0.5,
        general__sampling__top_k=20,
        general__sampling__top_p=7.0,
        general__sampling__min_p="much",
        general__sampling__penalty_last_n=64.0,
    )
    sampler = read_header(gguf.write(tmp_path / "m.gguf")).sampler
    assert sampler == {"temperature": 0.5, "top_k": 20}


def test_the_quantisation_has_its_usual_name(tmp_path: Path) -> None:
    gguf = with_metadata(general__file_type=15)
    assert read_header(gguf.write(tmp_path / "m.gguf")).file_type == "Q4_K_M"
    guessed = with_metadata(general__file_type=1024 + 7)
    assert read_header(guessed.write(tmp_path / "g.gguf")).file_type == "Q8_0"
    assert read_header(Gguf().write(tmp_path / "n.gguf")).file_type == "F32"


def test_an_unknown_tensor_type_is_fine_inside_the_file(tmp_path: Path) -> None:
    header = read_header(Gguf(tensors=[Tensor(ggml_type=99)]).write(tmp_path / "m.gguf"))
    assert header.tensors[0].n_bytes is None
    assert header.weight_bytes == 1024
    assert header.file_type == "type 99"


def test_a_special_token_outside_the_vocabulary_is_none(tmp_path: Path) -> None:
    header = read_header(with_metadata(tokenizer__ggml__eos_token_id=4).write(tmp_path / "m.gguf"))
    assert header.special_token("eos") is None


def test_a_vocabulary_of_150_000_is_read_in_a_moment(tmp_path: Path) -> None:
    n = 150_000
    tokens = [f"token-{i}" for i in range(n)]
    merges = [f"tok {i}" for i in range(n)]
    gguf = with_metadata(
        tokenizer__ggml__tokens=tokens,
        tokenizer__ggml__token_type=[1] * n,
        tokenizer__ggml__merges=merges,
    )
    path = gguf.write(tmp_path / "big.gguf")
    took = []
    for _ in range(3):
        start = time.perf_counter()
        header = read_header(path)
        took.append(time.perf_counter() - start)
    assert header.tokens[n - 1] == b"token-149999"
    assert min(took) < 0.3


# --- headers that lie


LONG_STRING = Gguf(metadata={}, n_entries=1, raw_entries=string("general.name"))
FAR = Tensor(offset=1 << 40)


@pytest.mark.parametrize(
    ("gguf", "says"),
    [
        (Gguf(version=1), "GGUF version 1"),
        (Gguf(version=4), "GGUF version 4"),
        (Gguf(version=0x03000000), "big-endian"),
        (Gguf(n_entries=1 << 60), "1152921504606846976 metadata entries"),
        (Gguf(n_tensors=1 << 60), "1152921504606846976 tensors"),
        (Gguf(n_entries=60_000), "60000 metadata entries, more than it can hold"),
        (Gguf(n_tensors=100_000), "100000 tensors, more than it can hold"),
        (Gguf(n_entries=60), "metadata entry"),
        (Gguf(n_tensors=20), "tensor"),
        (
            replace(LONG_STRING, raw_entries=string("general.name", 1 << 62)),
            "the key of metadata entry 0 claims 4611686018427387904 bytes",
        ),
        (
            with_metadata(x=struct.pack("<I", STRING) + string("hi", 1 << 62)),
            "x claims 4611686018427387904 bytes",
        ),
        (with_metadata(x=struct.pack("<I", STRING) + string("hi", 5000)), "x needs 5000 bytes"),
        (with_metadata(x=struct.pack("<IIQ", ARRAY, U32, 1 << 61)), "2305843009213693952 elements"),
        (with_metadata(x=struct.pack("<IIQ", ARRAY, U64, 1 << 20)), "x needs 8388608 bytes"),
        (with_metadata(x=struct.pack("<IIQ", ARRAY, STRING, 1 << 20)), "1048576 strings"),
        (with_metadata(x=struct.pack("<IIQ", ARRAY, ARRAY, 1)), "an array of arrays"),
        (with_metadata(x=struct.pack("<IIQ", ARRAY, 77, 1)), "unknown element type 77"),
        (with_metadata(x=struct.pack("<I", 77)), "unknown value type 77"),
        (
            Gguf(n_entries=len(MODEL) + 1, raw_entries=string("general.name") + b"\4\0\0\0abcd"),
            "general.name comes twice",
        ),
        (Gguf(n_entries=len(MODEL) + 1, raw_entries=string("") + b"\4\0\0\0abcd"), "has no key"),
        (Gguf(tensors=[Tensor(dims=(1,) * 7)]), "claims 7 dimensions"),
        (Gguf(tensors=[Tensor(n_dims=7)]), "claims 7 dimensions"),
        (Gguf(tensors=[Tensor(dims=())]), "claims 0 dimensions"),
        (Gguf(tensors=[Tensor(dims=(0, 4))]), "impossible shape (0, 4)"),
        (Gguf(tensors=[Tensor(dims=(1 << 40, 1 << 40))]), "impossible shape"),
        (Gguf(tensors=[Tensor(ggml_type=12)]), "rows of 64, not a multiple of 256"),
        (Gguf(tensors=[Tensor(name="n" * 65)]), "the name of tensor 0 claims 65 bytes"),
        (Gguf(tensors=[Tensor(), Tensor()]), "tensor token_embd.weight comes twice"),
        (Gguf(tensors=[Tensor(offset=3)]), "is not aligned to 32 bytes"),
        (Gguf(tensors=[FAR]), "cut short"),
        (Gguf(tensors=[replace(FAR, ggml_type=99)]), "cut short"),
        (Gguf(data=b"\0" * 1000), "24 bytes are missing"),
        (with_metadata(general__alignment=48), "general.alignment is 48, not a power of two"),
        (with_metadata(general__alignment=0), "general.alignment is 0"),
        (with_metadata(general__alignment="32"), "general.alignment is 32, not a power"),
        (with_metadata(llama__context_length=0), "llama.context_length is 0"),
        (with_metadata(llama__context_length=(1 << 31) + 1), "llama.context_length is 2147483649"),
        (with_metadata(llama__context_length="long"), "llama.context_length is long"),
        (with_metadata(llama__vocab_size=0), "llama.vocab_size is 0"),
        (with_metadata(llama__vocab_size=(1 << 32) - 1), "llama.vocab_size is 4294967295"),
        (with_metadata(llama__block_count=100_000), "llama.block_count is 100000"),
        (with_metadata(llama__embedding_length=0), "llama.embedding_length is 0"),
        (
            with_metadata(tokenizer__ggml__tokens=struct.pack("<IIQ", ARRAY, STRING, 0)),
            "holds no tokens",
        ),
        (with_metadata(tokenizer__ggml__tokens=[1, 2, 3, 4]), "holds no tokens"),
        (with_metadata(tokenizer__ggml__token_type=[1, 1]), "not a list of 4 numbers"),
        (with_metadata(tokenizer__ggml__token_type=3), "not a list of 4 numbers"),
        (Gguf(metadata={"general.name": "x"}), "general.architecture is missing"),
        (with_metadata(general__architecture=7), "general.architecture is not text"),
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, gguf: Gguf, says: str) -> None:
    message = refused(gguf.write(tmp_path / "m.gguf"))
    assert says in message
    assert "download it again" in message


def test_a_fault_is_told_with_its_place_in_the_file(tmp_path: Path) -> None:
    bad = Gguf(metadata={}, n_entries=1, raw_entries=string("key", 1 << 62))
    assert "at byte 24;" in refused(bad.write(tmp_path / "m.gguf"))


@pytest.mark.parametrize(
    ("changes", "ask"),
    [
        ({"llama__attention__head_count_kv": [2, 2, 2]}, "kv_head_counts"),
        ({"llama__attention__head_count_kv": "two"}, "kv_head_counts"),
        ({"llama__attention__head_count": 1 << 30}, "head_counts"),
        ({"llama__attention__key_length": 1 << 30}, "key_length"),
        ({"tokenizer__chat_template": 5}, "chat_template"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_when_asked_for(
    tmp_path: Path, changes: dict[str, Any], ask: str
) -> None:
    header = read_header(with_metadata(**changes).write(tmp_path / "m.gguf"))
    with pytest.raises(ModelFileError, match=r"m\.gguf"):
        getattr(header, ask)


def test_names_from_the_file_cannot_speak_to_the_terminal(tmp_path: Path) -> None:
    bad = Gguf(tensors=[Tensor(name="\x1b[2Jx\u202ey\n", dims=(0,))])
    message = refused(bad.write(tmp_path / "m.gguf"))
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert "\\x1b[2Jx\\u202ey\\n" in message


def test_every_truncation_of_a_model_is_refused(tmp_path: Path) -> None:
    whole = Gguf().bytes()
    path = tmp_path / "m.gguf"
    assert len(whole) > 1500
    for n in range(1, len(whole), 7):
        path.write_bytes(whole[:n])
        refused(path)


def test_a_truncated_real_file_is_refused(tmp_path: Path, tiny_models: TinyModels) -> None:
    whole = tiny_models().read_bytes()
    path = tmp_path / "m.gguf"
    for n in (3, 24, 5000, 20_000, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n])
        refused(path)


SMALL = Gguf(MODEL | {"general.file_type": 0, "tokenizer.ggml.scores": [1, 2, 3, 4]}).bytes()
FUZZ = settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@FUZZ
@given(
    length=st.one_of(st.just(len(SMALL)), st.integers(0, len(SMALL))),
    flips=st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), max_size=6),
)
def test_damage_gives_a_header_or_our_own_error_and_little_memory(
    tmp_path: Path, length: int, flips: list[tuple[int, int]]
) -> None:
    damaged = bytearray(SMALL)
    for at, byte in flips:
        damaged[at] = byte
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(damaged[:length])
    tracemalloc.start()
    with suppress(EdgespecError):
        ask_everything(read_header(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@FUZZ
@given(noise=st.binary(max_size=200))
def test_random_bytes_behind_the_magic_give_our_own_error(tmp_path: Path, noise: bytes) -> None:
    path = tmp_path / "fuzz.gguf"
    path.write_bytes(b"GGUF" + struct.pack("<I", 3) + noise)
    with pytest.raises(EdgespecError):
        ask_everything(read_header(path))


def test_arrays_of_numbers_are_read_only(tmp_path: Path) -> None:
    types = read_header(Gguf().write(tmp_path / "m.gguf")).metadata["tokenizer.ggml.token_type"]
    assert isinstance(types, np.ndarray)
    with pytest.raises(ValueError, match="read-only"):
        types[0] = 9


def test_a_file_that_claims_more_layers_than_it_holds_is_refused(tiny_models: TinyModels) -> None:
    """The C++ loader would abort the whole process."""
    data = bytearray(tiny_models(layers=2).read_bytes())
    key = b"llama.block_count"
    at = data.index(key) + len(key) + 4
    data[at : at + 4] = (3).to_bytes(4, "little")
    lying = tiny_models(layers=2).with_name("lying.gguf")
    lying.write_bytes(data)
    with pytest.raises(ModelFileError, match="claims 3 layers"):
        read_header(lying)
