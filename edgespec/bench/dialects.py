"""How programs that answer over HTTP are asked, and what their answers look like."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgespec.errors import EdgespecError
from edgespec.models.shown import shown
from edgespec.text.template import Message

_MOST_TOKENS = 10**8
_SHORTEST_S, _LONGEST_S = 1e-6, 1e6


@dataclass(frozen=True, slots=True)
class Question:
    """What a program is asked. model: None where it has only one."""

    model: str | None
    messages: Sequence[Message]
    max_tokens: int
    seed: int
    temperature: float

    def spoken(self) -> list[dict[str, str]]:
        return [{"role": m.role, "content": m.content} for m in self.messages]


@dataclass(frozen=True, slots=True)
class Piece:
    """One line of a streamed answer; None is what it does not tell.

    decode_s: seconds, by the program's clock, in which all tokens but the first were made.
    ended: it says that the answer is whole.
    """

    text: str = ""
    tokens: int | None = None
    prompt_tokens: int | None = None
    decode_s: float | None = None
    ended: bool = False


class Dialect(Protocol):
    """A kind of program. events: whether lines come as server-sent events, else as JSON lines."""

    @property
    def kind(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def events(self) -> bool: ...

    def body(self, question: Question) -> dict[str, object]: ...

    def piece(self, line: str) -> Piece:
        """Raises: EdgespecError, without a name, for what cannot be read or reports a fault."""
        ...


@dataclass(frozen=True, slots=True)
class OpenAi:
    """POST /v1/chat/completions. extra: what this kind of program needs to be told besides."""

    kind: str
    extra: Callable[[], dict[str, object]] = dict
    path: str = "/v1/chat/completions"
    events: bool = True

    def body(self, question: Question) -> dict[str, object]:
        named = {} if question.model is None else {"model": question.model}
        return {
            **named,
            "messages": question.spoken(),
            "max_tokens": question.max_tokens,
            "seed": question.seed,
            "temperature": question.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.extra(),
        }

    def piece(self, line: str) -> Piece:
        if line.strip() == "[DONE]":
            return Piece(ended=True)
        chunk = _chunk(line)
        choices = chunk.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta"))
        usage, timings = _object(chunk.get("usage")), _object(chunk.get("timings"))
        counted = _count(timings.get("predicted_n"))
        return Piece(
            _text(delta, "reasoning_content", "reasoning") + _text(delta, "content"),
            _count(usage.get("completion_tokens")) if counted is None else counted,
            _count(usage.get("prompt_tokens")),
            _seconds(timings.get("predicted_ms"), 1e3),
            bool(choice.get("finish_reason")),
        )


@dataclass(frozen=True, slots=True)
class Ollama:
    """POST /api/chat, whose last line has the figures."""

    kind: str = "ollama"
    path: str = "/api/chat"
    events: bool = False

    def body(self, question: Question) -> dict[str, object]:
        return {
            "model": question.model,
            "messages": question.spoken(),
            "stream": True,
            "options": {
                "num_predict": question.max_tokens,
                "seed": question.seed,
                "temperature": question.temperature,
                "repeat_penalty": 1.0,
            },
        }

    def piece(self, line: str) -> Piece:
        chunk = _chunk(line)
        message = _object(chunk.get("message"))
        return Piece(
            _text(message, "thinking") + _text(message, "content"),
            _count(chunk.get("eval_count")),
            _count(chunk.get("prompt_eval_count")),
            _seconds(chunk.get("eval_duration"), 1e9),
            chunk.get("done") is True,
        )


# a fresh salt shares nothing with earlier requests in vLLM's prefix cache
LLAMA_SERVER = OpenAi("llama-server", lambda: {"cache_prompt": False, "repeat_penalty": 1.0})
VLLM = OpenAi("vllm", lambda: {"cache_salt": secrets.token_hex(16), "repetition_penalty": 1.0})
OTHER = OpenAi("openai", lambda: {"repeat_penalty": 1.0})
OLLAMA = Ollama()


def complaint(answer: object) -> str:
    """What a program says is wrong, fit for a message; empty where it says nothing."""
    found = _object(answer).get("error")
    text = _object(found).get("message", found)
    return shown(text, 200) if text else ""


def parsed(text: str | bytes) -> object:
    """Raises: ValueError for what is not JSON."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _chunk(line: str) -> dict[str, object]:
    try:
        chunk = parsed(line)
    except ValueError as error:
        raise EdgespecError(f"sent a line that is not JSON ({shown(line, 60)})") from error
    if wrong := complaint(chunk):
        raise EdgespecError(f"reports a fault ({wrong})")
    return _object(chunk)


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(message: dict[str, object], *keys: str) -> str:
    return next((text for key in keys if isinstance(text := message.get(key), str)), "")


def _count(value: object) -> int | None:
    """Tokens, where there can be so many."""
    possible = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS
    return value if possible and isinstance(value, int) else None


def _seconds(value: object, a_second: float) -> float | None:
    """Seconds that an answer can take."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = value / a_second
    except OverflowError:
        return None
    return seconds if _SHORTEST_S <= seconds <= _LONGEST_S else None
