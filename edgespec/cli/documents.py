"""Text that comes from files and from standard input, bounded and checked."""

from __future__ import annotations

import sys
from pathlib import Path

from edgespec.errors import BadInput, NotFound

MAX_BYTES = 4 * 1024 * 1024


def read_document(name: str) -> str:
    """The text of a file.

    Raises: NotFound; BadInput when it is too large, not UTF-8 text, or cannot be read.
    """
    try:
        with Path(name).open("rb") as file:
            # one byte more than allowed tells, also where a pipe or a device has no size
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"{name} is not there; check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a folder; name a text file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{name} cannot be read: {reason}.") from error
    return _text(data, name)


def read_stdin() -> str:
    """All of standard input, as text."""
    return _text(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")


def with_documents(prompt: str, files: tuple[str, ...]) -> str:
    """The prompt with the documents before it, each in a frame of its own."""
    if not files:
        return prompt
    framed = [
        f'<document name="{Path(name).name}">\n{read_document(name).rstrip()}\n</document>'
        for name in files
    ]
    return "\n\n".join([*framed, prompt])


def checked_prompt(prompt: str) -> str:
    """The prompt, if there is something in it to answer."""
    if not prompt.strip():
        raise BadInput("The prompt is empty; give the model something to answer.")
    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise BadInput("The prompt is not valid UTF-8; check the terminal's encoding.") from None
    return prompt


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise BadInput(
            f"{name} holds more than {MAX_BYTES // 1024**2} MiB; no context takes that much, give a"
            " part of it."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{name} is not UTF-8 text (byte {error.start}); convert it first."
        ) from error
    if "\0" in text:
        raise BadInput(f"{name} is not text: it holds a zero byte; name a text file.")
    return text
