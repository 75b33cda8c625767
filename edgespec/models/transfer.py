"""Brings one file here in as many attempts as it takes, each going on where the last ended.

Two hosts take part: the hub, which sends on to a storage host. The client that follows drops the
token there, and a file's address on it may expire, so every attempt asks the hub first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import httpx2
from huggingface_hub import hf_hub_url

from edgespec.errors import EdgespecError
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.hub_errors import FAILURES, Broken, Patience, Senseless
from edgespec.models.partial import Part
from edgespec.models.request import check_status, opened
from edgespec.models.shown import shown

PROGRESS = 1 << 18  # bytes that make an attempt worth it, so that patience starts anew
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Report(Protocol):
    """Hears how a fetch goes."""

    def resumes(self, file: RemoteFile, done: int) -> None:
        """So many bytes that an earlier run brought have been read again."""

    def progress(self, file: RemoteFile, done: int) -> None:
        """So many bytes of the file are here."""

    def note(self, text: str) -> None:
        """Something worth a line: a wait, a retry, a start from the beginning."""


def download(hub: Hub, snapshot: Snapshot, part: Part, report: Report) -> None:
    """Complete the part. Raises: what stopped it for good; the part keeps what arrived."""
    patience = Patience(hub.asked(snapshot), report.note)
    while not part.complete:
        before = part.size
        try:
            _attempt(hub, snapshot, part, report)
        except FAILURES as error:
            if part.size - before >= PROGRESS:
                patience.renew()
            patience.wait(error)


@contextmanager
def open_file(
    hub: Hub, snapshot: Snapshot, file: RemoteFile, conditions: Mapping[str, str] | None = None
) -> Iterator[httpx2.Response]:
    """The answer to a request for a file, its body unread. conditions: headers for a part of it.

    Raises: one of FAILURES, also for an answer that refuses; 416 is left to the caller.
    """
    url = hf_hub_url(snapshot.repo, file.name, revision=snapshot.commit, endpoint=hub.endpoint)
    with opened(url, hub.token, conditions or {}) as answer:
        _check_content(answer, file)
        elsewhere = not str(answer.url).startswith(f"{hub.endpoint}/")
        if elsewhere and answer.status_code in (401, 403, 404):
            # an address on the storage host has expired; the hub gives a new one
            raise Broken(f"the storage host answered with status {answer.status_code}")
        if answer.status_code != 416:
            check_status(answer)
        yield answer


def _attempt(hub: Hub, snapshot: Snapshot, part: Part, report: Report) -> None:
    conditions = {"Range": f"bytes={part.size}-"} if part.size else {}
    if part.size and part.etag:
        conditions["If-Range"] = part.etag
    with open_file(hub, snapshot, part.file, conditions) as answer:
        _begin(answer, part, report)
        for piece in answer.iter_raw():
            if part.size + len(piece) > part.file.size:
                part.start_over("")
                raise Senseless("more bytes came than the file has")
            part.add(piece)
            report.progress(part.file, part.size)
    if not part.complete:
        raise Broken("the transfer ended early")


def _check_content(answer: httpx2.Response, file: RemoteFile) -> None:
    """The hub names what it sends on to; at a pinned commit that cannot change."""
    for response in (*answer.history, answer):
        named = response.headers.get("x-linked-etag", "").removeprefix("W/").strip('"')
        if named and named != file.blob:
            raise EdgespecError(
                f"The hub now serves other content for {shown(file.name)} than it listed;"
                " run this again."
            )


def _begin(answer: httpx2.Response, part: Part, report: Report) -> None:
    """Make the part ready for the body: go on, or start over."""
    etag = _strong(answer.headers.get("etag", ""))
    match answer.status_code:
        case 206 if part.size:
            _check_range(answer, etag, part)
        case 200:
            length = answer.headers.get("content-length")
            if length is not None and length != str(part.file.size):
                raise Senseless(f"{shown(length, 20)} bytes came, not {part.file.size}")
            if part.size:
                report.note("the host sends the file from its beginning")
            part.start_over(etag)
        case 416:
            part.start_over("")
            raise Broken("the host has no such range of the file")
        case status:
            raise Senseless(f"the host answered with status {status}")


def _check_range(answer: httpx2.Response, etag: str, part: Part) -> None:
    sent = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    fits = sent and int(sent[1]) == part.size and sent[2] in ("*", str(part.file.size))
    if not fits or (etag and part.etag and etag != part.etag):
        part.start_over("")
        raise Broken("the host sent another part of the file, or of another one")


def _strong(etag: str) -> str:
    """Only a strong tag says that bytes are the same, so only that may be sent back."""
    return "" if etag.startswith("W/") or not etag.isascii() else etag[:200]
