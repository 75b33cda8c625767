"""Small language models with seeded weights, written as GGUF, that real llama.cpp runs.

Not one of them makes sense, but their answers depend on the whole prompt and do not fall into a
loop at once, and a noisy copy of a model guesses some of its tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import TypedDict, Unpack

import gguf
import numpy as np
from numpy.typing import NDArray

from edgespec.text.thoughts import MARKS

CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
BOS, IM_START, IM_END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CONTROL = (BOS, IM_START, IM_END)
_HEADS, _KV_HEADS, _EPS = 4, 2, 1e-5
_CORPUS = (
    "the user asked for a short answer and the model wrote one word after the other, "
    "then the other model read every word and kept the words that it would have written itself. "
    "def main(): return the first of the list, for each item in the list: print(item) "
)

Weights = dict[str, NDArray[np.float32]]


class Shape(TypedDict, total=False):
    """What can be chosen about a tiny model."""

    seed: int
    layers: int
    vocab: int
    width: int
    noise: float
    tokens: Sequence[str] | None
    template: str
    context: int
    sliding_window: int | None
    recurrent: bool
    hybrid: bool


@dataclass(frozen=True)
class Tiny:
    """A model to be written.

    noise: standard deviation of what is added to each weight, relative to the weight tensor's
    own. A noisy llama says the same as the clean one at about 0.9 of all places with 0.012, 0.6
    with 0.055 and 0.3 with 0.15. tokens: the vocabulary in byte-level spelling; None makes byte
    tokens, merges and control tokens; marks of thoughts among them are control tokens. context:
    what the metadata claims. sliding_window: gemma2 instead of llama, with a window of so many
    tokens on every other layer. recurrent: mamba instead of llama. hybrid: lfm2 instead of llama.
    """

    seed: int = 0
    layers: int = 4
    vocab: int = 384
    width: int = 64
    noise: float = 0.0
    tokens: Sequence[str] | None = None
    template: str = CHATML
    context: int = 512
    sliding_window: int | None = None
    recurrent: bool = False
    hybrid: bool = False

    @property
    def arch(self) -> str:
        if self.recurrent:
            return "mamba"
        if self.hybrid:
            return "lfm2"
        return "gemma2" if self.sliding_window else "llama"

    @property
    def hidden(self) -> int:
        return 2 * self.width


def write_tiny_llama(path: Path, **shape: Unpack[Shape]) -> None:
    """Write a small f32 model; the same arguments always write the same weights."""
    tiny = Tiny(**shape)
    tokens, merges = _vocabulary(tiny)
    tiny = replace(tiny, vocab=len(tokens))
    writer = gguf.GGUFWriter(path, tiny.arch)
    writer.add_name(f"tiny {tiny.arch} {tiny.seed}")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_vocab_size(tiny.vocab)
    writer.add_context_length(tiny.context)
    writer.add_embedding_length(tiny.width)
    writer.add_block_count(tiny.layers)
    writer.add_layer_norm_rms_eps(_EPS)
    _add_tokenizer(writer, tokens, merges)
    writer.add_chat_template(tiny.template)
    make: dict[str, Callable[[gguf.GGUFWriter, Tiny], Weights]] = {
        "llama": _llama,
        "gemma2": _gemma2,
        "mamba": _mamba,
        "lfm2": _lfm2,
    }
    for name, weight in _noisy(make[tiny.arch](writer, tiny), tiny).items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class TinyModels:
    """Writes each asked-for model once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] = {}

    def __call__(self, **shape: Unpack[Shape]) -> Path:
        key = repr(Tiny(**shape))
        if key not in self._paths:
            path = self._folder / f"tiny-{len(self._paths)}.gguf"
            write_tiny_llama(path, **shape)
            self._paths[key] = path
        return self._paths[key]


def _vocabulary(tiny: Tiny) -> tuple[list[str], list[str]]:
    """Tokens in byte-level spelling, and the merges that make the longer ones."""
    letters = _byte_letters()
    n_merges = tiny.vocab - len(letters) - len(CONTROL)
    assert n_merges >= 0, "bytes and control tokens alone are 259 ids"
    merges = _learn_merges("".join(letters[b] for b in _CORPUS.encode()), n_merges)
    words = ["".join(pair) for pair in merges]
    tokens = [*letters, *words, *CONTROL] if tiny.tokens is None else list(tiny.tokens)
    known = set(tokens)
    usable = [" ".join(pair) for pair in merges if "".join(pair) in known]
    # llama.cpp loads no byte-level tokenizer without merges
    return tokens, usable or [f"{letters[0]} {letters[1]}"]


def _byte_letters() -> list[str]:
    """The visible character that stands for each byte, as GPT-2 spells bytes."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in visible]
    code = {b: b for b in visible} | {b: 256 + i for i, b in enumerate(hidden)}
    return [chr(code[b]) for b in range(256)]


def _learn_merges(text: str, n: int) -> list[tuple[str, str]]:
    """The `n` most frequent pairs of pieces inside words, each joined before the next is sought.

    Once every word is one piece, pairs of letters follow.
    """
    space = _byte_letters()[32]
    words = [list(space + word) for word in text.split(space) if word]
    merges: list[tuple[str, str]] = []
    made: set[str] = set()
    spare = ((a, b) for a in ascii_lowercase for b in ascii_lowercase)
    while len(merges) < n:
        pairs = Counter(p for w in words for p in pairwise(w))
        fresh = [pair for pair in pairs if "".join(pair) not in made]
        if fresh:
            best = max(fresh, key=lambda pair: (pairs[pair], pair))
        else:
            best = next(pair for pair in spare if "".join(pair) not in made)
        merges.append(best)
        made.add("".join(best))
        words = [_joined(word, best) for word in words]
    return merges


def _joined(word: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    for piece in word:
        if joined and (joined[-1], piece) == pair:
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


def _add_tokenizer(writer: gguf.GGUFWriter, tokens: list[str], merges: list[str]) -> None:
    named = {token for token in tokens if token.startswith("<|") and token.endswith("|>")}
    control = named.union(MARKS)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    kinds = (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL)
    writer.add_token_types([kinds[token in control] for token in tokens])
    writer.add_token_merges(merges)
    for token, add in ((BOS, writer.add_bos_token_id), (IM_END, writer.add_eos_token_id)):
        if token in control:
            add(tokens.index(token))
    writer.add_add_bos_token(False)


def _noisy(weights: Weights, tiny: Tiny) -> Weights:
    rng = np.random.default_rng([tiny.seed, 1])
    if not tiny.noise:
        return weights
    return {
        name: (w + rng.normal(0, tiny.noise * (w.std() or 0.0), w.shape)).astype(np.float32)
        for name, w in weights.items()
    }


def _maker(tiny: Tiny) -> Callable[..., NDArray[np.float32]]:
    """Draws matrices [out, in] whose outputs have the asked-for scale for inputs of scale 1."""
    rng = np.random.default_rng([tiny.seed, 0])

    def matrix(out: int, into: int, scale: float = 1.0) -> NDArray[np.float32]:
        return rng.normal(0, scale / np.sqrt(into), (out, into)).astype(np.float32)

    return matrix


def _ones(n: int, scale: float = 1.0) -> NDArray[np.float32]:
    return np.full(n, scale, np.float32)


def _attention(
    tiny: Tiny, writer: gguf.GGUFWriter, kv_heads: int | Sequence[int] = _KV_HEADS
) -> Weights:
    """What llama, gemma2 and lfm2 have in common."""
    writer.add_feed_forward_length(tiny.hidden)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(kv_heads)
    head = tiny.width // _HEADS
    writer.add_key_length(head)
    writer.add_value_length(head)
    matrix = _maker(tiny)
    weights: Weights = {"token_embd.weight": matrix(tiny.vocab, tiny.width, np.sqrt(tiny.width))}
    for i in range(tiny.layers):
        blk = f"blk.{i}."
        weights |= {
            blk + "attn_norm.weight": _ones(tiny.width),
            blk + "attn_q.weight": matrix(tiny.width, tiny.width, 1.5),
            blk + "attn_k.weight": matrix(_KV_HEADS * head, tiny.width, 1.5),
            blk + "attn_v.weight": matrix(_KV_HEADS * head, tiny.width),
            blk + "attn_output.weight": matrix(tiny.width, tiny.width),
            blk + "ffn_norm.weight": _ones(tiny.width),
            blk + "ffn_gate.weight": matrix(tiny.hidden, tiny.width, 2.0),
            blk + "ffn_up.weight": matrix(tiny.hidden, tiny.width),
            blk + "ffn_down.weight": matrix(tiny.width, tiny.hidden),
        }
    weights["output_norm.weight"] = _ones(tiny.width)
    weights["output.weight"] = matrix(tiny.vocab, tiny.width, 3.0)
    return weights


def _llama(writer: gguf.GGUFWriter, tiny: Tiny) -> Weights:
    writer.add_rope_dimension_count(tiny.width // _HEADS)
    return _attention(tiny, writer)


def _gemma2(writer: gguf.GGUFWriter, tiny: Tiny) -> Weights:
    """Every other layer sees a window; the output matrix is the embedding's."""
    assert tiny.sliding_window
    writer.add_sliding_window(tiny.sliding_window)
    writer.add_attn_logit_softcapping(50.0)
    writer.add_final_logit_softcapping(30.0)
    weights = _attention(tiny, writer)
    del weights["output.weight"]
    # gemma2 multiplies embeddings by sqrt(width) on the way in
    weights["token_embd.weight"] /= np.float32(np.sqrt(tiny.width))
    weights["output_norm.weight"] = _ones(tiny.width, 3.0)
    for i in range(tiny.layers):
        weights[f"blk.{i}.post_attention_norm.weight"] = _ones(tiny.width, 8.0)
        weights[f"blk.{i}.post_ffw_norm.weight"] = _ones(tiny.width, 8.0)
    return weights


def _lfm2(writer: gguf.GGUFWriter, tiny: Tiny) -> Weights:
    """Every other layer, the first among them, is a short convolution, whose state is not kept
    for each token as keys and values are."""
    kernel = 3
    writer.add_shortconv_l_cache(kernel)
    weights = _attention(tiny, writer, [_KV_HEADS * (i % 2) for i in range(tiny.layers)])
    weights["token_embd_norm.weight"] = weights.pop("output_norm.weight")
    matrix = _maker(replace(tiny, seed=tiny.seed + 1))
    for i in range(tiny.layers):
        blk = f"blk.{i}."
        if i % 2:
            for part in ("q", "k"):
                weights[f"{blk}attn_{part}_norm.weight"] = _ones(tiny.width // _HEADS)
            continue
        for part in ("q", "k", "v", "output"):
            del weights[f"{blk}attn_{part}.weight"]
        weights |= {
            blk + "shortconv.conv.weight": matrix(tiny.width, kernel, 1.5),
            blk + "shortconv.in_proj.weight": matrix(3 * tiny.width, tiny.width, 1.5),
            blk + "shortconv.out_proj.weight": matrix(tiny.width, tiny.width, 2.0),
        }
    return weights


def _mamba(writer: gguf.GGUFWriter, tiny: Tiny) -> Weights:
    inner, state, kernel, rank = tiny.hidden, 8, 4, 4
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(kernel)
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(state)
    writer.add_ssm_time_step_rank(rank)
    matrix = _maker(tiny)
    weights: Weights = {"token_embd.weight": matrix(tiny.vocab, tiny.width, np.sqrt(tiny.width))}
    for i in range(tiny.layers):
        blk = f"blk.{i}."
        weights |= {
            blk + "attn_norm.weight": _ones(tiny.width),
            blk + "ssm_in.weight": matrix(2 * inner, tiny.width, 1.5),
            blk + "ssm_conv1d.weight": matrix(inner, kernel, 1.5),
            blk + "ssm_conv1d.bias": _ones(inner, 0.0),
            blk + "ssm_x.weight": matrix(rank + 2 * state, inner, 2.0),
            blk + "ssm_dt.weight": matrix(inner, rank),
            blk + "ssm_dt.bias": _ones(inner, -1.0),
            blk + "ssm_a": -np.tile(np.arange(1, state + 1, dtype=np.float32), (inner, 1)),
            blk + "ssm_d": _ones(inner),
            blk + "ssm_out.weight": matrix(tiny.width, inner, 2.0),
        }
    weights["output_norm.weight"] = _ones(tiny.width)
    weights["output.weight"] = matrix(tiny.vocab, tiny.width, 3.0)
    return weights
