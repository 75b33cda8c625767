"""Tiny models as folders of safetensors, written by hand from the weights of a GGUF file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from edgespec.models.split import read_model
from edgespec_mlx.gguf_vocabulary import tokenizer_files

NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
OUTER = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


def write_folder(folder: Path, source: Path, **config: Any) -> Path:
    """The llama of a GGUF file as transformers would save it; `config` is added to config.json."""
    from safetensors.numpy import save_file  # comes with mlx-lm

    folder.mkdir(parents=True, exist_ok=True)
    header = read_model(source)
    heads, kv_heads = max(header.head_counts), max(header.kv_head_counts)
    weights: dict[str, NDArray[Any]] = {}
    for tensor in gguf.GGUFReader(source).tensors:
        name, weight = str(tensor.name), np.array(tensor.data)
        if name in OUTER:
            weights[OUTER[name]] = weight
            continue
        _, layer, inner, part = name.split(".")
        if inner in ("attn_q", "attn_k"):
            weight = in_halves(weight, heads if inner == "attn_q" else kv_heads)
        weights[f"model.layers.{layer}.{NAMES[inner]}.{part}"] = weight
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    usual = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": header.embedding_length,
        "num_hidden_layers": header.block_count,
        "intermediate_size": header.feed_forward_length,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "rms_norm_eps": 1e-5,
        "vocab_size": header.vocabulary_size,
        "max_position_embeddings": header.context_length,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }
    write_json(folder / "config.json", usual | config)
    for name, content in tokenizer_files(header).items():
        if isinstance(content, str):
            (folder / name).write_text(content)
        else:
            write_json(folder / name, content)
    return folder


def in_halves(weight: NDArray[Any], heads: int) -> NDArray[Any]:
    """Rows of each head as transformers keeps them: llama.cpp interleaves its two halves."""
    size = len(weight) // heads
    rows = [
        head * size + 2 * (n % (size // 2)) + n // (size // 2)
        for head in range(heads)
        for n in range(size)
    ]
    return weight[rows]


def write_json(path: Path, values: Any) -> None:
    path.write_text(json.dumps(values))


def change_json(path: Path, **changes: Any) -> None:
    """Change some entries of a JSON object in a file; None takes one away."""
    values = json.loads(path.read_text()) | changes
    write_json(path, {name: value for name, value in values.items() if value is not None})
