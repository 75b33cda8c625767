"""Conversations that somebody kept: what was really asked here, with the answers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from edgespec.conversation import ROLES
from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models.shown import shown
from edgespec.text.template import Message

_MOST_BYTES = 64 * 2**20
_NO_JSON = object()
_FORM = 'give a list of {"role": ..., "content": ...}, or objects with such "messages"'


class Conversations(Protocol):
    """Where conversations come from: a file, or whatever keeps them."""

    def conversations(self) -> Iterable[Sequence[Message]]: ...


@dataclass(frozen=True, slots=True)
class Kept:
    """Conversations at hand. answers: how many they hold."""

    said: tuple[Sequence[Message], ...]
    answers: int

    @classmethod
    def of(cls, conversations: Iterable[Sequence[Message]], most: int) -> Kept:
        """The first of these that hold `most` answers together, or all."""
        said, answers = [], 0
        for messages in conversations:
            if answers >= most:
                break
            found = sum(m.role == "assistant" and bool(m.content) for m in messages)
            if found:
                said.append(messages)
                answers += found
        return cls(tuple(said), answers)

    def conversations(self) -> Iterable[Sequence[Message]]:
        return self.said


class ConversationFile:
    """A file of conversations as JSON: one list of messages, objects with `messages`, or a line
    for each such object. content: by where it stands, in words."""

    def __init__(self, path: Path, content: Mapping[str, Any]) -> None:
        self._path, self._content = path, content

    @classmethod
    def open(cls, path: Path) -> ConversationFile | None:
        """None where the file holds something else, such as prompts.

        Raises: NotFound, BadInput, EdgespecError.
        """
        try:
            content = _parsed(_text(path))
        except (ValueError, RecursionError) as error:
            fault = shown(error, 120)
            raise BadInput(f"{shown(path)} is begun as JSON, but is none: {fault}.") from error
        return None if content is None else cls(path, content)

    def conversations(self) -> list[list[Message]]:
        """Raises: BadInput for what is no conversation."""
        return [self._conversation(item, where) for where, item in self._content.items()]

    def _conversation(self, item: Any, where: str) -> list[Message]:
        if item is _NO_JSON:
            raise self._fault(where, "is no JSON")
        messages = item.get("messages") if isinstance(item, dict) else item
        if not isinstance(messages, list):
            raise self._fault(where, "is no conversation")
        for message in messages:
            if not isinstance(message, dict) or message.get("role") not in ROLES:
                raise self._fault(where, f"has a turn of none of the roles {', '.join(ROLES)}")
            if not isinstance(message.get("content"), str):
                raise self._fault(where, "has a turn whose content is no text")
            try:
                message["content"].encode()
            except UnicodeEncodeError:
                raise self._fault(where, "has a turn that is no valid Unicode") from None
        return [Message(message["role"], message["content"]) for message in messages]

    def _fault(self, where: str, fault: str) -> BadInput:
        return BadInput(f"{shown(self._path)}: {where} {fault}; {_FORM}.")


def _text(path: Path) -> str:
    name = shown(path)
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise NotFound(f"There is no file {name}; give prompts or conversations.") from None
    except IsADirectoryError:
        raise BadInput(f"{name} is a folder; give a file of prompts or conversations.") from None
    except OSError as error:
        raise EdgespecError(f"{name} cannot be read ({error.strerror}); check it.") from error
    if len(data) > _MOST_BYTES:
        raise BadInput(f"{name} is larger than {_MOST_BYTES // 2**20} MiB; give a part of it.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8; save it as UTF-8.") from error


def _parsed(text: str) -> dict[str, Any] | None:
    """The conversations in a text, not checked, by where they stand; None where it holds none.

    Raises: ValueError or RecursionError for what begins as one JSON value and is none.
    """
    whole = _json(text)
    if isinstance(whole, dict):
        whole = [whole] if "messages" in whole else None
    if isinstance(whole, list):
        if whole and all(isinstance(item, dict) and "role" in item for item in whole):
            whole = [{"messages": whole}]
        return {f"conversation {number}": item for number, item in enumerate(whole, 1)}
    # a JSON text may hold other ends of lines, such as U+2028
    lines = {
        f"line {number}": _json(line)
        for number, line in enumerate(text.split("\n"), 1)
        if line.strip()
    }
    objects = (item for item in lines.values() if isinstance(item, dict))
    if "messages" in next(objects, ()):
        return lines
    if text.lstrip().startswith("[") or text.split("\n", 1)[0].strip() == "{":
        json.loads(text)
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NO_JSON
