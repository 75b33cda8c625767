"""Text files that go along with a prompt, bounded and checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import BadInput, NotFound
from edgespec.text.sanitize import clean

MAX_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """name: without its folder, fit to be shown and to stand in a frame."""

    name: str
    text: str


def read_document(path: str) -> Document:
    """The text of a file.

    Raises: NotFound; BadInput when it is too large, not UTF-8 text, or cannot be read.
    """
    shown = clean(path, one_line=True)
    try:
        with Path(path).open("rb") as file:
            # one byte more than allowed tells, also where a pipe or a device has no size
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"{shown} is not there; check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"{shown} is a folder; name a text file.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{shown} cannot be read: {reason}.") from error
    return Document(_own_name(path), decoded(data, shown))


def decoded(data: bytes, name: str) -> str:
    """The bytes as text. Raises: BadInput that begins with `name`."""
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


def with_documents(prompt: str, documents: Iterable[Document]) -> str:
    """The prompt with the documents before it, each in a frame of its own."""
    framed = [
        f'<document name="{document.name}">\n{document.text.rstrip()}\n</document>'
        for document in documents
    ]
    return "\n\n".join([*framed, prompt])


def _own_name(path: str) -> str:
    # a quotation mark in the name would end the frame's attribute
    return clean(Path(path).name, one_line=True).replace('"', "'") or "document"
