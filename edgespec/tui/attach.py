"""The text files that go along with the next message: read, counted, refused or framed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.errors import BadInput
from edgespec.text.documents import Document, read_document, with_documents
from edgespec.text.sanitize import clean


@dataclass(frozen=True, slots=True)
class Attached:
    """One document. tokens: None = not counted yet."""

    name: str
    text: str
    tokens: int | None = None

    @property
    def most_tokens(self) -> int:
        """What it cannot exceed: its tokens, or one for each byte until they are counted."""
        return len(self.text.encode()) if self.tokens is None else self.tokens

    @property
    def without_count(self) -> Attached:
        """As before it was counted; another model counts otherwise."""
        return replace(self, tokens=None)


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens the context holds, and how many of them are taken."""

    context: int
    used: int = 0

    @property
    def free(self) -> int:
        return max(0, self.context - self.used)


def read_attachment(path: str) -> Attached:
    """A text file, as it can be attached; `~` is the user's own folder.

    Raises: NotFound, BadInput as read_document(); BadInput for what is no file, since a pipe
    could keep the chat waiting.
    """
    try:
        place = Path(path).expanduser()
        special = place.exists() and not place.is_file() and not place.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        reason = str(getattr(error, "strerror", None) or error).rstrip(".")
        raise BadInput(f"{clean(path, one_line=True)} cannot be read: {reason}.") from error
    if special:
        raise BadInput(f"{clean(path, one_line=True)} is no file; name a text file.")
    document = read_document(str(place))
    return Attached(document.name, document.text)


def framed(message: str, attached: Sequence[Attached]) -> str:
    """What the model reads: the documents, each in a frame, then the message."""
    return with_documents(message, [Document(one.name, one.text) for one in attached])


def refusal(attached: Sequence[Attached], room: Room) -> str:
    """Why these do not fit, in one line with numbers; "" where they do."""
    if sum(one.most_tokens for one in attached) < room.free:
        return ""
    if any(one.tokens is None for one in attached):
        return "the attachments are still being counted"
    tokens = sum(one.most_tokens for one in attached)
    if tokens >= room.context:
        way_out = "/file - takes the last one back"
    else:
        way_out = "/new begins anew, /file - takes the last one back"
    return (
        f"the attachments take {tokens:,} tokens, {room.free:,} of {room.context:,} are free;"
        f" {way_out}"
    )


class Attachments:
    """What is attached to the next message, in order; each has a tag to count it by."""

    def __init__(self) -> None:
        self._by_tag: dict[str, Attached] = {}
        self._made = 0

    @property
    def all(self) -> tuple[Attached, ...]:
        return tuple(self._by_tag.values())

    def add(self, attached: Attached) -> str:
        """The tag under which its tokens are to be told."""
        self._made += 1
        tag = f"attachment {self._made}"
        self._by_tag[tag] = attached
        return tag

    def counted(self, tag: str, tokens: int) -> bool:
        """Note a count; False where nothing by that tag is attached any more."""
        if tag not in self._by_tag:
            return False
        self._by_tag[tag] = replace(self._by_tag[tag], tokens=tokens)
        return True

    def uncounted(self) -> tuple[tuple[str, str], ...]:
        """Tag and text of what is to be counted, as after another model was loaded."""
        return tuple(
            (tag, framed("", [one])) for tag, one in self._by_tag.items() if one.tokens is None
        )

    def forget_counts(self) -> None:
        """Another model counts otherwise."""
        self._by_tag = {tag: one.without_count for tag, one in self._by_tag.items()}

    def remove_last(self) -> Attached | None:
        return self._by_tag.popitem()[1] if self._by_tag else None

    def remove(self, index: int) -> Attached | None:
        """Takes the one at this place, from 0, back."""
        tags = list(self._by_tag)
        return self._by_tag.pop(tags[index]) if 0 <= index < len(tags) else None

    def take(self) -> tuple[Attached, ...]:
        """All of them, which are then no longer attached."""
        taken = self.all
        self._by_tag.clear()
        return taken
