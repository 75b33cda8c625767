"""The messages of one conversation as a tree, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from edgespec.history.saved import Saved


class Tree:
    """Messages below one another, and the head: the message its user is at.

    Every message was added after its parent, so the order of adding is one of age.
    """

    def __init__(self, messages: Iterable[Saved] = (), head: int | None = None) -> None:
        """messages: oldest first; one without the parent it names belongs nowhere."""
        self._messages: dict[int, Saved] = {}
        self._below: dict[int | None, list[int]] = {None: []}
        self._path: tuple[Saved, ...] | None = None
        self._head: int | None = None
        for message in messages:
            if message.parent in self._below:
                self.add(message)
        if head in self._messages:
            self.head = head

    @property
    def head(self) -> int | None:
        """None where there is no message yet."""
        return self._head

    @head.setter
    def head(self, id: int | None) -> None:
        self._head, self._path = id, None

    def __getitem__(self, id: int) -> Saved:
        return self._messages[id]

    def __contains__(self, id: int) -> bool:
        return id in self._messages

    def __iter__(self) -> Iterator[Saved]:
        """All messages, oldest first."""
        return iter(self._messages.values())

    def add(self, message: Saved) -> None:
        """A new message, which becomes the head."""
        self._messages[message.id] = message
        self._below[message.id] = []
        self._below[message.parent].append(message.id)
        self.head = message.id

    def replace(self, message: Saved) -> None:
        """What has become of a message; its place stays."""
        self._messages[message.id] = message
        self._path = None

    @property
    def path(self) -> tuple[Saved, ...]:
        """From the first message to the head."""
        if self._path is None:
            upwards, id = [], self.head
            while id is not None:
                upwards.append(self._messages[id])
                id = self._messages[id].parent
            self._path = tuple(reversed(upwards))
        return self._path

    def siblings(self, id: int) -> tuple[int, ...]:
        """All that stand below the same message, itself included, oldest first."""
        return tuple(self._below[self._messages[id].parent])

    def newest_below(self, id: int) -> int:
        """The newest of a message and all below it, which nothing stands below."""
        waiting, newest, ages = [id], id, {id: n for n, id in enumerate(self._messages)}
        while waiting:
            at = waiting.pop()
            newest = max(newest, at, key=ages.__getitem__)
            waiting.extend(self._below[at])
        return newest
