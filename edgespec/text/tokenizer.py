"""What a backend's tokenizer offers to the text layer."""

from __future__ import annotations

from typing import Protocol


class Tokenizer(Protocol):
    """Text to token ids and back, for one model.

    vocab: number of token ids. end_tokens: ids that end an answer.
    """

    @property
    def vocab(self) -> int: ...

    @property
    def end_tokens(self) -> frozenset[int]: ...

    @property
    def bos(self) -> int | None:
        """The token that every text must start with, where the model wants one."""
        ...

    def encode(self, text: str, *, special: bool) -> list[int]:
        """The ids of `text` alone: no begin or end token is added.

        special: whether the text of a control token, such as <|im_end|>, becomes that token.
        Whatever a user wrote is encoded without, so that nobody can forge a turn.
        """
        ...

    def piece(self, token: int) -> bytes:
        """The raw bytes of a token's text, maybe half a character; b"" for control tokens.

        Marks of thoughts have their text even where the model's makers made them control tokens.
        """
        ...

    def template(self) -> str | None:
        """The chat template from the model file; None where it has none."""
        ...

    def special_text(self, name: str) -> str:
        """Text of the "bos" or "eos" token; "" where the model has none."""
        ...
