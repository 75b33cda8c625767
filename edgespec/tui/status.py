"""The status line: from figures to one line of text that fits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from rich.cells import cell_len, set_cell_size

from edgespec.decoding.events import Round
from edgespec.decoding.stats import Stats
from edgespec.tui.naming import guesses_in_words, proposer_name

SEPARATOR = " · "
_TIMES = "\N{MULTIPLICATION SIGN}"
_PATIENCE = 8  # rounds without a guess before speculation is called off; one is no news
_PATIENCE_AT_START = 2
_PLAN_CELLS = 30
_SHORTENED_BEFORE = 4.5  # a part turns short before parts less than this less important go
_CROPPED_BEFORE = 1.5  # a reason is worth more room than all figures but the speed
_PLAIN_PREFIXES = ("auto → plain: ", "off: ")  # how plans begin; "spec off" says it already
_ENOUGH_TOKENS = 16  # fewer say nothing about what guesses cost
_NEARLY_FULL = 0.8
_NOISE, _NOISE_SINCE_LOADING = 0.05, 0.1  # share of an answer's time that passes vary by
_AUTO = "auto → "
_INEXACT = "same up to rounding"


class Tone(Enum):
    """How a part of the line is meant."""

    FIGURE = "figure"
    ASIDE = "aside"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the line. Where it is narrow, the highest `rank` goes first.

    Before it goes it turns `short`, where that is given, or is cropped to what room there is, but
    to no fewer than `least` cells, where that is not 0.
    """

    text: str
    rank: float
    tone: Tone = Tone.FIGURE
    short: str = ""
    least: int = 0


@dataclass(frozen=True, slots=True)
class Drafting:
    """What was chosen lately, folded from rounds: `drafting = drafting.after(round)`."""

    plan: str = ""
    idle: int = 0
    drafted: bool = False

    def after(self, event: Round) -> Drafting:
        if not event.guesses:
            idle = replace(self, idle=self.idle + 1)
            return replace(idle, plan=event.plan) if idle.off else idle
        return Drafting(_planned(event), idle=0, drafted=True)

    @property
    def off(self) -> bool:
        return self.idle >= (_PATIENCE if self.drafted else _PATIENCE_AT_START)


@dataclass(frozen=True, slots=True)
class Situation:
    """What the line and the panel show besides the figures of the answer.

    phase         what is going on before there are figures ("loading", "reading the prompt 40%").
    proposer      what the user asked for: auto, none, ngram, draft, recycling, tree.
    draft_tokens  guesses a round that the user asked for; None = what pays.
    exactness     how closely text with guesses equals text without, as ModelInfo has it.
    memory        what the model takes and what was free, as ModelInfo has it.
    inexact_with  proposers that are excepted from exactness, as ModelInfo has it.
    """

    pair: str = ""
    phase: str = ""
    proposer: str = "auto"
    show_mode: bool = False
    context_used: int = 0
    context: int = 0
    draft_tokens: int | None = None
    exactness: str = ""
    memory: str = ""
    inexact_with: tuple[str, ...] = ()

    @property
    def off(self) -> bool:
        """Whether the user turned speculation off."""
        return self.proposer == "none" or self.draft_tokens == 0

    @property
    def asked_for(self) -> str:
        """How to guess, as the user asked for it, in words."""
        if self.off:
            return "off"
        name = proposer_name(self.proposer)
        return name if self.draft_tokens is None else f"{name} {_TIMES}{self.draft_tokens}"

    @property
    def exactness_in_short(self) -> str:
        """How closely text with guesses equals text without, guessed at as it is now."""
        return _INEXACT if self.proposer in self.inexact_with else self.exactness.partition(":")[0]

    @property
    def context_share(self) -> float:
        return self.context_used / self.context if self.context else 0.0

    @property
    def nearly_full(self) -> bool:
        return self.context_share >= _NEARLY_FULL


def status_parts(stats: Stats | None, drafting: Drafting, situation: Situation) -> list[Part]:
    """The parts of the line in the order in which they are read."""
    parts = []
    if situation.show_mode:
        text = "show mode: drafting even where it does not pay"
        parts.append(Part(text, 1, Tone.WARNING, short="show mode"))
    if situation.phase:
        parts.append(Part(situation.phase, 0))
    parts += _choice(drafting, situation)
    if stats is not None:
        parts += _figures(stats)
    if situation.exactness:
        parts.append(Part(situation.exactness_in_short, 6.5, Tone.ASIDE))
    if situation.context:
        parts.append(_context(situation))
    return parts


def costs(stats: Stats) -> bool:
    """Whether guesses made this answer slower, by more than passes differ anyway.

    Only rounds with guesses are charged, whole as plain ones are, against what plain ones would
    take for the same tokens: what makes the rest of an answer slow is no fault of its guesses.
    """
    plain = stats.plain_tokens_per_second
    if stats.guessed_tokens < _ENOUGH_TOKENS or not plain:
        return False
    # what was measured before this answer may have been measured on a cooler, idler machine
    noise = _NOISE_SINCE_LOADING if plain == stats.calibrated_plain_speed else _NOISE
    lost_s = stats.guessed_s - stats.guessed_tokens / plain
    return lost_s > noise * (stats.draft_s + stats.verify_s + stats.overhead_s)


def speculation_notice(situation: Situation, *, answering: bool) -> str:
    """What a change of how to guess means, said once when it is made."""
    pays = ", whatever pays" * (situation.asked_for == "auto")
    return f"speculation {situation.asked_for}{pays}{_from_when(answering)}"


def show_mode_notice(on: bool, *, answering: bool) -> str:
    """What turning show mode on or off means, said once when it is done."""
    if not on:
        return f"show mode off{_from_when(answering)}: drafting only where it pays"
    return f"show mode on{_from_when(answering)}: drafting even where it does not pay"


def _from_when(answering: bool) -> str:
    return ", from the next round" if answering else ""


def speculation(drafting: Drafting, situation: Situation) -> tuple[bool, str]:
    """Whether guesses are made, and which or why not, in words."""
    if situation.off:
        return False, "you turned it off"
    if not drafting.off:
        return True, drafting.plan if drafting.drafted else situation.asked_for
    reason = drafting.plan
    for prefix in _PLAIN_PREFIXES:
        reason = reason.removeprefix(prefix)
    return False, reason or "no drafter had a guess"


def _planned(event: Round) -> str:
    """What a round with guesses did, its sources named as everywhere, and why where it says so."""
    words = guesses_in_words(event.guesses)
    if not event.plan.startswith(_AUTO):
        return event.plan or words
    _, comma, why = event.plan.partition(", ")
    return f"{_AUTO}{words}{comma}{why}"


def _choice(drafting: Drafting, situation: Situation) -> Iterator[Part]:
    pair = [Part(situation.pair, 8, Tone.ASIDE)] if situation.pair else []
    on, how = speculation(drafting, situation)
    if not on:
        yield Part(f"spec off: {how}", 1, Tone.WARNING, least=_PLAN_CELLS)
        yield from pair
    elif drafting.drafted or pair:
        yield Part("spec on", 5.5)
        yield from pair
        yield Part(how, 1, least=_PLAN_CELLS)


def _figures(stats: Stats) -> Iterator[Part]:
    if stats.tokens_per_second is not None:
        yield Part(f"{stats.tokens_per_second:.1f} tok/s", 2)
    plain = stats.plain_tokens_per_second
    if stats.speedup is not None and plain:
        ratio = f"{stats.speedup:.2f}{_TIMES}"
        if costs(stats):
            text = f"{ratio} plain ({plain:.1f}): speculation costs you here"
            yield Part(text, 0.4, Tone.WARNING, short=f"{ratio} plain: it costs you")
        else:
            yield Part(f"{ratio} plain ({plain:.1f})", 3, short=f"{ratio} plain")
    elif plain:
        yield Part(f"plain {plain:.1f} tok/s", 6, Tone.ASIDE)
    if stats.tokens_per_round is not None:
        yield Part(f"{stats.tokens_per_round:.1f} tok/round", 6, Tone.ASIDE)
    if stats.acceptance_rate is not None:
        yield Part(f"{stats.acceptance_rate:.0%} accepted", 5, Tone.ASIDE)
    if stats.time_to_first_token_s is not None:
        yield Part(f"first {stats.time_to_first_token_s:.2f} s", 7, Tone.ASIDE)


def _context(situation: Situation) -> Part:
    if situation.context_share >= 1:
        text = "context full: answers end here; Ctrl+N starts a new chat"
        return Part(text, 0.5, Tone.WARNING, short="context full")
    used = f"{situation.context_used}/{situation.context}"
    if situation.nearly_full:
        full = f"context {int(situation.context_share * 100)}% full"
        return Part(f"{full}: at 100% the answer ends", 1.5, Tone.WARNING, short=full)
    return Part(f"context {used}", 4, Tone.ASIDE, short=f"ctx {used}")


Move = Callable[[Part, int], Part | None]


def fitted(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit into `width` cells, the last one left cropped."""
    kept: list[Part | None] = list(parts)
    for _, index, move in sorted(_moves(parts), key=lambda at: -at[0]):
        left = [part for part in kept if part is not None]
        too_much = _cells(left) - width
        if too_much <= 0 or (move is _gone and len(left) == 1):
            break
        part = kept[index]
        kept[index] = part and move(part, too_much)
    return [replace(part, text=_cropped(part.text, width)) for part in kept if part is not None]


def _moves(parts: Sequence[Part]) -> Iterator[tuple[float, int, Move]]:
    """What may happen to each part, and how early: the highest number comes first."""
    for index, part in enumerate(parts):
        yield part.rank, index, _gone
        if part.short:
            yield part.rank + _SHORTENED_BEFORE, index, _shortened
        if part.least:
            yield part.rank + _CROPPED_BEFORE, index, _squeezed


def _gone(part: Part, too_much: int) -> Part | None:
    return None


def _shortened(part: Part, too_much: int) -> Part | None:
    return replace(part, text=part.short)


def _squeezed(part: Part, too_much: int) -> Part | None:
    room = max(cell_len(part.text) - too_much, part.least)
    return replace(part, text=_cropped(part.text, room))


def _cells(parts: Sequence[Part]) -> int:
    texts = sum(cell_len(part.text) for part in parts)
    return texts + len(SEPARATOR) * max(len(parts) - 1, 0)


def _cropped(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"
