"""Models that say what they think, and what they answer, in channels opened by control tokens.

gpt-oss: <|channel|>NAME<|message|>…<|end|><|start|>ROLE<|channel|>NAME<|message|>…
Gemma 4: <|channel>NAME, a line end, … <channel|>

Source: the models' chat templates.
"""

from __future__ import annotations

from typing import Final

from edgespec.text.tokenizer import Tokenizer

_OPENING, _CLOSING = "<think>", "</think>\n\n"
_HEADS: Final = ("<|start|>", "<|channel|>", "<|channel>")
_NAMES: Final = (*_HEADS, "<|message|>", "<channel|>")
_ANSWERS: Final = ("final", "commentary")  # what is said to the user
_LONGEST_HEAD: Final = 16  # tokens; a longer one is text


class Channels:
    """Follows one answer, and puts marks of a thought in place of what opens and ends one.

    known: whether the model has such tokens; without them everything stays as it is.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        ids = {name: tokenizer.encode(name, special=True) for name in _NAMES}
        self._names = {found[0]: name for name, found in ids.items() if len(found) == 1}
        self.known = any(name in self._names.values() for name in ("<|channel|>", "<|channel>"))
        self._head: list[bytes] | None = None  # of a message that has not begun
        self._opened_by = ""
        self._thinks = False
        self._owed = ""  # goes before the first text of a thought, so that an empty one is none

    def piece(self, token: int) -> tuple[str, bytes]:
        """The mark that goes before a token's text within this answer, and the bytes of that."""
        name = self._names.get(token) if self.known else None
        if name in _HEADS:
            self._head, self._opened_by = [], name
        elif name == "<|message|>" and self._head is not None:
            return self._begun(), b""
        elif name == "<channel|>":
            return self._answers(), b""
        elif name is None:
            piece = self._tokenizer.piece(token)
            return self._said(piece) if self._head is None else self._named(self._head, piece)
        return "", b""

    def _said(self, piece: bytes) -> tuple[str, bytes]:
        if not piece:
            return "", b""
        owed, self._owed = self._owed, ""
        return owed, piece

    def _named(self, head: list[bytes], piece: bytes) -> tuple[str, bytes]:
        head.append(piece)
        if self._opened_by == "<|channel>" and b"\n" in piece:
            closing = self._begun()
            opening, rest = self._said(piece.partition(b"\n")[2])
            return closing + opening, rest
        if len(head) <= _LONGEST_HEAD:
            return "", b""
        self._head = None
        return self._said(b"".join(head))

    def _begun(self) -> str:
        head, self._head = b"".join(self._head or ()).decode(errors="replace").strip(), None
        if self._opened_by == "<|start|>" or head.startswith(_ANSWERS):
            return self._answers()
        self._owed = self._owed or ("\n\n" if self._thinks else _OPENING)
        self._thinks = True
        return ""

    def _answers(self) -> str:
        closing = _CLOSING if self._thinks and self._owed != _OPENING else ""
        self._head, self._thinks, self._owed = None, False, ""
        return closing
