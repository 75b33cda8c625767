"""One request to a hub: sent on only where that is safe, and its answer read only so far.

The library's own calls read the bodies of redirects and errors whole, however large they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from time import monotonic

import httpx2
from huggingface_hub import get_session
from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

from edgespec.errors import BadInput
from edgespec.models.hub_errors import Senseless
from edgespec.models.shown import shown

_CONNECT_S = 15.0
_SILENCE_S = 60.0
_MOST_HOPS = 10
_TOLD = ("x-error-code", "x-error-message", "retry-after", "ratelimit", "ratelimit-policy")


@contextmanager
def opened(url: str, token: str | None, more: Mapping[str, str]) -> Iterator[httpx2.Response]:
    """The answer that all redirects lead to, its body unread; `history` holds those before it.

    The token goes to the host of `url` alone. Raises: one of FAILURES, but for a status that
    refuses: see check_status(); BadInput for a proxy that cannot be one.
    """
    headers = {"User-Agent": f"edgespec/{version('edgespec')}", "Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    client = _client()
    timeout = httpx2.Timeout(_SILENCE_S, connect=_CONNECT_S)
    request = client.build_request("GET", url, headers={**headers, **more}, timeout=timeout)
    passed: list[httpx2.Response] = []
    while True:
        answer = client.send(request, stream=True, follow_redirects=False)
        try:
            if not answer.has_redirect_location:
                answer.history = passed
                yield answer
                return
            request = _next_request(answer)
        finally:
            answer.close()
        passed.append(answer)
        if len(passed) > _MOST_HOPS:
            raise Senseless("it sends on and on")


def _client() -> httpx2.Client:
    try:
        return get_session()
    except (ValueError, ImportError, httpx2.InvalidURL) as error:
        raise BadInput(
            f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names no proxy that can be used"
            f" ({shown(error, 120)}); correct it, or unset it."
        ) from error


def check_status(answer: httpx2.Response) -> None:
    """Raises: what the library makes of a status that refuses; Senseless for a packed body."""
    told = {name: answer.headers[name] for name in _TOLD if name in answer.headers}
    # without its body, which the library would read to the end
    hf_raise_for_status(
        httpx2.Response(answer.status_code, headers=told, content=b"", request=answer.request)
    )
    packed = answer.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        raise Senseless(f"it sends as {shown(packed, 20)} what was asked for unpacked")


def body_of(answer: httpx2.Response, most: int, within_s: float) -> bytes:
    """The whole body of a sound answer. most: bytes. Raises: Senseless beyond either limit."""
    body = bytearray()
    end = monotonic() + within_s
    for piece in answer.iter_raw():
        body += piece
        if len(body) > most:
            raise Senseless(f"its answer is larger than {most >> 20} MiB")
        if monotonic() > end:
            raise Senseless(f"its answer was not complete within {within_s:.0f} s")
    return bytes(body)


def _next_request(answer: httpx2.Response) -> httpx2.Request:
    request = answer.next_request
    if request is None or not request.url.host:
        raise Senseless("it sends on to what is no address")
    scheme, before = request.url.scheme, answer.request.url.scheme
    if scheme not in ("http", "https"):
        raise Senseless(f"it sends on to an address of the kind {shown(scheme, 20)}")
    if before == "https" and scheme == "http":
        raise Senseless("it sends on to an address without encryption")
    return request
