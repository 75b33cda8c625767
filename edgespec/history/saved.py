"""What the history holds: messages, what was attached to them, and summaries of conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from edgespec.text.sanitize import clean

VOCABULARY: Final = "vocabulary"  # among the figures of an answer: the digest of its model's


class State(StrEnum):
    """How far an answer got. A message of the user is always whole."""

    WHOLE = "whole"
    WRITING = "writing"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A text file that went along with a message. tokens: None where nobody counted."""

    name: str
    text: str
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """One message of a conversation's tree.

    parent: the message before it; None for a first one. ids: the tokens of an answer. stats: its
    figures, JSON-like. model, seed, branch: what made it. created_s: seconds since the epoch.
    """

    id: int
    parent: int | None
    role: str
    content: str
    attachments: tuple[Attachment, ...]
    state: State
    ids: tuple[int, ...]
    stats: Mapping[str, Any]
    model: str
    seed: int | None
    branch: int
    created_s: float

    def is_by(self, model: str, vocabulary: str) -> bool:
        """Whether this model gave the answer, so that its token ids mean the same to it.

        vocabulary: digest of the model's. What was written before it was kept goes by the name
        alone.
        """
        same_name = clean(self.model, one_line=True) == clean(model, one_line=True)
        return same_name and self.stats.get(VOCABULARY, vocabulary) == vocabulary


@dataclass(frozen=True, slots=True)
class Summary:
    """A conversation in a list.

    when: of its last change, seconds since the epoch. messages: of all branches. snippet: of the
    last message, or of the one that was found. All text is raw: clean it before it is shown.
    """

    id: int
    title: str
    when: float
    messages: int
    snippet: str
