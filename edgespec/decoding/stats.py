"""The figures of a run, folded from its events. CLI, chat and benchmarks share them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from edgespec.decoding.events import Event, Finished, Guess, PromptRead, Round

_ENOUGH_PLAIN_ROUNDS = 16
_NO_TIME = 0.02  # of an answer; more than that went into guesses, kept or dropped


@dataclass(frozen=True, slots=True)
class SourceStats:
    """What one proposer contributed."""

    drafted: int = 0
    tested: int = 0
    accepted: int = 0

    def plus(self, guess: Guess) -> SourceStats:
        return SourceStats(
            self.drafted + 1, self.tested + guess.tested, self.accepted + guess.accepted
        )


@dataclass(frozen=True, slots=True)
class Stats:
    """A fold over events: `stats = stats.after(event, now)`.

    Definitions. Acceptance rate: accepted / tested, where a position is tested if the target
    spoke where it stands. Tokens per round: committed tokens / verify passes, the target's own
    token included. Decode speed: tokens after the first round / seconds since the first round.
    Speed-up: decode speed / plain decode speed; that is measured in this very answer where it
    has enough plain rounds (guesses that were dropped before them are no part of plain decoding),
    else it is `calibrated_plain_speed`, measured with this model before.
    Guessed: what rounds with guesses committed, and the seconds that these rounds took.
    """

    started_s: float
    prompt_tokens: int = 0
    reused_tokens: int = 0
    completion_tokens: int = 0
    first_tokens: int = 0
    drafted: int = 0
    tested: int = 0
    accepted: int = 0
    rounds: int = 0
    tested_at: tuple[int, ...] = ()
    accepted_at: tuple[int, ...] = ()
    by_proposer: tuple[tuple[str, SourceStats], ...] = ()
    first_s: float | None = None
    last_s: float | None = None
    draft_s: float = 0.0
    verify_s: float = 0.0
    overhead_s: float = 0.0
    plain_rounds: int = 0
    plain_s: float = 0.0
    guessed_tokens: int = 0
    guessed_s: float = 0.0
    calibrated_plain_speed: float | None = None
    parked_reason: str = ""

    def after(self, event: Event, now: float) -> Stats:
        """These figures once `event` has arrived at time `now`, seconds."""
        match event:
            case PromptRead():
                return replace(self, prompt_tokens=event.total, reused_tokens=event.reused)
            case Round():
                return self._after_round(event, now)
            case Finished():
                return self

    def _after_round(self, event: Round, now: float) -> Stats:
        first, plain = self.rounds == 0, not event.guesses
        tested_at, accepted_at = _by_depth(event, self.tested_at, self.accepted_at)
        return replace(
            self,
            completion_tokens=self.completion_tokens + len(event.tokens),
            first_tokens=len(event.tokens) if first else self.first_tokens,
            drafted=self.drafted + len(event.guesses),
            tested=self.tested + len({g.parent for g in event.guesses if g.tested}),
            accepted=self.accepted + event.accepted,
            rounds=self.rounds + 1,
            tested_at=tested_at,
            accepted_at=accepted_at,
            by_proposer=_by_source(event, self.by_proposer),
            first_s=now if first else self.first_s,
            last_s=now,
            draft_s=self.draft_s + event.draft_s,
            verify_s=self.verify_s + event.verify_s,
            overhead_s=self.overhead_s + event.round_s - event.draft_s - event.verify_s,
            plain_rounds=self.plain_rounds + (plain and not first),
            plain_s=self.plain_s + (event.round_s - event.draft_s if plain and not first else 0.0),
            guessed_tokens=self.guessed_tokens + (0 if plain else len(event.tokens)),
            guessed_s=self.guessed_s + (0.0 if plain else event.round_s),
            parked_reason=event.plan if plain else "",
        )

    @property
    def acceptance_rate(self) -> float | None:
        return self.accepted / self.tested if self.tested else None

    @property
    def tokens_per_round(self) -> float | None:
        return self.completion_tokens / self.rounds if self.rounds else None

    @property
    def time_to_first_token_s(self) -> float | None:
        return None if self.first_s is None else self.first_s - self.started_s

    @property
    def tokens_per_second(self) -> float | None:
        if self.first_s is None or self.last_s is None or self.last_s <= self.first_s:
            return None
        return (self.completion_tokens - self.first_tokens) / (self.last_s - self.first_s)

    @property
    def plain_tokens_per_second(self) -> float | None:
        all_plain = not self.drafted and self.draft_s <= _NO_TIME * self.verify_s
        if all_plain and self.tokens_per_second is not None:
            return self.tokens_per_second
        if self.plain_rounds >= _ENOUGH_PLAIN_ROUNDS and self.plain_s > 0:
            return self.plain_rounds / self.plain_s
        return self.calibrated_plain_speed

    @property
    def speedup(self) -> float | None:
        if self.tokens_per_second is None or not self.plain_tokens_per_second:
            return None
        return self.tokens_per_second / self.plain_tokens_per_second

    def as_dict(self) -> dict[str, Any]:
        """The figures by name, for JSON; None where nothing was measured."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "reused_tokens": self.reused_tokens,
            "completion_tokens": self.completion_tokens,
            "drafted": self.drafted,
            "tested": self.tested,
            "accepted": self.accepted,
            "acceptance_rate": self.acceptance_rate,
            "rounds": self.rounds,
            "tokens_per_round": self.tokens_per_round,
            "tested_per_position": list(self.tested_at),
            "accepted_per_position": list(self.accepted_at),
            "by_proposer": {
                name: {"drafted": s.drafted, "tested": s.tested, "accepted": s.accepted}
                for name, s in self.by_proposer
            },
            "time_to_first_token_s": self.time_to_first_token_s,
            "tokens_per_second": self.tokens_per_second,
            "draft_s": self.draft_s,
            "verify_s": self.verify_s,
            "overhead_s": self.overhead_s,
            "plain_tokens_per_second": self.plain_tokens_per_second,
            "speedup": self.speedup,
            "parked_reason": self.parked_reason or None,
        }


def _by_depth(
    event: Round, tested_at: tuple[int, ...], accepted_at: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Positions tested and accepted at each depth; siblings share one position."""
    tested, accepted = list(tested_at), list(accepted_at)
    depths: list[int] = []
    seen: set[int] = set()
    for guess in event.guesses:
        depth = 0 if guess.parent < 0 else depths[guess.parent] + 1
        depths.append(depth)
        while len(tested) <= depth:
            tested.append(0)
            accepted.append(0)
        if guess.tested and guess.parent not in seen:
            seen.add(guess.parent)
            tested[depth] += 1
        accepted[depth] += guess.accepted
    return tuple(tested), tuple(accepted)


def _by_source(
    event: Round, known: tuple[tuple[str, SourceStats], ...]
) -> tuple[tuple[str, SourceStats], ...]:
    by_source = dict(known)
    for guess in event.guesses:
        by_source[guess.source] = by_source.get(guess.source, SourceStats()).plus(guess)
    return tuple(by_source.items())
