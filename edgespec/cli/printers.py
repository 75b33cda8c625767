"""The three shapes of an answer on stdout: text as it comes, one object, or one per event."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from edgespec.cli.answer import Answer
from edgespec.cli.output import one_line, write, write_json
from edgespec.decoding.events import Event, Finished, PromptRead, Round

if TYPE_CHECKING:
    from edgespec.api import ModelInfo


# lists that are told when empty, too
ALWAYS = frozenset({"tokens", "guesses"})


class Printer(Protocol):
    """Shows one answer."""

    def show(self, event: Event) -> None:
        """What has just happened."""
        ...

    def finish(self, answer: Answer, seed: int, info: ModelInfo) -> None:
        """The answer ended by itself or was stopped; nothing failed."""
        ...

    def close(self) -> None:
        """Leave stdout tidy, whatever happened."""
        ...


class TextPrinter:
    """The answer's text as it comes, and a newline."""

    def __init__(self) -> None:
        self._last = ""

    def show(self, event: Event) -> None:
        if not isinstance(event, PromptRead) and event.text:
            self._last = event.text
            write(event.text)

    def finish(self, answer: Answer, seed: int, info: ModelInfo) -> None:
        if not answer.text:
            write("\n")

    def close(self) -> None:
        if self._last and not self._last.endswith("\n"):
            self._last = ""
            write("\n")


class JsonPrinter:
    """One object once the answer is complete; nothing before, so nothing half-written."""

    def show(self, event: Event) -> None:
        pass

    def finish(self, answer: Answer, seed: int, info: ModelInfo) -> None:
        write_json(
            {
                "text": answer.text,
                "token_ids": answer.token_ids,
                **_ending(answer, seed, info),
            }
        )

    def close(self) -> None:
        pass


class EventsPrinter:
    """One object per line for each event; the last also has the figures."""

    def show(self, event: Event) -> None:
        if not isinstance(event, Finished):
            write_json(_event(event))

    def finish(self, answer: Answer, seed: int, info: ModelInfo) -> None:
        write_json({"event": "finished", "text": answer.tail, **_ending(answer, seed, info)})

    def close(self) -> None:
        pass


def _ending(answer: Answer, seed: int, info: ModelInfo) -> dict[str, Any]:
    return {
        "finish_reason": answer.why,
        "seed": seed,
        "model": {
            "target": one_line(info.target),
            "draft": one_line(info.draft) if info.draft else None,
            "backend": info.backend,
        },
        "stats": answer.stats.as_dict(),
    }


def _event(event: PromptRead | Round) -> dict[str, Any]:
    match event:
        case PromptRead():
            return {"event": "prompt", **_told(event)}
        case Round():
            told = {"text": event.text, "plan": one_line(event.plan), "note": one_line(event.note)}
            return {"event": "round", **_told(event), **told}
        case _:
            assert_never(event)


def _told(event: PromptRead | Round) -> dict[str, Any]:
    """An event's fields; log-probabilities and the like only where they were asked for."""

    def asked_for(fields: list[tuple[str, Any]]) -> dict[str, Any]:
        return {
            name: value for name, value in fields if value not in (None, (), []) or name in ALWAYS
        }

    return asdict(event, dict_factory=asked_for)
