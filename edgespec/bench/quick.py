"""A benchmark that fits into two minutes: what to leave out, by what a pass costs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgespec.api import Model

if TYPE_CHECKING:
    from edgespec.bench.prompts import Prompt

WITHIN_S = 100.0
CATEGORIES = ("code", "edit", "chat")
_FEWEST_TOKENS, _MOST_TOKENS, _MOST_PER_CATEGORY = 16, 96, 4
_SAFETY = 0.8  # of the time that is planned with; the rest is for what goes slower than measured
_LUCK = 0.7  # acceptance that the length of the fixed draft is chosen for, as good pairs have it
_LENGTHS = (2, 3, 4, 6, 8)
_READING = 0.4  # seconds of one prompt token, in plain passes: prompts are read in wide passes


@dataclass(frozen=True, slots=True)
class Quick:
    """Which arms, prompts and how many tokens fit the time."""

    arms: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    tokens: int


def quick_plan(model: Model, prompts: Sequence[Prompt], within_s: float = WITHIN_S) -> Quick:
    """As many prompts as fit, one of each category first, the shortest first."""
    arms = ("none", "auto", best_fixed(model))
    queue = _in_turns(model, prompts)
    plain_s = model.loaded.target.cost.seconds(1)
    least = min(len(queue), len({prompt.category for prompt in queue}))
    tokens, count = _FEWEST_TOKENS, least
    for candidate in range(least, len(queue) + 1):
        read_s = _READING * plain_s * sum(_length(model, p) for p in queue[:candidate])
        left_s = _SAFETY * within_s / len(arms) - read_s
        fits = int(left_s / (candidate * plain_s))
        if candidate > least and fits < _MOST_TOKENS:
            break
        tokens, count = max(_FEWEST_TOKENS, min(_MOST_TOKENS, fits)), candidate
    return Quick(arms, tuple(queue[:count]), tokens)


def best_fixed(model: Model) -> str:
    """The fixed arm that would pay most here if guesses were right as often as with good pairs."""
    drafter, cost = model.loaded.drafter, model.loaded.target.cost
    if drafter is None:
        return "ngram:8"

    def rate(length: int) -> float:
        tokens = (1 - _LUCK ** (length + 1)) / (1 - _LUCK)
        return tokens / (cost.seconds(length + 1) + length * drafter.guess_s)

    return f"draft:{max(_LENGTHS, key=rate)}"


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
