"""What is asked for: a prompt, a way to choose tokens, and when to stop."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

import numpy as np

from edgespec.decoding.accept import Coupled, Rejection
from edgespec.decoding.draft import Tokens
from edgespec.decoding.noise import Noise, reply_key
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput


class StopCheck(Protocol):
    """Looks for stop sequences; the text layer provides it, since tokens alone cannot tell."""

    def first_stop(self, tokens: Sequence[int]) -> int | None:
        """How many of these new tokens to keep, the stop included; None when none stops.

        Called once a round with everything the round would commit, in order.
        """
        ...


class NoStops:
    def first_stop(self, tokens: Sequence[int]) -> int | None:
        return None


class RuleName(StrEnum):
    COUPLED = "coupled"
    REJECTION = "rejection"


@dataclass(frozen=True, slots=True)
class Reply:
    """Which answer this is, for the noise. Kept when a cut answer is continued.

    key: digest of the prompt at the reply's start. start: index of the next token in the reply.
    branch: number of a regenerated answer or of one of several.
    """

    key: int
    start: int = 0
    branch: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to make.

    prompt: token ids, int32 [n]. prediction: text the answer may repeat, as ids; a source of
    guesses only. reply: None for a new answer. alternatives: how many of the best tokens
    each place is told with; 0 = no log-probabilities either.
    """

    prompt: Tokens
    sampling: Sampling
    max_tokens: int
    end_tokens: Collection[int] = ()
    stops: StopCheck = field(default_factory=NoStops)
    prediction: Sequence[int] = ()
    reply: Reply | None = None
    rule: RuleName = RuleName.COUPLED
    alternatives: int = 0

    def __post_init__(self) -> None:
        if not len(self.prompt):
            raise BadInput("The prompt is empty; give the model at least one token to answer.")
        if self.max_tokens < 1:
            raise BadInput(f"max_tokens is {self.max_tokens}; it must be at least 1.")

    def seeded(self) -> Request:
        """This request with every choice made: a seed if it had none, and its reply key."""
        seed = self.sampling.seed
        sampling = replace(self.sampling, seed=secrets.randbits(32) if seed is None else seed)
        reply = self.reply or Reply(reply_key(np.asarray(self.prompt, dtype=np.int32)))
        return replace(self, sampling=sampling, reply=reply)

    def rule_for(self, round_number: int, *, trees: bool = True) -> Coupled | Rejection:
        """The acceptance rule for one round. trees: whether the session takes them."""
        reply, seed = self.reply, self.sampling.seed
        assert reply is not None, "rule_for() needs a seeded() request"
        assert seed is not None, "rule_for() needs a seeded() request"
        noise = Noise(seed, reply.key, reply.branch)
        if self.rule is RuleName.COUPLED:
            return Coupled(self.sampling, noise, trees=trees)
        return Rejection(self.sampling, noise, round_number)
