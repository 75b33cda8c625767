"""What the tokens are called that end an answer."""

from __future__ import annotations

from typing import Final

from edgespec.text.tokenizer import Tokenizer

# as the families of models call them; a vocabulary tells the name of its "eos" token alone
_COMMON: Final = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "</s>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
    "<reponame>",
)


def end_names(tokenizer: Tokenizer) -> dict[int, str]:
    """Every token that ends an answer, with its name; "" where that cannot be found out."""
    names = dict.fromkeys(tokenizer.end_tokens, "")
    for text in (*_COMMON, tokenizer.special_text("eos")):
        match tokenizer.encode(text, special=True):
            case [token] if token in names:
                names[token] = text
    return names
