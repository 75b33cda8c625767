"""Texts of tokens that end an answer, whatever a model's config says.

Source: llama.cpp, llama-vocab.cpp, which treats the same tokens so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_ENDS: Final = frozenset(
    (
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|flush|>",
        "<|calls|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "</s>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "[EOT]",
        "[EOS]",
        "<|end_of_text|>",
        "<end_of_utterance>",
        "<eos>",
        "<turn|>",
        "<|tool_response>",
        "<｜end▁of▁sentence｜>",  # noqa: RUF001
        "[e~[",
    )
)
# of each kind the first that a vocabulary has: padding, repository and file marks of code models
_MARKS: Final = (
    ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"),
    ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ("<|file_sep|>",),
)
_NO_END_BESIDE: Final = (
    ("<|end|>", ("<|return|>", "<|call|>")),
    ("<|end|>", ("<|calls|>", "<|flush|>")),
    ("</s>", ("<|tool_response>",)),
)


def end_tokens(ids: Mapping[str, int], named: Iterable[int | None]) -> frozenset[int]:
    """Ids that end an answer: those that are `named`, and those that every model means so.

    ids: of the vocabulary's control tokens, by text.
    """
    ends = {ids[text] for text in _ENDS & ids.keys()}
    for marks in _MARKS:
        ends |= {ids[text] for text in [t for t in marks if t in ids][:1]}
    for text, others in _NO_END_BESIDE:
        if text in ids and all(other in ids for other in others):
            ends.discard(ids[text])
    return frozenset(ends | {token for token in named if token is not None})
