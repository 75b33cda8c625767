"""The status line: from figures to one line of text that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from rich.cells import cell_len, set_cell_size

from edgespec.decoding.events import Round
from edgespec.decoding.stats import Stats

SEPARATOR = " · "
_TIMES = "\N{MULTIPLICATION SIGN}"
_PATIENCE = 8  # rounds without a guess before speculation is called off; one is no news
_PATIENCE_AT_START = 2
_PLAN_CELLS = 30
_SHORTENED_BEFORE = 4.5  # a part turns short before parts less than this less important go
_PLAIN_PREFIX = "auto → plain: "  # how the planner begins; "spec off" says it already


class Tone(Enum):
    """How a part of the line is meant."""

    FIGURE = "figure"
    ASIDE = "aside"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the line. Where it is narrow, the highest `rank` goes first."""

    text: str
    rank: int
    tone: Tone = Tone.FIGURE
    short: str = ""


@dataclass(frozen=True, slots=True)
class Drafting:
    """What was chosen lately, folded from rounds: `drafting = drafting.after(round)`."""

    plan: str = ""
    source: str = ""
    length: int = 0
    idle: int = 0
    drafted: bool = False

    def after(self, event: Round) -> Drafting:
        if not event.guesses:
            idle = replace(self, idle=self.idle + 1)
            return replace(idle, plan=event.plan) if idle.off else idle
        return Drafting(
            event.plan, event.guesses[0].source, len(event.guesses), idle=0, drafted=True
        )

    @property
    def off(self) -> bool:
        return self.idle >= (_PATIENCE if self.drafted else _PATIENCE_AT_START)


@dataclass(frozen=True, slots=True)
class Situation:
    """What the line shows besides the figures of the answer.

    phase        what is going on before there are figures ("loading", "reading the prompt 40%").
    proposer     what the user asked for: auto, none, ngram, draft.
    draft_tokens guesses a round that the user asked for; None = what pays.
    exactness    how closely text with guesses equals text without, as ModelInfo has it.
    memory       what the model takes and what was free, as ModelInfo has it.
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


def status_parts(stats: Stats | None, drafting: Drafting, situation: Situation) -> list[Part]:
    """The parts of the line in the order in which they are read."""
    parts = [Part(situation.pair, 8, Tone.ASIDE)] if situation.pair else []
    if situation.show_mode:
        text = "show mode: drafting even where it does not pay"
        parts.append(Part(text, 1, Tone.WARNING, short="show mode"))
    if situation.phase:
        parts.append(Part(situation.phase, 0))
    parts += _choice(drafting, situation)
    if stats is not None:
        parts += _figures(stats)
    if situation.context:
        used = f"{situation.context_used}/{situation.context}"
        parts.append(Part(f"context {used}", 4, Tone.ASIDE, short=f"ctx {used}"))
    return parts


def _choice(drafting: Drafting, situation: Situation) -> list[Part]:
    if situation.proposer == "none":
        return [Part("spec off: you turned it off", 1, Tone.WARNING, short="spec off")]
    if drafting.off:
        reason = drafting.plan.removeprefix(_PLAIN_PREFIX) or "no drafter had a guess"
        text = f"spec off: {reason}"
        return [Part(text, 1, Tone.WARNING, short=_cropped(text, _PLAN_CELLS))]
    if drafting.drafted:
        text = drafting.plan or f"{drafting.source} {_TIMES}{drafting.length}"
        return [Part(text, 1, short=_cropped(text, _PLAN_CELLS))]
    return []


def _figures(stats: Stats) -> list[Part]:
    parts = []
    if stats.tokens_per_second is not None:
        parts.append(Part(f"{stats.tokens_per_second:.1f} tok/s", 2))
    plain = stats.plain_tokens_per_second
    if stats.speedup is not None and plain:
        ratio = f"{stats.speedup:.2f}{_TIMES}"
        parts.append(Part(f"{ratio} plain ({plain:.1f})", 3, short=f"{ratio} plain"))
    elif plain:
        parts.append(Part(f"plain {plain:.1f} tok/s", 6, Tone.ASIDE))
    if stats.tokens_per_round is not None:
        parts.append(Part(f"{stats.tokens_per_round:.1f} tok/round", 6, Tone.ASIDE))
    if stats.acceptance_rate is not None:
        parts.append(Part(f"{stats.acceptance_rate:.0%} accepted", 5, Tone.ASIDE))
    if stats.time_to_first_token_s is not None:
        parts.append(Part(f"first {stats.time_to_first_token_s:.2f} s", 7, Tone.ASIDE))
    return parts


def fitted(parts: Sequence[Part], width: int) -> list[Part]:
    """The parts that fit into `width` cells, the last one left cropped."""
    kept: list[Part | None] = list(parts)
    moves: list[tuple[float, int, Part | None]] = []
    for index, part in enumerate(parts):
        moves.append((part.rank, index, None))
        if part.short:
            shorter = replace(part, text=part.short, short="")
            moves.append((part.rank + _SHORTENED_BEFORE, index, shorter))
    for _, index, instead in sorted(moves, key=lambda move: -move[0]):
        left = [part for part in kept if part is not None]
        if _cells(left) <= width or (instead is None and len(left) == 1):
            break
        kept[index] = instead
    return [replace(part, text=_cropped(part.text, width)) for part in kept if part is not None]


def status_text(stats: Stats | None, drafting: Drafting, situation: Situation, width: int) -> str:
    """The whole line, at most `width` cells wide."""
    parts = fitted(status_parts(stats, drafting, situation), width)
    return SEPARATOR.join(part.text for part in parts)


def _cells(parts: Sequence[Part]) -> int:
    texts = sum(cell_len(part.text) for part in parts)
    return texts + len(SEPARATOR) * max(len(parts) - 1, 0)


def _cropped(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…"
