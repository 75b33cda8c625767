"""The figures of an answer as lines of text, for a panel of any width."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from edgespec.decoding.stats import Stats
from edgespec.models.shown import shown
from edgespec.tui.charts import bar, columns, spark
from edgespec.tui.naming import proposer_name
from edgespec.tui.status import Drafting, Situation, Tone, costs, speculation

Line = tuple[tuple[str, Tone], ...]

_LABEL_CELLS = 10
_NARROWEST = 12  # cells of a value
_BIN_S = 0.5  # shorter stretches hold too few tokens for a speed
_MOST_SPEEDS = 240
_CHART_ROWS = 3
_COLUMN_CELLS = 3
_TIMES = "\N{MULTIPLICATION SIGN}"
_NOTHING_YET = "figures appear with the first answer"


@dataclass(frozen=True, slots=True)
class Pace:
    """Tokens a second over time, folded from figures: `pace = pace.after(stats)`.

    speeds: of the latest stretches of half a second or more, the oldest first.
    """

    started_s: float | None = None
    tokens: int = 0
    at_s: float | None = None
    speeds: tuple[float, ...] = ()

    def after(self, stats: Stats) -> Pace:
        """The pace once the answer has come as far as `stats`; another answer begins anew."""
        pace = self if stats.started_s == self.started_s else Pace(stats.started_s)
        if stats.first_s is None or stats.last_s is None:
            return pace
        if pace.at_s is None:
            pace = replace(pace, tokens=stats.first_tokens, at_s=stats.first_s)
        seconds = stats.last_s - (pace.at_s or 0.0)
        if seconds < _BIN_S:
            return pace
        speed = (stats.completion_tokens - pace.tokens) / seconds
        speeds = (*pace.speeds, speed)[-_MOST_SPEEDS:]
        return Pace(stats.started_s, stats.completion_tokens, stats.last_s, speeds)


def figure_lines(
    stats: Stats | None, pace: Pace, situation: Situation, drafting: Drafting, width: int
) -> Iterator[Line]:
    """All that is known, line by line, at most `width` cells wide where that is not absurd."""
    room = max(width - _LABEL_CELLS, _NARROWEST)
    on, how = speculation(drafting, situation)
    yield from _entry("guessing", how if on else f"off: {how}", room, _tone(not on))
    if stats is None:
        for text in textwrap.wrap(_NOTHING_YET, max(width, _NARROWEST)):
            yield ((text, Tone.ASIDE),)
    else:
        yield from _speed(stats, pace, room)
        yield from _guesses(stats, room)
        yield from _times(stats, room)
    yield from _room_left(situation, room)


def _speed(stats: Stats, pace: Pace, room: int) -> Iterator[Line]:
    speed, plain = stats.tokens_per_second, stats.plain_tokens_per_second
    yield from _entry("speed", f"{speed:.1f} tok/s" if speed is not None else "…", room)
    if pace.speeds:
        yield _labelled("", spark(pace.speeds, room))
    yield from _entry("plain", f"{plain:.1f} tok/s, measured" if plain else "not measured", room)
    if stats.speedup is not None:
        yield from _entry("ratio", f"{stats.speedup:.2f}{_TIMES} plain", room)
    if costs(stats):
        yield from _entry("", "speculation costs you here", room, Tone.WARNING)


def _guesses(stats: Stats, room: int) -> Iterator[Line]:
    if stats.tokens_per_round is not None:
        passes = "1 pass" if stats.rounds == 1 else f"{stats.rounds} passes"
        text = f"{stats.tokens_per_round:.1f} tokens, {passes}"
        yield from _entry("a round", text, room)
    if stats.acceptance_rate is None:
        yield from _entry("accepted", "nothing was guessed", room)
        return
    text = f"{stats.acceptance_rate:.0%} of {stats.tested} tested, {stats.drafted} drafted"
    yield from _entry("accepted", text, room)
    yield from _by_place(stats, room)
    for name, source in stats.by_proposer:
        rate = f"{source.accepted / source.tested:.0%}" if source.tested else "none"
        text = f"{rate} of {source.tested} tested, {source.drafted} drafted"
        yield from _entry(f"  {proposer_name(name)}", text, room)


def _by_place(stats: Stats, room: int) -> Iterator[Line]:
    """Acceptance at each place of a draft: bars, the places, and the shares in percent."""
    places = max((room + 1) // (_COLUMN_CELLS + 1), 1)
    shares = [
        accepted / tested
        for tested, accepted in zip(stats.tested_at, stats.accepted_at, strict=True)
        if tested
    ][:places]
    for number, row in enumerate(columns(shares, _CHART_ROWS, _COLUMN_CELLS)):
        yield _labelled("by place" if number == 0 else "", row)
    yield (
        ("".ljust(_LABEL_CELLS), Tone.ASIDE),
        (" ".join(f"{n + 1:>{_COLUMN_CELLS}}" for n in range(len(shares))), Tone.ASIDE),
    )
    percents = " ".join(f"{share * 100:>{_COLUMN_CELLS}.0f}" for share in shares)
    yield (("  %".ljust(_LABEL_CELLS), Tone.ASIDE), (percents, Tone.FIGURE))


def _times(stats: Stats, room: int) -> Iterator[Line]:
    if stats.time_to_first_token_s is not None:
        reused = f", {stats.reused_tokens} reused" if stats.reused_tokens else ""
        prompt = f"{stats.prompt_tokens} prompt tokens{reused}"
        yield from _entry("first", f"{stats.time_to_first_token_s:.2f} s, {prompt}", room)
    total_s = stats.draft_s + stats.verify_s + stats.overhead_s
    if total_s <= 0:
        return
    parts = (("draft", stats.draft_s), ("verify", stats.verify_s), ("rest", stats.overhead_s))
    for number, (name, seconds) in enumerate(parts):
        share = max(seconds, 0.0) / total_s
        text = f"{name:<7}{share:>4.0%} {bar(share, max(room - 12, 1))}"
        yield _labelled("time" if number == 0 else "", text)


def _room_left(situation: Situation, room: int) -> Iterator[Line]:
    if situation.context:
        share = situation.context_share
        tone = _tone(situation.nearly_full)
        used = f"{situation.context_used} of {situation.context}, {int(share * 100)}%"
        yield from _entry("context", used, room, tone)
        yield _labelled("", bar(share, room), tone)
    if situation.exactness:
        yield from _entry("text", shown(situation.exactness), room)
    if situation.memory:
        yield from _entry("memory", shown(situation.memory), room)


def _tone(warning: bool) -> Tone:
    return Tone.WARNING if warning else Tone.FIGURE


def _entry(label: str, value: str, room: int, tone: Tone = Tone.FIGURE) -> Iterator[Line]:
    """A label and a value, which may need several lines."""
    if len(label) >= _LABEL_CELLS:
        yield ((label, Tone.ASIDE),)
        label = ""
    for number, text in enumerate(textwrap.wrap(value, room) or [""]):
        yield _labelled(label if number == 0 else "", text, tone)


def _labelled(label: str, text: str, tone: Tone = Tone.FIGURE) -> Line:
    return ((label.ljust(_LABEL_CELLS), Tone.ASIDE), (text, tone))
