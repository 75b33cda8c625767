"""The marks that models put around what they think before they answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# what opens a thought, and what closes it
THOUGHT_MARKS: Final[Mapping[str, str]] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
}
MARKS: Final = (*THOUGHT_MARKS, *THOUGHT_MARKS.values())


def opens_thought(prompt: str) -> bool:
    """Whether the end of a prompt has opened a thought, so that the answer begins within it."""
    return prompt.rstrip().endswith(tuple(THOUGHT_MARKS))


def without_thought(reply: str) -> str:
    """A reply without the thought that it begins with; empty where that never ended."""
    text = reply.lstrip()
    for opening, closing in THOUGHT_MARKS.items():
        if text.startswith(opening):
            return text.partition(closing)[2].lstrip("\n")
    return reply
