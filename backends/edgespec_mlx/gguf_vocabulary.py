"""A GGUF file's vocabulary as a tokenizer.json that splits text as llama.cpp does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from edgespec.errors import ModelFileError
from edgespec.models.header import GgufHeader
from edgespec.models.shown import shown
from edgespec.models.vocabulary import TokenType
from edgespec.models.wire import Strings, damaged
from edgespec_mlx.endings import end_tokens

Json = dict[str, Any]

_SPACE: Final = "\u2581"
_GPT2: Final = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_WORDS: Final = (
    r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|"
    r"%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3: Final = (_WORDS % r"\p{N}{1,3}",)
_QWEN2: Final = (_WORDS % r"\p{N}",)
_DEFAULT: Final = (r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")
# Source: llama.cpp, llama-vocab.cpp, llm_tokenizer_bpe; the second: whole words need no merges
_SPLITS: Final[Mapping[str, tuple[tuple[str, ...], bool]]] = {
    "": (_DEFAULT, False),
    "default": (_DEFAULT, False),
    "llama-bpe": (_LLAMA3, True),
    "llama3": (_LLAMA3, True),
    "llama-v3": (_LLAMA3, True),
    "qwen2": (_QWEN2, False),
    "deepseek-r1-qwen": (_QWEN2, False),
    "gpt-2": ((_GPT2,), False),
    "smollm": ((r"\p{N}", _GPT2), False),
}


def tokenizer_files(header: GgufHeader) -> dict[str, Json | str]:
    """The files by name: tokenizer.json and what belongs to it.

    Raises: ModelFileError for a kind of vocabulary that cannot be rebuilt.
    """
    kinds: Mapping[str, Callable[[GgufHeader, list[str]], Json]] = {
        "gpt2": _byte_level,
        "llama": _sentencepiece,
    }
    build = kinds.get(header.tokenizer)
    if build is None or not len(header.tokens):
        raise _refused(header, f"its tokenizer is of the kind '{shown(header.tokenizer, 40)}'")
    texts = [_text(token) for token in header.tokens]
    values = build(header, texts) | {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added(header, texts),
        "post_processor": None,
    }
    files: dict[str, Json | str] = {
        "tokenizer.json": values,
        "tokenizer_config.json": _settings(header, texts),
        "generation_config.json": _generation(header, texts),
    }
    if header.chat_template:
        files["chat_template.jinja"] = header.chat_template
    return files


def _byte_level(header: GgufHeader, texts: list[str]) -> Json:
    split = _SPLITS.get(header.pretokenizer)
    if split is None:
        raise _refused(header, f"its text is split by '{shown(header.pretokenizer, 40)}'")
    patterns, whole_words = split
    merges = header.metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, Strings):
        raise damaged(header.path, "tokenizer.ggml.merges is missing")
    vocab = _vocab(header, texts)
    pairs = [_text(merge).split(" ", 1) for merge in merges]
    letters: Json = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    splits: list[Json] = [
        {"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
        for p in patterns
    ]
    return {
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*splits, letters | {"use_regex": False}],
        },
        "decoder": letters | {"use_regex": False},
        "model": _bpe(
            vocab,
            # a merge into what is no token would stop the library
            [p for p in pairs if len(p) == 2 and {*p, "".join(p)} <= vocab.keys()],
            ignore_merges=whole_words,
        ),
    }


def _sentencepiece(header: GgufHeader, texts: list[str]) -> Json:
    vocab = _vocab(header, texts)
    normalizers: list[Json] = [{"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}]
    if header.metadata.get("tokenizer.ggml.add_space_prefix") is not False:
        normalizers.insert(0, {"type": "Prepend", "prepend": _SPACE})
    unknown = header.special_token("unknown")
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": _bpe(
            vocab,
            _merges_by_score(header, texts, vocab),
            unk_token=None if unknown is None else texts[unknown],
            byte_fallback=True,
            fuse_unk=True,
        ),
    }


def _bpe(vocab: Mapping[str, int], merges: Sequence[Sequence[str]], **settings: Any) -> Json:
    usual: Json = {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
    }
    return usual | settings | {"vocab": vocab, "merges": [list(pair) for pair in merges]}


def _merges_by_score(
    header: GgufHeader, texts: list[str], vocab: Mapping[str, int]
) -> list[tuple[str, str]]:
    """Every way to make a piece out of two, the pieces with the best scores first.

    Pieces that are not plain text are never made, so that nobody can spell a control token.
    """
    scores: Any = header.metadata.get("tokenizer.ggml.scores")
    if scores is None:
        raise damaged(header.path, "tokenizer.ggml.scores is missing")
    types = header.token_types
    plain = [n for n in range(len(texts)) if not len(types) or types[n] == TokenType.NORMAL]
    order = np.argsort(-np.asarray(scores, np.float64)[plain], kind="stable")
    merges: list[tuple[str, str]] = []
    for n in order:
        text = texts[plain[n]]
        for cut in range(1, len(text)):
            left, right = text[:cut], text[cut:]
            if left in vocab and right in vocab:
                merges.append((left, right))
    return merges


def _vocab(header: GgufHeader, texts: list[str]) -> dict[str, int]:
    """Ids by text; what stands for nothing is left out, and of two equal texts the first stays."""
    types = header.token_types
    vocab: dict[str, int] = {}
    for token, text in enumerate(texts):
        if not len(types) or types[token] != TokenType.UNUSED:
            vocab.setdefault(text, token)
    return vocab


def _added(header: GgufHeader, texts: list[str]) -> list[Json]:
    """Tokens that text is searched for before it is split."""
    types, kinds = header.token_types, (TokenType.CONTROL, TokenType.UNKNOWN)
    plain: Json = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    ends = _ends(header, texts)
    return [
        plain | {"id": token, "content": texts[token], "special": kind in kinds or token in ends}
        for token, kind in enumerate(types.tolist())
        if texts[token] and (kind in (*kinds, TokenType.USER_DEFINED) or token in ends)
    ]


def _ends(header: GgufHeader, texts: list[str]) -> frozenset[int]:
    by_text = {text: token for token, text in enumerate(texts)}
    named = [header.special_token(name) for name in ("eos", "eot", "eom")]
    return end_tokens(by_text, named)


def _settings(header: GgufHeader, texts: list[str]) -> Json:
    """tokenizer_config.json."""
    adds: Any = header.metadata.get("tokenizer.ggml.add_bos_token")
    settings: Json = {"add_bos_token": header.tokenizer == "llama" if adds is None else bool(adds)}
    for name, key in (("bos", "bos"), ("eos", "eos"), ("unknown", "unk"), ("padding", "pad")):
        token = header.special_token(name)
        if token is not None:
            settings[f"{key}_token"] = texts[token]
    return settings


def _generation(header: GgufHeader, texts: list[str]) -> Json:
    """generation_config.json."""
    names = {"repeat_penalty": "repetition_penalty"}
    advice = {names.get(name, name): value for name, value in header.sampler.items()}
    return {"eos_token_id": sorted(_ends(header, texts)), **advice}


def _text(token: bytes) -> str:
    return token.decode("utf-8", "replace")


def _refused(header: GgufHeader, why: str) -> ModelFileError:
    return ModelFileError(
        f"{shown(header.path.name)} cannot be converted for MLX: {why}; use --backend llamacpp, or"
        " a ready MLX repository of this model."
    )
