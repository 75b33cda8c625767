"""Loading, tokenizing, requantising and closing with llama.cpp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_trials import EXACT, Models, session
from tiny_models import BOS, CHATML, IM_END, IM_START, TinyModels

from edgespec.backends import Placement, SessionOptions
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.errors import BackendFailed, BadInput, ModelFileError, NotFound
from edgespec.models.gguf import read_header
from edgespec.testing import read
from edgespec_llamacpp import LlamaCppBackend
from edgespec_llamacpp.model import LlamaModel
from edgespec_llamacpp.tokenizer import LlamaTokenizer


def _load(path: Path) -> LlamaModel:
    return LlamaCppBackend.load(path, Placement())


def test_control_tokens_are_read_only_where_they_are_wanted(llama: Models) -> None:
    tokenizer = llama().tokenizer
    assert tokenizer.encode(IM_END, special=True) == [383]
    spelled = tokenizer.encode(IM_END, special=False)
    assert 383 not in spelled
    assert b"".join(tokenizer.piece(t) for t in spelled) == IM_END.encode()


def test_no_begin_token_is_added(llama: Models) -> None:
    tokenizer = llama().tokenizer
    assert tokenizer.encode("", special=True) == []
    assert tokenizer.encode("a", special=True) == tokenizer.encode("a", special=False)
    assert tokenizer.bos is None
    assert len(tokenizer.encode("a", special=False)) == 1


def test_every_byte_has_a_token_and_gets_its_byte_back(llama: Models) -> None:
    tokenizer = llama().tokenizer
    assert {tokenizer.piece(token) for token in range(256)} == {bytes([b]) for b in range(256)}


def test_any_text_comes_back(llama: Models) -> None:
    tokenizer = llama().tokenizer
    for text in (
        "the other model",
        "wörld 😀\n\t\x00\x7f",
        "中文" * 50,
        " ",
        "\r\n" * 3,
        "a" * 999,
    ):
        ids = tokenizer.encode(text, special=False)
        assert b"".join(tokenizer.piece(t) for t in ids) == text.encode()


def test_half_a_surrogate_is_replaced_and_not_fatal(llama: Models) -> None:
    tokenizer = llama().tokenizer
    ids = tokenizer.encode("a\ud800b", special=False)
    assert b"".join(tokenizer.piece(t) for t in ids) == b"a?b"


def test_control_tokens_have_no_text(llama: Models) -> None:
    tokenizer = llama().tokenizer
    assert [tokenizer.piece(t) for t in (381, 382, 383)] == [b"", b"", b""]


def test_a_mark_of_a_thought_has_its_text_though_it_is_a_control_token(
    llama: Models, tiny_models: TinyModels
) -> None:
    tokens = [t.decode() for t in read_header(tiny_models()).tokens]
    tokens[300], tokens[301] = "[THINK]", "[/THINK]"
    tokenizer = llama(tokens=tuple(tokens), layers=1).tokenizer
    assert tokenizer.encode("[THINK][/THINK]", special=True) == [300, 301]
    assert not {300, 301} & set(tokenizer.encode("[THINK][/THINK]", special=False))
    assert (tokenizer.piece(300), tokenizer.piece(301)) == (b"[THINK]", b"[/THINK]")
    assert tokenizer.piece(383) == b""


def test_a_piece_longer_than_the_buffer_is_whole(llama: Models, tiny_models: TinyModels) -> None:
    tokens = [t.decode() for t in read_header(tiny_models()).tokens]
    tokens[300] = "x" * 700
    tokenizer = llama(tokens=tuple(tokens), layers=1).tokenizer
    assert tokenizer.piece(300) == b"x" * 700
    assert tokenizer.piece(299) == llama().tokenizer.piece(299)


def test_a_piece_asked_for_while_another_is_read_mixes_nothing_up(
    llama: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another thread does."""
    tokenizer = LlamaTokenizer(llama()._handle)
    real, asked = tokenizer._lib, list[bytes]()

    class Meanwhile:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def llama_token_to_piece(self, *given: Any) -> int:
            length: int = real.llama_token_to_piece(*given)
            if not asked:
                asked.append(b"")
                asked[0] = tokenizer.piece(66)
            return length

    monkeypatch.setattr(tokenizer, "_lib", Meanwhile())
    assert tokenizer.piece(65) == llama().tokenizer.piece(65) != asked[0]
    assert tokenizer.piece(65) == llama().tokenizer.piece(65), "and so the next time"


def test_end_tokens_are_those_of_the_model(llama: Models) -> None:
    tokenizer = llama().tokenizer
    assert tokenizer.end_tokens == {381, 383}
    assert (tokenizer.special_text("bos"), tokenizer.special_text("eos")) == (BOS, IM_END)
    assert tokenizer.encode(IM_START, special=True) == [382]


def test_the_template_of_the_file_is_handed_out(llama: Models) -> None:
    assert llama().tokenizer.template() == CHATML


def test_the_vocabulary_is_that_of_the_scores(llama: Models) -> None:
    model = llama(vocab=300, layers=1)
    target = session(model)
    read(target, [1])
    assert model.tokenizer.vocab == target.caps.vocab == 300
    assert target.verify(EMPTY).logits(ROOT).shape == (300,)


def test_requantised_weights_say_nearly_the_same(tiny_models: TinyModels, tmp_path: Path) -> None:
    source, copy = tiny_models(layers=2), tmp_path / "copy.gguf"
    LlamaCppBackend.requantize(source, copy, "bf16")
    assert copy.stat().st_size < 0.7 * source.stat().st_size
    rows = []
    for path in (source, copy):
        model = _load(path)
        target = session(model)
        read(target, [1, 2, 3])
        rows.append(target.verify(EMPTY).logits(ROOT).copy())
        model.close()
    difference = np.abs(rows[0] - rows[1]).max()
    assert 0 < difference < 0.1 * np.abs(rows[0]).max()


def test_a_copy_that_cannot_be_written_names_the_reason(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    with pytest.raises(BackendFailed, match=r"Could not write x\.gguf as bf16: .*room on the disk"):
        LlamaCppBackend.requantize(tiny_models(), tmp_path / "no" / "x.gguf", "bf16")


def test_a_file_that_is_cut_short_is_named_with_the_native_reason(
    tiny_models: TinyModels, tmp_path: Path
) -> None:
    whole = tiny_models(layers=2).read_bytes()
    broken = tmp_path / "cut.gguf"
    broken.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelFileError, match=r"could not load cut\.gguf: .*(data|bounds|corrupt)"):
        _load(broken)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 64, b"x" * 999])
def test_garbage_is_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "garbage.gguf"
    path.write_bytes(content)
    with pytest.raises(
        ModelFileError, match=r"could not load garbage\.gguf: (?!it gave no reason)"
    ):
        _load(path)


def test_a_reason_belongs_to_its_own_load(tiny_models: TinyModels, tmp_path: Path) -> None:
    """The native log of one failure does not show up in the next."""
    short, garbage = tmp_path / "short.gguf", tmp_path / "garbage.gguf"
    short.write_bytes(tiny_models(layers=2).read_bytes()[:50_000])
    garbage.write_bytes(b"x" * 100)
    reasons = []
    for path in (short, garbage, short):
        with pytest.raises(ModelFileError) as caught:
            _load(path)
        reasons.append(str(caught.value))
    assert reasons[0] == reasons[2]
    assert reasons[0].partition(": ")[2] != reasons[1].partition(": ")[2]


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="No model file"):
        _load(tmp_path / "none.gguf")
    with pytest.raises(NotFound, match="No model file"):
        _load(tmp_path)


def test_the_native_library_prints_nothing(
    tiny_models: TinyModels, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "garbage.gguf").write_bytes(b"GGUF" + b"\xff" * 60)
    with pytest.raises(ModelFileError):
        _load(tmp_path / "garbage.gguf")
    model = _load(tiny_models(layers=2))
    target = session(model)
    read(target, [1, 2, 3])
    target.verify(EMPTY)
    LlamaCppBackend.requantize(tiny_models(layers=2), tmp_path / "copy.gguf", "bf16")
    model.close()
    assert capfd.readouterr() == ("", "")


def test_closing_twice_is_fine_and_closes_the_sessions(tiny_models: TinyModels) -> None:
    model = _load(tiny_models(layers=2))
    target, loop, batch = session(model), model.plain_loop(EXACT), model.batch(2, 16)
    model.close()
    assert (target._context, loop._context, batch._context) == (None, None, None)
    model.close()
    for closed in (target, loop, batch):
        closed.close()  # what is freed already is not freed again


def test_a_session_may_close_before_its_model(tiny_models: TinyModels) -> None:
    model = _load(tiny_models(layers=2))
    first, second = session(model), session(model)
    for target in (first, second):
        read(target, [1, 2])
    row = first.verify(EMPTY).logits(ROOT).copy()
    first.close()
    assert np.array_equal(second.verify(EMPTY).logits(ROOT), row), "the other one goes on"
    model.close()
    assert second._context is None


def test_unknown_settings_are_refused_with_what_there_is(llama: Models) -> None:
    with pytest.raises(BadInput, match=r"--kv-type is 'q5_1'; it must be one of f32, f16"):
        llama().session(SessionOptions(256, 1, kv_type="q5_1"))
    with pytest.raises(BadInput, match="--flash-attention is 'maybe'"):
        llama().session(SessionOptions(256, 1, flash_attention="maybe"))


@pytest.mark.parametrize("kv_type", ["f16", "q8_0", "q4_0"])
def test_smaller_caches_say_nearly_the_same(llama: Models, kv_type: str) -> None:
    rows = []
    for options in (EXACT, SessionOptions(256, 1, kv_type, "auto")):
        target = llama(layers=2, width=128).session(options)
        read(target, list(range(40)))
        rows.append(target.verify(EMPTY).logits(ROOT).copy())
    assert np.corrcoef(rows[0], rows[1])[0, 1] > {"f16": 0.999, "q8_0": 0.98, "q4_0": 0.5}[kv_type]


def test_probe_names_backend_and_version() -> None:
    probe = LlamaCppBackend.probe()
    assert probe.name == "llamacpp"
    assert probe.version[0].isdigit()


def test_identity_is_that_of_the_file(tiny_models: TinyModels, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    identities = []
    for layers in (2, 2, 1):
        content = tiny_models(layers=layers).read_bytes()
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
        model = _load(path)
        identities.append(model.identity)
        model.close()
    first, again, changed = identities
    assert first == again != changed
    assert "model.gguf" in first
