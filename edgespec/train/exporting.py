"""A trained drafter as files that every backend loads: GGUF, and safetensors with their config."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import gguf
import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY
from edgespec.models.store import write_atomically
from edgespec.train.student import Shape, Student
from edgespec.train.vocabulary import Vocabulary

_LAYER = {
    "q": ("attn_q", "self_attn.q_proj"),
    "k": ("attn_k", "self_attn.k_proj"),
    "v": ("attn_v", "self_attn.v_proj"),
    "o": ("attn_output", "self_attn.o_proj"),
    "gate": ("ffn_gate", "mlp.gate_proj"),
    "up": ("ffn_up", "mlp.up_proj"),
    "down": ("ffn_down", "mlp.down_proj"),
    "attention_norm": ("attn_norm", "input_layernorm"),
    "feed_forward_norm": ("ffn_norm", "post_attention_layernorm"),
}
_WHOLE = {
    "embedding": ("token_embd", "model.embed_tokens"),
    "output": ("output", "lm_head"),
    "norm": ("output_norm", "model.norm"),
}

Matrix = NDArray[np.float32]


def write_gguf(
    path: Path, student: Student, vocabulary: Vocabulary, *, name: str, target: str
) -> None:
    """The drafter with 8-bit matrices, and its id table in the header.

    target: fingerprint of the vocabulary that the ids are of.
    """
    shape = student.shape
    unfinished = path.with_suffix(".part")
    writer = gguf.GGUFWriter(unfinished, "llama")
    writer.add_name(name)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.feed_forward)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head)
    writer.add_value_length(shape.head)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_vocab_size(shape.vocab)
    writer.add_file_type(int(gguf.LlamaFileType.MOSTLY_Q8_0))
    writer.add_tokenizer_model("no_vocab")
    writer.add_array(IDS_KEY, vocabulary.ids.tolist())
    writer.add_string(VOCABULARY_KEY, target)
    for tensor, weights in _as_gguf(student):
        if weights.ndim == 1:
            writer.add_tensor(tensor, weights)
        else:
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(tensor, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    unfinished.replace(path)


def write_safetensors(folder: Path, student: Student, vocabulary: Vocabulary, target: str) -> None:
    """The drafter in 16 bits under the names of a Hugging Face llama, and its id table."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: weights.astype(np.float16) for name, weights in _as_hugging_face(student)}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = _config(student.shape) | {
        IDS_KEY: vocabulary.ids.tolist(),
        VOCABULARY_KEY: target,
    }
    write_atomically(folder / "config.json", json.dumps(config).encode())


def _as_gguf(student: Student) -> Iterator[tuple[str, Matrix]]:
    for own, (tensor, _) in _WHOLE.items():
        yield f"{tensor}.weight", _values(student, own)
    heads = {"q": student.shape.heads, "k": student.shape.kv_heads}
    for n in range(student.shape.layers):
        for own, (tensor, _) in _LAYER.items():
            weights = _values(student, f"blocks.{n}.{own}")
            if own in heads:
                weights = _interleaved(weights, heads[own])
            yield f"blk.{n}.{tensor}.weight", weights


def _as_hugging_face(student: Student) -> Iterator[tuple[str, Matrix]]:
    for own, (_, tensor) in _WHOLE.items():
        yield f"{tensor}.weight", _values(student, own)
    for n in range(student.shape.layers):
        for own, (_, tensor) in _LAYER.items():
            yield f"model.layers.{n}.{tensor}.weight", _values(student, f"blocks.{n}.{own}")


def _values(student: Student, name: str) -> Matrix:
    return np.ascontiguousarray(student.state_dict()[name].float().cpu().numpy())


def _interleaved(weights: Matrix, heads: int) -> Matrix:
    """llama.cpp turns neighbouring rows of a head together, where others turn its two halves."""
    rows, columns = weights.shape
    halves = weights.reshape(heads, 2, rows // heads // 2, columns)
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(rows, columns))


def _config(shape: Shape) -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocab,
        "hidden_size": shape.width,
        "intermediate_size": shape.feed_forward,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head,
        "rms_norm_eps": shape.epsilon,
        "rope_theta": shape.rope_base,
        "max_position_embeddings": shape.context,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
    }
