"""The tiny models are models: real llama.cpp loads them and they behave as the tests need."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import CONTROL, TinyModels, write_tiny_llama

from edgespec.models.gguf import read_header

llama_cpp = pytest.importorskip("llama_cpp")


@llama_cpp.llama_log_callback  # kept as a global, since llama.cpp keeps only the pointer
def _silent(level: int, text: bytes, user_data: object) -> None:
    pass


class Runner:
    """One context of a tiny model, on one thread, float32 cache."""

    def __init__(self, model: object, context: object) -> None:
        self._model = model
        self._context = context
        self._vocab = llama_cpp.llama_model_get_vocab(model)
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(self._vocab)

    def encode(self, text: str) -> list[int]:
        ids = (ctypes.c_int32 * 512)()
        raw = text.encode()
        n = llama_cpp.llama_tokenize(self._vocab, raw, len(raw), ids, 512, False, True)
        return list(ids[:n])

    def decode(self, ids: list[int]) -> bytes:
        piece = ctypes.create_string_buffer(64)
        out = b""
        for token in ids:
            n = llama_cpp.llama_token_to_piece(self._vocab, token, piece, 64, 0, True)
            out += piece.raw[:n]
        return out

    def scores(self, ids: list[int]) -> NDArray[np.float32]:
        """float32 [len(ids), vocabulary], from an empty cache."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
        assert llama_cpp.llama_decode(self._context, batch) == 0
        rows = np.ctypeslib.as_array(
            llama_cpp.llama_get_logits(self._context), (len(ids), self.n_vocab)
        ).copy()
        llama_cpp.llama_batch_free(batch)
        return rows

    def greedy(self, ids: list[int], n: int) -> list[int]:
        row = self.scores(ids)[-1]
        answer: list[int] = []
        for _ in range(n):
            answer.append(int(row.argmax()))
            batch = llama_cpp.llama_batch_get_one((ctypes.c_int32 * 1)(answer[-1]), 1)
            assert llama_cpp.llama_decode(self._context, batch) == 0
            logits = llama_cpp.llama_get_logits(self._context)
            row = np.ctypeslib.as_array(logits, (self.n_vocab,)).copy()
        return answer


@contextmanager
def running(path: Path) -> Iterator[Runner]:
    llama_cpp.llama_log_set(_silent, ctypes.c_void_p(0))
    model = llama_cpp.llama_model_load_from_file(
        str(path).encode(), llama_cpp.llama_model_default_params()
    )
    assert model
    params = llama_cpp.llama_context_default_params()
    params.n_ctx = 512
    params.n_threads = params.n_threads_batch = 1
    params.type_k = params.type_v = llama_cpp.GGML_TYPE_F32
    context = llama_cpp.llama_init_from_model(model, params)
    assert context
    try:
        yield Runner(model, context)
    finally:
        llama_cpp.llama_free(context)
        llama_cpp.llama_model_free(model)


KINDS = [{}, {"seed": 1}, {"layers": 2, "width": 32}, {"sliding_window": 16}, {"recurrent": True}]


@pytest.mark.parametrize("shape", KINDS, ids=str)
def test_any_text_survives_the_tokenizer(tiny_models: TinyModels, shape: dict) -> None:
    text = "Hello wörld 😀\n\tthe user asked <|im_start|>user\nHi<|im_end|>"
    with running(tiny_models(**shape)) as model:
        assert model.decode(model.encode(text)) == text.encode()


@pytest.mark.parametrize("shape", KINDS, ids=str)
def test_greedy_text_is_neither_flat_nor_a_loop(tiny_models: TinyModels, shape: dict) -> None:
    with running(tiny_models(**shape)) as model:
        prompt = model.encode("Tell me a story")
        answer = model.greedy(prompt, 120)
        rows = model.scores(prompt + answer)
    assert len(set(answer)) > 40
    assert len(set(pairwise(answer))) > 80
    assert 1.5 < rows.std(axis=1).mean() < 5


def test_control_tokens_are_single_ids_at_the_end(tiny_models: TinyModels) -> None:
    with running(tiny_models()) as model:
        ids = [model.encode(token) for token in CONTROL]
        assert ids == [[model.n_vocab - 3], [model.n_vocab - 2], [model.n_vocab - 1]]


def test_a_vocabulary_of_ones_own_is_used_as_given(tiny_models: TinyModels) -> None:
    tokens = read_header(tiny_models()).tokens
    backwards = tuple(token.decode() for token in reversed(tokens))
    with running(tiny_models(tokens=backwards)) as model:
        assert model.n_vocab == len(tokens)
        assert (
            model.decode(model.encode("Hello wörld<|im_end|>")) == "Hello wörld<|im_end|>".encode()
        )
        assert model.encode("<|im_end|>") == [0]


@pytest.mark.parametrize(
    ("noise", "least", "most"), [(0.012, 0.8, 0.98), (0.055, 0.45, 0.75), (0.15, 0.15, 0.45)]
)
def test_noise_sets_how_often_a_copy_agrees(
    tiny_models: TinyModels, noise: float, least: float, most: float
) -> None:
    with running(tiny_models()) as model:
        text = model.encode("Tell me a story")
        text += model.greedy(text, 250)
        said = model.scores(text).argmax(axis=1)
    with running(tiny_models(noise=noise)) as copy:
        guessed = copy.scores(text).argmax(axis=1)
    assert least < (said == guessed).mean() < most


def test_a_window_hides_distant_tokens(tiny_models: TinyModels) -> None:
    one, other = [5, *range(40, 80)], [6, *range(40, 80)]
    with running(tiny_models(sliding_window=4, layers=1)) as model:
        assert np.array_equal(model.scores(one)[-1], model.scores(other)[-1])
    with running(tiny_models(layers=1)) as model:
        assert not np.array_equal(model.scores(one)[-1], model.scores(other)[-1])


def test_the_same_arguments_write_the_same_file(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        write_tiny_llama(tmp_path / name, seed=3, noise=0.1)
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
