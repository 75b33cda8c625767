"""What is kept of an answer besides its text: how its tokens came about, and how it was asked for.

It lies in the history as JSON among the answer's figures, so whatever is read back may be foreign.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from edgespec.errors import BadInput
from edgespec.text.sanitize import clean
from edgespec.tui.transcript import Mark

if TYPE_CHECKING:
    from edgespec.options import AnswerOptions, Turn

Run = tuple[str, Mark]
_LETTERS = {
    Mark.ACCEPTED: "a",
    Mark.CORRECTION: "c",
    Mark.BONUS: "b",
    Mark.PLAIN: "p",
}
_MARKS = {letter: mark for mark, letter in _LETTERS.items()}


def kept_runs(runs: Sequence[Run]) -> dict[str, Any]:
    """The tokens of an answer without their text, which is kept anyway."""
    return {
        "marks": "".join(_LETTERS.get(mark, "p") for _, mark in runs),
        "lengths": [len(text) for text, _ in runs],
    }


def runs_of(content: str, stats: Mapping[str, Any]) -> tuple[Run, ...]:
    """The tokens of a kept answer; all of it as one where they do not fit the text."""
    text = clean(content)
    tokens = stats.get("tokens")
    marks, lengths = ("", [])
    if isinstance(tokens, Mapping):
        marks, lengths = tokens.get("marks", ""), tokens.get("lengths", [])
    if not (isinstance(marks, str) and isinstance(lengths, list)):
        return ((text, Mark.PLAIN),) if text else ()
    sound = all(type(length) is int and length >= 0 for length in lengths)
    if text != content or len(marks) != len(lengths) or not sound or sum(lengths) != len(text):
        return ((text, Mark.PLAIN),) if text else ()
    runs, at = [], 0
    for mark, length in zip(marks, lengths, strict=True):
        runs.append((text[at : at + length], _MARKS.get(mark, Mark.PLAIN)))
        at += length
    return tuple(runs)


def kept_options(turn: Turn) -> dict[str, Any]:
    """How an answer was asked for, or the rest of one that was continued."""
    options = turn.options
    return {
        "overrides": {name: value for name, value in options.overrides.items() if name != "seed"},
        "max_tokens": options.max_tokens,
        "stop": list(options.stop),
        "reasoning": options.reasoning,
        "begun": len(turn.begun),
        "system": next((one.content for one in turn.messages if one.role == "system"), ""),
        "when": None if turn.when is None else turn.when.isoformat(),
    }


def options_of(stats: Mapping[str, Any], now: AnswerOptions) -> tuple[AnswerOptions, int]:
    """How a kept answer was asked for, and how many of its tokens stood before; `now` where
    that is not known or makes no sense."""
    kept = stats.get("asked")
    if not isinstance(kept, Mapping):
        return now, 0
    try:
        options = replace(
            now,
            overrides={str(name): value for name, value in kept["overrides"].items()},
            max_tokens=kept["max_tokens"],
            stop=tuple(kept["stop"]),
            reasoning=kept["reasoning"],
        )
        begun = int(kept["begun"])
    except (KeyError, TypeError, ValueError, AttributeError, BadInput):
        return now, 0
    return options, max(begun, 0)


def system_of(stats: Mapping[str, Any], now: str) -> str:
    """The system prompt that a kept answer was asked under; `now` where that is not known."""
    kept = stats.get("asked")
    system = kept.get("system") if isinstance(kept, Mapping) else None
    return system if isinstance(system, str) else now


def when_of(stats: Mapping[str, Any]) -> datetime | None:
    """The time that the template was told for a kept answer; None where that is not known."""
    try:
        return datetime.fromisoformat(stats["asked"]["when"])
    except (KeyError, TypeError, ValueError):
        return None
