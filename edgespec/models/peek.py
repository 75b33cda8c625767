"""Reads the header of a model that lies on the hub, so that it can be judged before it is fetched.

Of every file only the beginning is asked for, and no more of it read than the header takes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx2

from edgespec.errors import ModelFileError
from edgespec.models.gguf import read_beginning
from edgespec.models.header import GgufHeader
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.hub_errors import FAILURES, Broken, Patience, Senseless
from edgespec.models.shown import shown
from edgespec.models.split import joined, read_model
from edgespec.models.transfer import PROGRESS, open_file

_RANGE = re.compile(r"bytes (\d{1,18})-.*")


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
    return joined([_header(hub, snapshot, file, patience) for file in files])


def _header(hub: Hub, snapshot: Snapshot, file: RemoteFile, patience: Patience) -> GgufHeader:
    begun = _Beginning(file.size)
    while True:
        before = begun.arrived
        try:
            return _read_on(hub, snapshot, file, begun)
        except FAILURES as error:
            if begun.arrived - before >= PROGRESS:
                patience.renew()
            patience.wait(error)


def _read_on(hub: Hub, snapshot: Snapshot, file: RemoteFile, begun: _Beginning) -> GgufHeader:
    """One attempt: what arrived in those before is not asked for again."""
    conditions = {"Range": f"bytes={begun.arrived}-"} if begun.arrived else {}
    with open_file(hub, snapshot, file, conditions) as answer:
        begun.go_on(answer)
        try:
            return read_beginning(begun, Path(file.name), file.size)
        except ModelFileError as error:
            if begun.broke is not None:  # then the header may well go on
                raise begun.broke from error
            raise _damaged_there(snapshot, error) from error


def _damaged_there(snapshot: Snapshot, error: ModelFileError) -> ModelFileError:
    # what to do about a file that lies here is left out: behind ';', or behind ':' for no GGUF file
    told = str(error)
    what = told.rpartition(";")[0] or told.rpartition(": ")[0] or told
    return ModelFileError(
        f"{what}; it is damaged on the hub, so choose another file of {shown(snapshot.repo)} or"
        " another repository."
    )


class _Beginning(io.BytesIO):
    """The beginning of a file as far as it has arrived; reading on waits for more.

    A body that breaks off gives less than was asked for, since the header may be within; `broke` is
    what happened then.
    """

    def __init__(self, whole: int) -> None:
        super().__init__()
        self.arrived = 0
        self.broke: Exception | None = None
        self._pieces: Iterator[bytes] = iter(())
        self._whole = whole

    def go_on(self, answer: httpx2.Response) -> None:
        """Take the next bytes from this answer. Raises: Broken, Senseless."""
        sent = _RANGE.fullmatch(answer.headers.get("content-range", ""))
        follows = answer.status_code == 206 and sent is not None and int(sent[1]) == self.arrived
        self.seek(0)
        if not follows:
            self.truncate()
            self.arrived = 0
        if not follows and answer.status_code != 200:
            raise Senseless(f"the host answered with status {answer.status_code}")
        self.broke = None
        self._pieces = answer.iter_raw()

    def read(self, size: int | None = -1, /) -> bytes:
        start = self.tell()
        wanted = self._whole if size is None or size < 0 else min(self._whole, start + size)
        self.seek(self.arrived)
        while self.arrived < wanted and self.broke is None:
            try:
                piece = next(self._pieces, None)
            except FAILURES as error:
                self.broke = error
                break
            if piece is None:
                self.broke = Broken("the transfer ended early")
                break
            self.arrived += self.write(piece)
        self.seek(start)
        return super().read(size)
