"""A benchmark that fits into two minutes: what to leave out, by what a pass costs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING

import psutil

from edgespec.api import Model

if TYPE_CHECKING:
    from edgespec.bench.prompts import Prompt

WITHIN_S = 105.0  # of the process; the rest is for telling, and for a pass that takes long
CATEGORIES = ("code", "edit", "chat")
_FEWEST_TOKENS, _MOST_TOKENS, _MOST_PER_CATEGORY = 8, 96, 4
_SAFETY = 0.8  # of the time that is planned with; the rest is for what goes slower than measured
_LUCK = 0.7  # acceptance that the length of the fixed draft is chosen for, as good pairs have it
_BAD_LUCK = 0.3  # acceptance that time is planned with
_LENGTHS = (2, 3, 4, 6, 8)
_READING = 0.4  # seconds of one prompt token, in plain passes: prompts are read in wide passes


@dataclass(frozen=True, slots=True)
class Quick:
    """Which arms, prompts and how many tokens fit the time."""

    arms: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    tokens: int


def seconds_since_start() -> float:
    """How long this process has lived; imports and loading count, as they do for who waits."""
    return max(0.0, time() - psutil.Process().create_time())


def quick_plan(model: Model, prompts: Sequence[Prompt], within_s: float) -> Quick:
    """As many prompts as fit, one of each category first, the shortest first.

    Where even these do not fit, answers get shorter, and only then categories fall away.
    """
    fixed = best_fixed(model)
    arms, queue = ("none", "auto", fixed), _in_turns(model, prompts)
    least = min(len(queue), len({prompt.category for prompt in queue}))
    room = _Room(model, fixed, _SAFETY * within_s)
    fits = {count: room.tokens(queue[:count]) for count in range(1, len(queue) + 1)}
    count = next((n for n in range(least, 1, -1) if fits[n] >= _FEWEST_TOKENS), 1)
    if count == least:
        more = [n for n in fits if n > least and fits[n] >= _MOST_TOKENS]
        count = max(more, default=least)
    tokens = max(_FEWEST_TOKENS, min(_MOST_TOKENS, fits[count]))
    return Quick(arms, tuple(queue[:count]), tokens)


class _Room:
    """What fits the time, by what passes and guesses cost here."""

    def __init__(self, model: Model, fixed: str, within_s: float) -> None:
        self._model, self._within_s = model, within_s
        self._plain_s = model.loaded.target.cost.seconds(1)
        drafter = model.loaded.drafter
        self._draft_s = 0.0 if drafter is None else drafter.guess_s
        # `none`, `auto` at its worst, and a fixed length with guesses that are rarely right
        self._token_s = self._plain_s * 2.1 + max(self._plain_s, self._fixed_s(fixed))

    def _fixed_s(self, fixed: str) -> float:
        length = int(fixed.partition(":")[2])
        drafts_s = length * self._draft_s if fixed.startswith("draft") else 0.0
        pass_s = self._model.loaded.target.cost.seconds(length + 1)
        return (pass_s + drafts_s) / _tokens_a_round(_BAD_LUCK, length)

    def tokens(self, prompts: Sequence[Prompt]) -> int:
        """For each answer, once prompts are read and every arm has warmed up."""
        warm_up = prompts[0]
        read = sum(_length(self._model, prompt) for prompt in (warm_up, *prompts))
        read_s = _READING * read * (3 * self._plain_s + 2 * self._draft_s)
        left_s = self._within_s - read_s - _FEWEST_TOKENS * len(warm_up.turns) * self._token_s
        return int(left_s / (self._token_s * sum(len(prompt.turns) for prompt in prompts)))


def best_fixed(model: Model) -> str:
    """The fixed arm that would pay most here if guesses were right as often as with good pairs."""
    drafter, cost = model.loaded.drafter, model.loaded.target.cost
    if drafter is None:
        return "ngram:8"

    def rate(length: int) -> float:
        return _tokens_a_round(_LUCK, length) / (
            cost.seconds(length + 1) + length * drafter.guess_s
        )

    return f"draft:{max(_LENGTHS, key=rate)}"


def _tokens_a_round(luck: float, length: int) -> float:
    return (1 - luck ** (length + 1)) / (1 - luck)


def _in_turns(model: Model, prompts: Sequence[Prompt]) -> list[Prompt]:
    """The shortest of each category, then the second of each, and so on."""
    known = [p for p in prompts if p.category in CATEGORIES] or list(prompts)
    by_category: dict[str, list[Prompt]] = {}
    for prompt in sorted(known, key=lambda p: _length(model, p)):
        by_category.setdefault(prompt.category, []).append(prompt)
    order = [c for c in CATEGORIES if c in by_category] or sorted(by_category)
    return [
        by_category[category][rank]
        for rank in range(_MOST_PER_CATEGORY)
        for category in order
        if rank < len(by_category[category])
    ]


def _length(model: Model, prompt: Prompt) -> int:
    return sum(model.count_tokens(turn) for turn in prompt.turns)
