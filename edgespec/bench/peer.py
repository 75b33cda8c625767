"""Another program that answers over HTTP: llama-server, LM Studio, Ollama, mlx_lm.server, vLLM.

What its prompt cache would save is kept out where the program allows it (llama-server, vLLM);
with the others the time to the first token of a prompt that was asked before is flattered, the
decode speed is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

import httpx2

from edgespec.bench.dialects import (
    LLAMA_SERVER,
    OLLAMA,
    OTHER,
    VLLM,
    Dialect,
    Piece,
    Question,
    complaint,
    parsed,
)
from edgespec.errors import BadInput, EdgespecError, NetworkError, NoAccess
from edgespec.models.shown import shown
from edgespec.text.template import Message

_CONNECT_S = 5.0
_RECOGNISE_S = 30.0  # for everything by which a program is recognised, each time
_MOST_BYTES = 1 << 20  # of what is read whole
_MOST_STREAMED_BYTES = 1 << 26
_SURPLUS = 4  # pieces for each token that was asked for; more is an answer that does not end
_FEWEST_PIECES = 8  # fewer, by our clock, are a burst and tell no speed
_SLOWEST, _FASTEST = 1e-4, 1e6  # tokens a second that can be
_KNOWN = "llama-server, LM Studio, Ollama, mlx_lm.server or vLLM"


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """One answer and its figures; None is what cannot be told.

    tokens: as the program counts them, else pieces of text that came. tokens_per_second: behind
    the first token, by the program's own clock where it tells, else behind the first piece by ours
    where the text came in enough pieces.
    """

    text: str
    tokens: int
    seconds_to_first_token: float
    tokens_per_second: float | None
    prompt_tokens: int | None = None


class Peer:
    """A program at `url`; what kind it is shows in what it answers to.

    url: may end in #MODEL. model: the same; one of them where the program offers several.
    label: a name of one's own. timeout_s: how long it may be silent, prompt included.
    whole_s: how long an answer may take.
    Raises: BadInput, NetworkError, NoAccess, EdgespecError.
    """

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        label: str | None = None,
        timeout_s: float = 600.0,
        whole_s: float = 600.0,
    ) -> None:
        address, named = _address(url)
        self._where = shown(address.netloc, 100)
        self._timeout_s, self._whole_s = timeout_s, whole_s
        # no connection is kept, so there is none to close; and no proxy stands in between
        self._client = httpx2.Client(
            base_url=address,
            limits=httpx2.Limits(max_keepalive_connections=0),
            headers={"Accept-Encoding": "identity"},
            trust_env=False,
        )
        model = model or named
        self._dialect, self._model = self._recognised(model)
        behind = f"#{shown(model, 60)}" if model else ""
        self.name = shown(label) if label else f"{self._dialect.kind}@{self._where}{behind}"

    @property
    def kind(self) -> str:
        """llama-server, ollama, vllm, or openai for any other."""
        return self._dialect.kind

    def answer(
        self,
        messages: Sequence[Message],
        max_tokens: int,
        seed: int = 1,
        temperature: float = 0.0,
    ) -> PeerAnswer:
        """Raises: NetworkError, NoAccess, EdgespecError; each names the program."""
        question = Question(self._model, messages, max_tokens, seed, temperature)
        told = _Told()
        with self._asked("POST", self._dialect.path, self._dialect.body(question)) as response:
            self._check(response)
            for line in _lines(response, self._dialect.events):
                told.take(self._piece(line))
                if told.pieces > _SURPLUS * (max_tokens + 8):
                    raise self._endless(f"{told.pieces} pieces for {max_tokens} tokens")
        return told.answer(self._where)

    def _piece(self, line: str) -> Piece:
        try:
            return self._dialect.piece(line)
        except EdgespecError as error:
            raise EdgespecError(f"{self._where} {error}; look at its log.") from error

    # --- which program it is -------------------------------------------------------------------

    def _recognised(self, model: str | None) -> tuple[Dialect, str | None]:
        """The kind of program and the model to ask it for; asks no more than it needs to."""
        if "default_generation_settings" in self._told("/props"):
            return LLAMA_SERVER, model
        if "version" in self._told("/api/version"):
            return OLLAMA, model or self._only("/api/ps") or self._only("/api/tags", True)
        offered = self._told("/v1/models").get("data")
        if not isinstance(offered, list):
            raise EdgespecError(
                f"{self._where} is no program that edgespec knows; give the address of {_KNOWN}."
            )
        owners = [entry.get("owned_by") for entry in offered if isinstance(entry, dict)]
        dialect = VLLM if "vllm" in owners else OTHER
        return dialect, model or self._one_of([_named(entry) for entry in offered])

    def _told(self, path: str) -> dict[str, object]:
        """What the program says at `path`; nothing where there is no such path."""
        with self._asked("GET", path) as response:
            if response.status_code in (401, 403) or response.is_server_error:
                self._check(response)
            try:
                answer = parsed(response.read()) if response.is_success else None
            except ValueError:
                answer = None  # a page for people, say
        return answer if isinstance(answer, dict) else {}

    def _only(self, path: str, must: bool = False) -> str | None:
        """The model in a list of Ollama's, if it is one alone."""
        listed = self._told(path).get("models")
        names = [_named(entry) for entry in listed] if isinstance(listed, list) else []
        return self._one_of(names) if must or len(names) == 1 else None

    def _one_of(self, names: list[str]) -> str:
        if len(names) == 1:
            return names[0]
        if not names:
            raise BadInput(f"{self._where} offers no model; load one there.")
        listed = ", ".join(shown(name, 60) for name in names[:10])
        raise BadInput(
            f"{self._where} offers {len(names)} models; write one behind its address, as in"
            f" {self._where}#{shown(names[0], 60)}: {listed}."
        )

    # --- what can go wrong ---------------------------------------------------------------------

    @contextmanager
    def _asked(
        self, method: str, path: str, body: dict[str, object] | None = None
    ) -> Iterator[httpx2.Response]:
        patience_s = min(self._timeout_s, _RECOGNISE_S) if method == "GET" else self._timeout_s
        timeout = httpx2.Timeout(patience_s, connect=_CONNECT_S)
        try:
            with self._client.stream(method, path, json=body, timeout=timeout) as response:
                kept = _MOST_BYTES if method == "GET" or response.is_error else _MOST_STREAMED_BYTES
                within_s = min(self._whole_s, _RECOGNISE_S) if method == "GET" else self._whole_s
                bounded = _Bounded(response.stream, kept, perf_counter() + within_s)
                response.stream = bounded
                yield response
        except _TooLong as error:
            raise self._endless(str(error)) from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise NetworkError(
                f"{self._where} cannot be reached ({_reason(error)}); start the program there or"
                " correct its address."
            ) from error
        except httpx2.TimeoutException as error:
            raise NetworkError(
                f"{self._where} was silent for {patience_s:g} s; look at its log and run this"
                " again."
            ) from error
        except httpx2.SSEError as error:
            raise EdgespecError(
                f"{self._where} sent no stream of text ({_reason(error)}); look at its log."
            ) from error
        except httpx2.HTTPError as error:
            raise NetworkError(
                f"{self._where} broke off ({_reason(error)}); look at its log and run this again."
            ) from error

    def _endless(self, what: str) -> EdgespecError:
        return EdgespecError(
            f"{self._where} does not come to an end ({what}); look at its log and its settings."
        )

    def _check(self, response: httpx2.Response) -> None:
        """Raises: NoAccess, EdgespecError for a status that is no success."""
        if response.is_success:
            return
        status = f"status {response.status_code}"
        try:
            why = complaint(parsed(response.read()))
        except ValueError:
            why = ""
        said = f"{status}: {why}" if why else status
        if response.status_code in (401, 403):
            raise NoAccess(f"{self._where} asks for a key ({said}); start it without one.")
        if response.is_server_error:
            raise EdgespecError(
                f"{self._where} failed ({said}); wait until it is ready, or look at its log."
            )
        raise EdgespecError(
            f"{self._where} turns the question down ({said}); check the address and the model."
        )


class _TooLong(Exception):
    """A body with more bytes, or for a longer time, than is waited for."""


class _Bounded(httpx2.SyncByteStream):
    """A body that ends: so many bytes, until so late."""

    def __init__(self, body: object, most_bytes: int, ends_s: float) -> None:
        assert isinstance(body, httpx2.SyncByteStream)
        self._body, self._most_bytes, self._ends_s = body, most_bytes, ends_s

    def __iter__(self) -> Iterator[bytes]:
        taken = 0
        for part in self._body:
            taken += len(part)
            if taken > self._most_bytes:
                raise _TooLong(f"more than {self._most_bytes >> 20} MiB")
            if perf_counter() > self._ends_s:
                raise _TooLong("its time was up")
            yield part

    def close(self) -> None:
        self._body.close()


class _Told:
    """One answer, as its pieces come."""

    def __init__(self) -> None:
        self._started_s = perf_counter()
        self._at_s: list[float] = []
        self._text: list[str] = []
        self._tokens: int | None = None
        self._prompt_tokens: int | None = None
        self._decode_s: float | None = None
        self._ended = False

    @property
    def pieces(self) -> int:
        return len(self._at_s)

    def take(self, piece: Piece) -> None:
        if piece.text:
            self._at_s.append(perf_counter())
            self._text.append(piece.text)
        self._tokens = piece.tokens or self._tokens
        self._prompt_tokens = piece.prompt_tokens or self._prompt_tokens
        self._decode_s = piece.decode_s or self._decode_s
        self._ended = self._ended or piece.ended

    def answer(self, where: str) -> PeerAnswer:
        """Raises: NetworkError for an answer that is cut, EdgespecError for one that is empty."""
        if not self._ended:
            raise NetworkError(
                f"{where} broke off before its answer ended; look at its log and run this again."
            )
        if not self._at_s:
            raise EdgespecError(f"{where} answered with no text; check its model and template.")
        tokens = self._tokens or len(self._at_s)
        return PeerAnswer(
            _whole("".join(self._text)),
            tokens,
            self._at_s[0] - self._started_s,
            self._speed(tokens),
            self._prompt_tokens,
        )

    def _speed(self, tokens: int) -> float | None:
        """Its own clock starts behind the first token, ours behind the first piece."""
        behind, decode_s = tokens - 1.0, self._decode_s
        if decode_s is None and self.pieces >= _FEWEST_PIECES:
            behind, decode_s = tokens - self._first_tokens(tokens), self._at_s[-1] - self._at_s[0]
        if tokens < 2 or not decode_s:
            return None
        speed = behind / decode_s
        return speed if _SLOWEST <= speed <= _FASTEST else None

    def _first_tokens(self, tokens: int) -> float:
        """About so many tokens came with the first piece: by its share of the text, but one at
        least, and no more than leave one for each other piece."""
        share = len(self._text[0]) / sum(map(len, self._text))
        return max(1.0, min(tokens * share, tokens - self.pieces + 1))


def _whole(text: str) -> str:
    """Halves of a character that come apart are put together; lone ones are no text."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _lines(response: httpx2.Response, events: bool) -> Iterator[str]:
    lines = (e.data for e in httpx2.EventSource(response)) if events else response.iter_lines()
    return (line for line in lines if line.strip())


def _address(url: str) -> tuple[httpx2.URL, str | None]:
    """Where the program is, and the model that is named behind a # if one is."""
    try:
        address = httpx2.URL(url if "://" in url else f"http://{url}")
    except httpx2.InvalidURL as error:
        raise BadInput(f"'{shown(url, 100)}' is no address ({_reason(error)}).") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise BadInput(f"'{shown(url, 100)}' is no address; write http://localhost:8080.")
    path = address.path.rstrip("/").removesuffix("/v1")
    return address.copy_with(path=path, fragment=None), address.fragment or None


def _named(entry: object) -> str:
    found = entry if isinstance(entry, dict) else {}
    return _whole(str(found.get("id") or found.get("name") or ""))


def _reason(error: Exception) -> str:
    return shown(str(error) or type(error).__name__, 160)
