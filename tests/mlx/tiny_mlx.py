"""Small mlx_lm models with seeded random weights: every family the way its own code builds it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten, tree_unflatten

from edgespec.backends import SessionOptions
from edgespec_mlx.model import MlxModel, ModelFacts
from edgespec_mlx.session import MlxSession

VOCAB, WIDTH, CONTEXT = 384, 128, 256
EXACT = SessionOptions(context=CONTEXT)

_COMMON = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-5,
    "vocab_size": VOCAB,
    "rope_theta": 10000.0,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_SLIDING_FIRST = ["sliding_attention", "full_attention"]
_STATE = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 2,
}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "moe_intermediate_size": 64,
        "norm_topk_prob": True,
    },
    "gemma2": {
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "query_pre_attn_scalar": 32,
    },
    "gemma3_text": {
        "num_hidden_layers": 3,
        "sliding_window": 512,
        "sliding_window_pattern": 3,
        "query_pre_attn_scalar": 32,
    },
    "phi3": {},
    "gpt_oss": {**_EXPERTS, "sliding_window": 64, "layer_types": _SLIDING_FIRST},
    "gemma3n": {
        "model_type": "gemma3n",
        "text_config": {
            **_COMMON,
            "model_type": "gemma3n_text",
            "num_hidden_layers": 4,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": VOCAB,
            "sliding_window": 512,
            "rope_local_base_freq": 10000.0,
            "final_logit_softcapping": 30.0,
            "layer_types": [*_SLIDING_FIRST, *_SLIDING_FIRST],
            "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0],
            "hidden_size_per_layer_input": 32,
            "altup_num_inputs": 2,
            "altup_coef_clip": 120.0,
            "altup_correct_scale": True,
            "altup_active_idx": 0,
            "laurel_rank": 16,
            "intermediate_size": [128, 128, 128, 128],
        },
    },
    "gemma4_text": {
        "num_hidden_layers": 4,
        "num_kv_shared_layers": 2,
        "layer_types": [*_SLIDING_FIRST, *_SLIDING_FIRST],
        "sliding_window": 512,
        "global_head_dim": 32,
        "vocab_size_per_layer_input": VOCAB,
        "hidden_size_per_layer_input": 32,
    },
    "qwen3_next": {
        **_STATE,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "decoder_sparse_step": 1,
        "shared_expert_intermediate_size": 64,
        "mlp_only_layers": [],
        "moe_intermediate_size": 64,
        "partial_rotary_factor": 0.25,
    },
    "mamba": {
        "state_size": 8,
        "conv_kernel": 4,
        "use_bias": False,
        "use_conv_bias": True,
        "time_step_rank": 32,
    },
    "lfm2": {
        "norm_eps": 1e-5,
        "conv_bias": False,
        "conv_L_cache": 3,
        "block_dim": WIDTH,
        "block_multiple_of": 32,
        "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": False,
        "full_attn_idxs": [1],
    },
    "nanochat": {},
    "gpt2": {
        "n_ctx": 512,
        "n_embd": WIDTH,
        "n_head": 4,
        "n_layer": 2,
        "n_positions": 512,
        "layer_norm_epsilon": 1e-5,
    },
    "deepseek_v3": {
        "n_routed_experts": None,
        "q_lora_rank": 64,
        "kv_lora_rank": 64,
        "qk_rope_head_dim": 16,
        "qk_nope_head_dim": 32,
        "v_head_dim": 32,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 1,
        "n_group": 1,
        "topk_group": 1,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "moe_intermediate_size": 64,
    },
}

ASKED_FOR = ("llama", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi3", "gpt_oss")
WITH_WINDOW = ("llama", "gemma3_text", "gpt_oss")


class NoTokenizer:
    """Sessions take ids; nothing here reads text."""

    vocab, end_tokens, bos = VOCAB, frozenset[int](), None

    def encode(self, text: str, *, special: bool) -> list[int]:
        return []

    def piece(self, token: int) -> bytes:
        return b""

    def template(self) -> str | None:
        return None

    def special_text(self, name: str) -> str:
        return ""


@dataclass(frozen=True)
class Tiny:
    """A model to be made.

    window: length of sliding windows, where the family has some. bits: of quantised weights.
    noise: what is added to each weight, relative to its tensor's own spread. changes: more of the
    family's own settings.
    """

    family: str = "llama"
    window: int | None = None
    bits: int | None = None
    noise: float = 0.0
    seed: int = 7
    changes: tuple[tuple[str, Any], ...] = ()


def module_of(tiny: Tiny) -> Any:
    """The family's own module, without anything of ours."""
    code = importlib.import_module(f"mlx_lm.models.{tiny.family}")
    config = {"model_type": tiny.family, **_COMMON, **CONFIGS[tiny.family], **dict(tiny.changes)}
    if tiny.window is not None:
        config["sliding_window"] = tiny.window
        if tiny.family == "llama":
            config["layer_types"] = _SLIDING_FIRST
        if "text_config" in config:
            config["text_config"] = {**config["text_config"], "sliding_window": tiny.window}
    mx.random.seed(tiny.seed)
    module = code.Model(code.ModelArgs.from_dict(config))
    weights = [(name, _sharp(name, w)) for name, w in tree_flatten(module.parameters())]
    mx.eval(weights)
    if tiny.noise:
        mx.random.seed(tiny.seed + 1)
        weights = [(n, w + tiny.noise * w.std() * mx.random.normal(w.shape)) for n, w in weights]
    module.update(tree_unflatten(weights))
    if tiny.bits is not None:
        nn.quantize(module, group_size=32, bits=tiny.bits)
    mx.eval(module.parameters())
    return module


def _sharp(name: str, weight: mx.array) -> mx.array:
    """Larger weights than at the start of training, so that scores differ and text goes on."""
    if name.endswith("sinks"):
        return mx.random.normal(weight.shape)
    if weight.ndim > 1 and "A_log" not in name:
        return 3 * weight
    return weight


def loaded(module: Any, context: int = 2048) -> MlxModel:
    """The module as a loaded model."""
    facts = ModelFacts("tiny", "tiny", "CPU", context, VOCAB, WIDTH)
    return MlxModel(module, NoTokenizer(), facts)


class MlxModels:
    """Makes each asked-for model once."""

    def __init__(self) -> None:
        self._models: dict[Tiny, MlxModel] = {}

    def __call__(self, family: str = "llama", **shape: Any) -> MlxModel:
        tiny = Tiny(family, **shape)
        if tiny not in self._models:
            self._models[tiny] = loaded(module_of(tiny))
        return self._models[tiny]


def session(model: MlxModel, options: SessionOptions = EXACT) -> MlxSession:
    return model.session(options)


Make = Callable[[], MlxSession]
