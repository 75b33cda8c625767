"""Another program that fails, or that does not come to an end, is one clear line."""

from __future__ import annotations

import socket

import pytest
from fake_peer import (
    EVENTS,
    HI,
    PROPS,
    Canned,
    FakePeer,
    Serve,
    as_events,
    as_json,
    as_lines,
    asked,
    delta,
    ending,
    llama_server,
    ollama,
)

from edgespec.bench.peer import Peer
from edgespec.errors import BadInput, EdgespecError, NetworkError, NoAccess


def fault(fake: FakePeer, kind: type[EdgespecError]) -> str:
    with pytest.raises(EdgespecError) as caught:
        asked(fake)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(fake.url.removeprefix("http://"))
    return message


# --- faults ------------------------------------------------------------------------------------


def test_nobody_at_the_address_is_a_network_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NetworkError, match=r"cannot be reached .*; start the program there or"):
        Peer(f"http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    "url", ["", "ftp://localhost", "http://", "http:///v1", "http://localhost:x", "http://a\nb"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="is no address") as caught:
        Peer(url)
    assert str(caught.value).isprintable()


def test_a_key_that_is_missing_from_the_start_is_no_access(serve: Serve) -> None:
    locked = as_json({"error": {"message": "Invalid API Key"}}, 401)
    message = fault(serve({"/props": locked}), NoAccess)
    assert "asks for a key (status 401: Invalid API Key); start it without one" in message


def test_a_server_that_still_loads_says_so(serve: Serve) -> None:
    loading = as_json({"error": {"message": "Loading model"}}, 503)
    message = fault(serve({"/props": loading}), EdgespecError)
    assert "failed (status 503: Loading model); wait until it is ready" in message


@pytest.mark.parametrize(
    "routes",
    [
        {},
        {"/v1/models": Canned(b"<html>", kind="text/html")},
        {"/props": Canned(b"\xff\xfe"), "/v1/models": as_json(["a"])},
        {"/props": Canned(b"[" * 100_000), "/v1/models": as_json({"data": "a"})},
        {"/props": Canned(status=302), "/v1/models": Canned(status=405)},
    ],
)
def test_a_program_of_another_kind_is_refused(serve: Serve, routes: dict[str, Canned]) -> None:
    assert "is no program that edgespec knows; give the" in fault(serve(routes), EdgespecError)


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (as_json({"error": "no"}, 403), NoAccess, "asks for a key (status 403: no)"),
        (as_json({"error": "model not found"}, 404), EdgespecError, "(status 404: model not f"),
        (as_json({"error": {"message": "too long"}}, 400), EdgespecError, "(status 400: too l"),
        (Canned(b"<html>", 500, "text/html"), EdgespecError, "failed (status 500); wait"),
        (Canned(b"", 204, EVENTS), NetworkError, "broke off before its answer ended"),
        (as_json({"choices": []}), EdgespecError, "sent no stream of text"),
        (Canned(b"data: {oops\n\n", kind=EVENTS), EdgespecError, "a line that is not JSON ({oops"),
        (as_events("x" * 2_000_000), EdgespecError, "sent no stream of text"),
        (as_events({"error": {"message": "GPU\x1b[2J"}}), EdgespecError, "reports a fault (GPU\\x"),
        (as_events(delta("Hi"), done=False), NetworkError, "broke off before its answer ended"),
        (as_events(delta("Hi"), done=False, whole=False), NetworkError, "broke off ("),
        (as_events(ending()), EdgespecError, "answered with no text"),
        (as_events({"choices": {}}, {"choices": [7]}, 7), EdgespecError, "answered with no text"),
    ],
)
def test_an_answer_that_fails_is_one_clear_line(
    serve: Serve, answer: Canned, kind: type[EdgespecError], complaint: str
) -> None:
    assert complaint in fault(serve(llama_server(answer)), kind)


@pytest.mark.parametrize(
    ("answer", "kind", "complaint"),
    [
        (as_json({"error": "model 'llama3' not found"}, 404), EdgespecError, "'llama3' not found"),
        (as_lines({"error": "out of memory"}), EdgespecError, "reports a fault (out of memory)"),
        (as_lines({"message": {"content": "Hi"}}), NetworkError, "broke off before its answer"),
        (as_lines({"message": {"content": "Hi"}}, whole=False), NetworkError, "broke off ("),
        (as_lines({"done": True, "eval_count": 1}), EdgespecError, "answered with no text"),
    ],
)
def test_an_answer_of_ollama_that_fails_is_one_clear_line(
    serve: Serve, answer: Canned, kind: type[EdgespecError], complaint: str
) -> None:
    assert complaint in fault(serve(ollama(answer)), kind)


def test_a_program_that_is_silent_for_too_long_is_given_up(serve: Serve) -> None:
    fake = serve({"/props": PROPS, "/v1/chat/completions": Canned(silent=True)})
    with pytest.raises(NetworkError, match=r"was silent for 0\.2 s; look at its log"):
        Peer(fake.url, timeout_s=0.2).answer(HI, 16)


def test_a_program_that_does_not_say_what_it_is_is_given_up_sooner(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.bench.peer._RECOGNISE_S", 0.2)
    with pytest.raises(NetworkError, match=r"was silent for 0\.2 s; look at its log"):
        Peer(serve({"/props": Canned(silent=True)}).url)


def test_a_password_in_an_address_is_not_shown(serve: Serve) -> None:
    fake = serve({})
    with pytest.raises(EdgespecError) as caught:
        Peer(fake.url.replace("http://", "http://me:secret@"))
    assert "secret" not in str(caught.value)


# --- what does not end -------------------------------------------------------------------------


def test_an_answer_of_more_pieces_than_were_asked_for_is_given_up(serve: Serve) -> None:
    answer = as_events(*[delta("more ")] * 200, ending())
    assert "does not come to an end (" in fault(serve(llama_server(answer)), EdgespecError)


def test_what_is_read_whole_may_have_a_mebibyte(serve: Serve) -> None:
    fake = serve({"/props": Canned(b" " * (1 << 21))})
    with pytest.raises(EdgespecError, match=r"does not come to an end \(more than 1 MiB\)"):
        Peer(fake.url)
    fake = serve(llama_server(Canned(b" " * (1 << 21), 500)))
    with pytest.raises(EdgespecError, match="does not come to an end"):
        Peer(fake.url).answer(HI, 16)


def test_signs_of_life_do_not_keep_an_answer_alive(serve: Serve) -> None:
    lively = Canned(b": keepalive\n\n", kind=EVENTS, again=True)
    fake = serve(llama_server(lively))
    with pytest.raises(EdgespecError, match=r"does not come to an end \(its time was up\)"):
        Peer(fake.url, whole_s=0.2).answer(HI, 16)


def test_a_page_that_drips_is_given_up(serve: Serve) -> None:
    fake = serve({"/props": Canned(b" ", again=True)})
    with pytest.raises(EdgespecError, match=r"does not come to an end \(its time was up\)"):
        Peer(fake.url, whole_s=0.2)
