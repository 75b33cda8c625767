"""Reads the header of a model that lies on the hub, so that it can be judged before it is fetched.

Of every file only the beginning is asked for, and no more of it read than the header takes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from edgespec.models.gguf import read_beginning
from edgespec.models.header import GgufHeader
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.hub_errors import FAILURES, Broken, Patience
from edgespec.models.split import joined, read_model
from edgespec.models.transfer import open_file


def peek(
    hub: Hub, snapshot: Snapshot, files: Sequence[RemoteFile], note: Callable[[str], None]
) -> GgufHeader:
    """The header of the model in these GGUF files, the first part first; `note` hears of retries.

    Raises: ModelFileError; as fetch() where the hub refuses.
    """
    first = hub.cached(snapshot, files[0])
    if first is not None and all(hub.cached(snapshot, file) for file in files):
        return read_model(first)
    patience = Patience(hub.asked(snapshot), note)
    headers: list[GgufHeader] = []
    for file in files:
        while len(headers) < len(files):
            try:
                headers.append(_header(hub, snapshot, file))
                break
            except FAILURES as error:
                patience.wait(error)
    return joined(headers)


def _header(hub: Hub, snapshot: Snapshot, file: RemoteFile) -> GgufHeader:
    with open_file(hub, snapshot, file) as answer:
        if answer.status_code != 200:
            raise Broken(f"the host answered with status {answer.status_code}")
        body = _Arriving(answer.iter_raw(), file.size)
        return read_beginning(body, Path(file.name), file.size)


class _Arriving(io.BytesIO):
    """A body as far as it has arrived; reading on waits for more."""

    def __init__(self, pieces: Iterator[bytes], whole: int) -> None:
        super().__init__()
        self._pieces = pieces
        self._whole = whole

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        wanted = self._whole if size is None or size < 0 else min(self._whole, start + size)
        arrived = self.seek(0, io.SEEK_END)
        while arrived < wanted:
            piece = next(self._pieces, None)
            if piece is None:
                raise Broken("the transfer ended early")
            arrived += self.write(piece)
        self.seek(start)
        return super().read(size)
