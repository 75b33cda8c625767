"""Text from the command line and from standard input, bounded and checked."""

from __future__ import annotations

import sys

from edgespec.errors import BadInput
from edgespec.text.documents import MAX_BYTES, decoded


def read_stdin() -> str:
    """All of standard input, as text."""
    return decoded(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")


def checked_prompt(prompt: str) -> str:
    """The prompt, if there is something in it to answer."""
    if not prompt.strip():
        raise BadInput("The prompt is empty; give the model something to answer.")
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise BadInput("The prompt is not valid UTF-8; check the terminal's encoding.") from None
    return prompt
