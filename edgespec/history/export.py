"""A conversation as a document, as data, and as a file of either."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from edgespec.errors import BadInput
from edgespec.history.conversation import Conversation
from edgespec.history.saved import Attachment, Saved, State
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically
from edgespec.text.sanitize import clean

ENDINGS: Final = (".md", ".json")
_FIGURES: Final = (
    ("completion_tokens", "{:.0f} tokens"),
    ("tokens_per_second", "{:.1f} tokens/s"),
    ("speedup", "{:.2f} times plain"),
    ("tokens_per_round", "{:.1f} tokens per round"),
)
_LATEST: Final = 253_402_300_800  # the year 10000, which no date can tell


def as_markdown(conversation: Conversation) -> str:
    """What its user sees of it now: the path to the head, with a line of figures an answer."""
    return clean("\n\n".join(_paragraphs(conversation))).rstrip("\n") + "\n"


def as_data(conversation: Conversation) -> dict[str, Any]:
    """All of it, as JSON-like values. messages: the path to the head, behind the system prompt;
    branches: what lies beside it. `edgespec tune --file` reads it."""
    path = conversation.path
    shown = {message.id for message in path}
    system = conversation.system
    told = [{"role": "system", "content": system}] if system else []
    return {
        "id": conversation.id,
        "title": conversation.title,
        "created": moment(path[0].created_s) if path else None,
        "messages": [*told, *map(_message, path)],
        "branches": [_message(m) for m in conversation.messages if m.id not in shown],
    }


def write(conversation: Conversation, file: Path, *, replaces: bool = False) -> None:
    """Put it into a file that only its user reads: .md as a document, .json as data.

    The file is there whole or not at all. Raises: BadInput for another ending, or where there is
    no such folder; FileExistsError for a name that is taken, unless `replaces`; EdgespecError
    where the disk refuses.
    """
    if file.suffix.casefold() not in ENDINGS:
        raise BadInput(f"{shown(file)} must end in {' or '.join(ENDINGS)}.")
    if not file.parent.is_dir():
        raise BadInput(f"{shown(file.parent)} is no folder; make it, or name another.")
    if file.suffix.casefold() == ".md":
        text = as_markdown(conversation)
    else:
        text = json.dumps(as_data(conversation), indent=2) + "\n"
    content = text.encode("utf-8", "replace")
    if replaces:
        write_atomically(file, content)
    else:
        _write_new(file, content)


def _write_new(file: Path, content: bytes) -> None:
    try:
        # the name is taken first, so that nobody else's file is replaced
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:  # the latter for a name with a NUL
        reason = getattr(error, "strerror", None) or error
        raise BadInput(
            f"{shown(file)} cannot be written ({shown(reason)}); name another."
        ) from error
    try:
        write_atomically(file, content)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def moment(seconds: float) -> str | None:
    """ISO 8601, in UTC; None for what no calendar has."""
    if not 0 <= seconds < _LATEST:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _paragraphs(conversation: Conversation) -> Iterator[str]:
    yield f"# {clean(conversation.title, one_line=True) or 'Conversation'}"
    if conversation.system:
        yield "## System"
        yield conversation.system
    for message in conversation.path:
        if message.role == "user":
            yield "## You"
            yield from map(_attachment, message.attachments)
            yield message.content
        else:
            model = clean(message.model, one_line=True)
            yield f"## Model ({model})" if model else "## Model"
            yield message.content
            yield from _about(message)


def _attachment(attached: Attachment) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", attached.text)), default=0))
    size = "" if attached.tokens is None else f" ({attached.tokens} tokens)"
    name = clean(attached.name, one_line=True)
    return f"Attached: {name}{size}\n\n{fence}\n{attached.text.rstrip()}\n{fence}"


def _about(message: Saved) -> Iterator[str]:
    """How an answer went, where that is known."""
    parts = ["" if message.state is State.WHOLE else "cut off"]
    for name, form in _FIGURES:
        value = message.stats.get(name)
        if isinstance(value, int | float):
            parts.append(form.format(value))
    if message.seed is not None:
        parts.append(f"seed {message.seed}")
    if line := ", ".join(filter(None, parts)):
        yield f"*{line}*"


def _message(message: Saved) -> dict[str, Any]:
    """A message; what only an answer has, only with an answer."""
    told: dict[str, Any] = {
        "role": message.role,
        "content": message.content,
        "id": message.id,
        "parent": message.parent,
        "created": moment(message.created_s),
    }
    if message.role == "user":
        told["attachments"] = [
            {"name": a.name, "tokens": a.tokens, "text": a.text} for a in message.attachments
        ]
        return told
    return told | {
        "state": message.state.value,
        "model": message.model,
        "seed": message.seed,
        "branch": message.branch,
        "token_ids": list(message.ids),
        "stats": dict(message.stats),
    }
