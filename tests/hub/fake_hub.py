"""A hub and its storage host on loopback: real HTTP, with faults on demand."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
PIECE = 1 << 16
_RESOLVE = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<name>.+)")
_API = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+?)(/revision/(?P<revision>.+))?")


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_id_of(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Fault:
    """How one answer with a file's content differs from a good one.

    status: sent in place of the file. headers: sent too, or in place of those of the answer.
    cut: bytes after which the connection breaks. ignore_range: the whole file whatever was asked.
    body: other bytes. etag: another tag. gentle: with `cut`, the connection ends as if the file
    ended there. ignore_if_range: a part of the file even if it has another tag now.
    """

    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    gentle: bool = False
    ignore_range: bool = False
    body: bytes | None = None
    etag: str = ""
    ignore_if_range: bool = False


@dataclass
class FakeRepo:
    """files: content by name. large: names kept as LFS; the others are in git."""

    files: dict[str, bytes]
    large: frozenset[str]
    commit: str = COMMIT
    gated: bool = False
    tags: tuple[str, ...] = ("license:apache-2.0",)
    reader: str = ""  # the token that may read a private repository
    claimed_sha256: dict[str, str] = field(default_factory=dict)

    def sha256(self, name: str) -> str:
        return self.claimed_sha256.get(name) or sha256_of(self.files[name])


@dataclass(frozen=True)
class Seen:
    """One request. host: `hub` or `storage`."""

    host: str
    method: str
    path: str
    headers: Mapping[str, str]


class FakeHub:
    """Two servers; `with FakeHub() as hub`. faults: of the next answers with LFS content."""

    def __init__(self) -> None:
        self.repos: dict[str, FakeRepo] = {}
        self.faults: deque[Fault] = deque()
        self.small_faults: deque[Fault] = deque()  # of files kept in git
        self.api_faults: deque[Fault] = deque()
        self.seen: list[Seen] = []
        self.bytes_sent = 0
        self.pause_s = 0.0  # between pieces, so that a transfer can be caught in the middle
        self.storage_on_hub = False
        self._lock = threading.Lock()
        self._hub = _server(self, "hub")
        self._storage = _server(self, "storage")

    def __enter__(self) -> FakeHub:
        for server in (self._hub, self._storage):
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._hub, self._storage):
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._hub.server_port}"

    @property
    def storage(self) -> str:
        return f"http://127.0.0.1:{self._storage.server_port}"

    def add(self, repo: str, files: dict[str, bytes], **known: Any) -> FakeRepo:
        large = known.pop("large", {name for name in files if name.endswith(".gguf")})
        self.repos[repo] = FakeRepo(files, frozenset(large), **known)
        return self.repos[repo]

    def content_requests(self, host: str = "storage") -> list[Seen]:
        return [seen for seen in self.seen if seen.host == host and seen.method == "GET"]

    def count(self, n: int) -> None:
        with self._lock:
            self.bytes_sent += n

    def next_fault(self, faults: deque[Fault]) -> Fault:
        with self._lock:
            return faults.popleft() if faults else Fault()


class _Server(ThreadingHTTPServer):
    fake: FakeHub
    name: str

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves in the middle is what some tests want."""


def _server(fake: FakeHub, name: str) -> _Server:
    server = _Server(("127.0.0.1", 0), _Handler)
    server.fake, server.name = fake, name
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on stderr."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        fake = self.server.fake
        headers = {key.lower(): value for key, value in self.headers.items()}
        fake.seen.append(Seen(self.server.name, self.command, self.path, headers))
        path = unquote(urlsplit(self.path).path)
        if self.server.name == "storage":
            query = parse_qs(urlsplit(self.path).query)
            self._content(fake.repos[query["repo"][0]], query["name"][0])
        elif match := _API.fullmatch(path):
            self._api(match["repo"], match["revision"])
        elif match := _RESOLVE.fullmatch(path):
            self._resolve(match)
        else:
            self._send(404, b"no such page")

    def _refused(self, repo: FakeRepo | None) -> bool:
        token = self.headers.get("authorization", "").removeprefix("Bearer ")
        if repo is None or (repo.reader and token != repo.reader):
            self._send(404 if token else 401, b"", {"X-Error-Code": "RepoNotFound"})
            return True
        return False

    def _api(self, name: str, revision: str | None) -> None:
        fault = self.server.fake.next_fault(self.server.fake.api_faults)
        repo = self.server.fake.repos.get(name)
        if fault.status:
            return self._send(fault.status, fault.body or b"", fault.headers)
        if self._refused(repo) or repo is None:
            return None
        if revision not in (None, "main", repo.commit):
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        files = [self._listed(repo, name) for name in repo.files]
        info = {"id": name, "sha": repo.commit, "siblings": files, "tags": list(repo.tags)}
        return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _listed(self, repo: FakeRepo, name: str) -> dict[str, Any]:
        content = repo.files[name]
        listed = {"rfilename": name, "size": len(content), "blobId": git_id_of(content)}
        if name in repo.large:
            lfs = {"size": len(content), "sha256": repo.sha256(name), "pointerSize": 130}
            return {**listed, "lfs": lfs}
        return listed

    def _resolve(self, match: re.Match[str]) -> None:
        fake, name = self.server.fake, match["name"]
        repo = fake.repos.get(match["repo"])
        if self._refused(repo) or repo is None:
            return
        if repo.gated:
            return self._send(403, b"", {"X-Error-Code": "GatedRepo"})
        if name not in repo.files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        if name in repo.large and not fake.storage_on_hub:
            linked = {
                "Location": f"{fake.storage}/?repo={match['repo']}&name={name}",
                "X-Repo-Commit": repo.commit,
                "X-Linked-Size": str(len(repo.files[name])),
                "X-Linked-ETag": f'"{repo.sha256(name)}"',
            }
            return self._send(302, b"", linked)
        return self._content(repo, name)

    def _content(self, repo: FakeRepo, name: str) -> None:
        fake, content, large = self.server.fake, repo.files[name], name in repo.large
        faults = fake.faults if large else fake.small_faults
        fault = fake.next_fault(faults) if self.command == "GET" else Fault()
        if fault.status:
            return self._send(fault.status, fault.body or b"", fault.headers)
        tag = f'"{fault.etag or (sha256_of(content) if large else git_id_of(content))}"'
        content = content if fault.body is None else fault.body
        headers = {"ETag": tag, "X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
        headers |= fault.headers
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("range", ""))
        condition = tag if fault.ignore_if_range else self.headers.get("if-range", tag)
        if asked is None or fault.ignore_range or condition != tag:
            return self._stream(200, content, headers, fault)
        start = int(asked[1])
        if start >= len(content):
            return self._send(416, b"", {"Content-Range": f"bytes */{len(content)}"})
        headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        return self._stream(206, content[start:], headers, fault)

    def _stream(self, status: int, body: bytes, headers: Mapping[str, str], fault: Fault) -> None:
        fake = self.server.fake
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PIECE)
        self._head(status, None if fault.gentle else len(body), headers)
        if self.command == "HEAD":
            return
        if fault.cut is not None:
            body, self.close_connection = body[: fault.cut], True
        if fault.gentle:
            self.close_connection = True
        for at in range(0, len(body), PIECE):
            piece = body[at : at + PIECE]
            self.wfile.write(piece)
            fake.count(len(piece))
            if fake.pause_s:
                time.sleep(fake.pause_s)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._head(status, len(body), headers or {})
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, status: int, length: int | None, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        if length is None:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
