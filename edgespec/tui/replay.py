"""An answer made again without speculation, beside the one that was made with it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from edgespec.decoding.events import Event, Finished, Round, Stop
from edgespec.decoding.stats import Stats
from edgespec.models.shown import shown
from edgespec.tui.kept import Run

if TYPE_CHECKING:
    from edgespec.options import Explained, Turn

_TEXT_CHARS = 24
_COLUMN = 13
_LABEL = 16


@dataclass(slots=True)
class Replay:
    """A replay that runs.

    turn: of the answer `key`, as it was asked, without speculation. figures: of what came behind
    the tokens that stood then.
    """

    number: int
    key: int
    turn: Turn
    ids: tuple[int, ...]
    runs: tuple[Run, ...]
    figures: Mapping[str, Any]
    stats: Stats = field(default_factory=lambda: Stats(time.perf_counter()))
    again: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    why: Stop | None = None

    @classmethod
    def of(cls, turn: Turn, number: int, key: int, made: Made) -> Replay:
        """At most as many tokens as there were, for an answer that was cut off."""
        from edgespec.options import Speculation

        count = max(len(made.ids) - len(turn.begun), 1)
        options = replace(turn.options, max_tokens=count, alternatives=0)
        plain = Speculation(proposer="none")
        turn = replace(turn, options=options, speculation=plain)
        return cls(number, key, turn, made.ids, made.runs, made.figures)

    def hear(self, event: Event, at_s: float) -> None:
        self.stats = self.stats.after(event, at_s)
        match event:
            case Round():
                self.again += [token.token for token in event.tokens]
                self.texts += [token.text for token in event.tokens]
            case Finished(why):
                self.why = why
            case _:
                pass

    @property
    def phase(self) -> str:
        count = len(self.ids) - len(self.turn.begun)
        return f"replaying without speculation: {len(self.again)} of {count} tokens"

    @property
    def written(self) -> tuple[int, ...]:
        """All tokens of the replay, those included that stood before it began."""
        return (*self.turn.begun, *self.again)

    @property
    def difference(self) -> int | None:
        """Place of the first token that differs; None where there is none so far."""
        return first_difference(self.ids, self.written)

    def lines(self, margin: str = "") -> tuple[str, ...]:
        """Both side by side, and whether they say the same. margin: at the first difference."""
        return (*_table(self), _verdict(self, margin))


@dataclass(frozen=True, slots=True)
class Made:
    """The answer that is compared."""

    ids: tuple[int, ...]
    runs: tuple[Run, ...]
    figures: Mapping[str, Any]


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first place where both have a token, and another one."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), None)


def margin_of(explained: Explained, other: int) -> str:
    """How much likelier the token that was chosen was than `other`, in words."""
    logprobs = {one.token: one.logprob for one in explained.alternatives}
    if other in logprobs:
        apart = abs(explained.logprob - logprobs[other])
        return f"the two were {apart:.4f} apart in log-probability"
    best = [one.logprob for one in explained.alternatives[:2]]
    if len(best) == 2:
        return f"the likeliest two were {best[0] - best[1]:.4f} apart in log-probability there"
    return ""


def _table(replay: Replay) -> tuple[str, ...]:
    plain = replay.stats.as_dict()
    first, last = replay.stats.first_s, replay.stats.last_s
    plain["decode_s"] = None if first is None or last is None else last - first
    rows = (
        ("decoding, s", "decode_s", "{:.2f}"),
        ("tokens / s", "tokens_per_second", "{:.1f}"),
        ("first token, s", "time_to_first_token_s", "{:.2f}"),
        ("tokens", "completion_tokens", "{:.0f}"),
    )
    begun = len(replay.turn.begun)
    head = _row(f"from token {begun + 1}" if begun else "", "as answered", "plain")
    return (
        head,
        *(_row(label, *(_figure(f.get(name), form) for f in (replay.figures, plain)))
          for label, name, form in rows),
    )  # fmt: skip


def _figure(value: object, form: str) -> str:
    return form.format(value) if isinstance(value, int | float) else "unknown"


def _row(label: str, one: str, other: str) -> str:
    return f"{label:<{_LABEL}}{one:>{_COLUMN}}{other:>{_COLUMN}}"


def _verdict(replay: Replay, margin: str) -> str:
    at = replay.difference
    if at is None:
        same = min(len(replay.written), len(replay.ids))
        if replay.why is Stop.CANCELLED:
            return f"stopped; the same up to token {same}"
        if len(replay.written) == len(replay.ids):
            return f"the same text, token for token ({same})"
        return f"the same up to token {same}, where one of them ends"
    started = len(replay.turn.begun)
    here = replay.runs[at][0] if at < len(replay.runs) else ""
    there = replay.texts[at - started] if 0 <= at - started < len(replay.texts) else ""
    words = f"first difference at token {at + 1}: {_text(here)} as answered, {_text(there)} here"
    return f"{words}; {margin}" if margin else words


def _text(token: str) -> str:
    return f"“{shown(token, _TEXT_CHARS)}”"
