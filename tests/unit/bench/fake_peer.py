"""A server on the loopback that answers as it is told to, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import cast

from edgespec.bench.peer import Peer, PeerAnswer
from edgespec.text.template import Message

HI = [Message("system", "Be brief."), Message("user", "Hi")]
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Canned:
    """One answer. whole: False cuts the connection before the promised end; again: the body comes
    over and over."""

    body: bytes = b""
    status: int = 200
    kind: str = "application/json"
    whole: bool = True
    silent: bool = False
    again: bool = False


def as_json(value: object, status: int = 200) -> Canned:
    return Canned(json.dumps(value).encode(), status)


def as_events(*chunks: object, done: bool = True, whole: bool = True) -> Canned:
    lines = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    lines += ["[DONE]"] * done
    return Canned("".join(f"data: {line}\n\n" for line in lines).encode(), kind=EVENTS, whole=whole)


def as_lines(*chunks: object, whole: bool = True) -> Canned:
    body = "".join(json.dumps(chunk) + "\n" for chunk in chunks).encode()
    return Canned(body, kind="application/x-ndjson", whole=whole)


def delta(text: str, key: str = "content", **more: object) -> dict[str, object]:
    return {"choices": [{"delta": {key: text}, "finish_reason": None}], **more}


def ending(**more: object) -> dict[str, object]:
    return {"choices": [{"delta": {}, "finish_reason": "stop"}], **more}


PROPS = as_json({"default_generation_settings": {}})
ANSWER = as_events(delta("Hel"), delta("lo"), ending())


@dataclass(slots=True)
class FakePeer:
    """routes: what there is; anything else is 404. asked: paths in order; bodies: of POSTs."""

    routes: dict[str, Canned]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)
    over: Event = field(default_factory=Event)


Serve = Callable[[dict[str, Canned]], FakePeer]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fake: FakePeer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        fake = cast(_Server, self.server).fake
        fake.asked.append(self.path)
        canned = fake.routes.get(self.path, Canned(b"Not Found", 404, "text/plain"))
        if canned.silent:
            fake.over.wait(30)
            return
        self.send_response(canned.status)
        self.send_header("Content-Type", canned.kind)
        if not canned.again:
            self.send_header("Content-Length", str(len(canned.body) + (not canned.whole)))
        self.end_headers()
        self.close_connection = True
        with suppress(OSError):  # whoever asked may have had enough
            self.wfile.write(canned.body)
            while canned.again and not fake.over.wait(0.02):
                self.wfile.write(canned.body)

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        cast(_Server, self.server).fake.bodies.append(json.loads(self.rfile.read(length)))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@contextmanager
def serving(routes: dict[str, Canned]) -> Iterator[FakePeer]:
    fake = FakePeer(routes)
    server = _Server(fake)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def llama_server(answer: Canned = ANSWER) -> dict[str, Canned]:
    return {"/props": PROPS, "/v1/chat/completions": answer}


def ollama(answer: Canned, loaded: Sequence[str] = ("llama3",)) -> dict[str, Canned]:
    return {
        "/api/version": as_json({"version": "0.12"}),
        "/api/ps": as_json({"models": [{"name": name} for name in loaded]}),
        "/api/tags": as_json({"models": [{"name": "llama3"}, {"name": "qwen3"}]}),
        "/api/chat": answer,
    }


def other(*models: str, answer: Canned = ANSWER, owner: str = "me") -> dict[str, Canned]:
    """A server of OpenAI's kind."""
    listed = [{"id": name, "owned_by": owner} for name in models]
    return {"/v1/models": as_json({"data": listed}), "/v1/chat/completions": answer}


def asked(fake: FakePeer) -> PeerAnswer:
    return Peer(fake.url).answer(HI, 16)
