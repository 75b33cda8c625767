"""Tokens to text, as they come: a character appears once its last byte is there."""

from __future__ import annotations

import codecs

from edgespec.text.channels import Channels
from edgespec.text.tokenizer import Tokenizer

_DECODER = codecs.getincrementaldecoder("utf-8")


class Detokenizer:
    """Turns one answer's tokens into text.

    Between calls it holds the bytes of at most one unfinished character. What a model thinks in a
    channel of its own stands between marks of a thought.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._channels = Channels(tokenizer)
        self._decoder = _DECODER(errors="replace")

    def feed(self, token: int) -> str:
        """The text that is complete with `token`, with the mark of a thought before it if there is
        one.

        Bytes that no later token can complete become U+FFFD.
        """
        return "".join(self.told(token))

    def told(self, token: int) -> tuple[str, str]:
        """The same with that mark apart, which the model did not say."""
        mark, piece = self._channels.piece(token)
        return mark, self._decoder.decode(piece)

    def flush(self) -> str:
        """U+FFFD where the answer ended inside a character, else nothing."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
