"""One line about how an answer went."""

from __future__ import annotations

from edgespec.cli.answer import Answer
from edgespec.decoding.events import Stop
from edgespec.decoding.stats import Stats

_ENDS = {
    Stop.LENGTH: "cut at the token limit",
    Stop.CONTEXT: "cut because the context is full",
    Stop.CANCELLED: "stopped",
}


def summary(answer: Answer) -> str:
    """Speed, what guessing brought, what was chosen, and the end if it was not the model's."""
    stats = answer.stats
    parts = [f"{stats.completion_tokens} tokens", _speed(stats)]
    if stats.drafted:
        parts.append(f"{stats.tokens_per_round:.1f} tokens per round")
    if stats.acceptance_rate is not None:
        parts.append(
            f"{stats.accepted} of {stats.tested} tested guesses accepted"
            f" ({stats.acceptance_rate:.0%})"
        )
    parts += [answer.plan, _ENDS.get(answer.why, "") if answer.why else ""]
    return ", ".join(part for part in parts if part)


def _speed(stats: Stats) -> str:
    if stats.tokens_per_second is None:
        return ""
    speed = f"{stats.tokens_per_second:.1f} tokens/s"
    if stats.speedup is None:
        return speed
    return f"{speed} ({stats.speedup:.2f} times the plain {stats.plain_tokens_per_second:.1f})"
