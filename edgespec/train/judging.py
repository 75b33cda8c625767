"""How many guesses a drafter gets accepted on answers it never learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.accept import Coupled
from edgespec.decoding.draft import Tokens
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.ngram import NGram
from edgespec.train.records import Record

GUESSES = 4
SURE = 3  # tokens of a match from which the n-gram goes before the drafter
_GREEDY = Sampling(0.0, seed=0)
_RULE = Coupled(_GREEDY, Noise(0, 0))

Chains = NDArray[np.int8]
"""int8 [answer, GUESSES]: at each place, which guesses of a draft are right; -1 = not guessed."""


@dataclass(frozen=True, slots=True)
class Tally:
    """Rounds of a whole answer, or of many. accepted and tested: by position in the draft."""

    rounds: int = 0
    accepted: tuple[int, ...] = (0,) * GUESSES
    tested: tuple[int, ...] = (0,) * GUESSES

    @property
    def mean(self) -> float:
        """Guesses accepted a round."""
        return sum(self.accepted) / self.rounds if self.rounds else 0.0

    def rates(self) -> list[float]:
        """How often a guess was right at each position, where it was tested."""
        return [a / t if t else 0.0 for a, t in zip(self.accepted, self.tested, strict=True)]

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.rounds + other.rounds,
            tuple(a + b for a, b in zip(self.accepted, other.accepted, strict=True)),
            tuple(a + b for a, b in zip(self.tested, other.tested, strict=True)),
        )


def walked(chains: Chains) -> Tally:
    """One answer, round by round: the accepted guesses and one token of the target's own."""
    accepted, tested = [0] * GUESSES, [0] * GUESSES
    place = rounds = 0
    while place < len(chains):
        right = 0
        for position, bit in enumerate(chains[place]):
            if bit < 0:
                break
            tested[position] += 1
            if not bit:
                break
            accepted[position] += 1
            right += 1
        place += right + 1
        rounds += 1
    return Tally(rounds, tuple(accepted), tuple(tested))


def by_model(guesses: Tokens, record: Record) -> Chains:
    """Chains of a drafter whose guess at each place, after the true text, is given.

    What it guesses behind a right guess is what it guesses after that token.
    """
    right = guesses == record.answer
    chains = np.full((len(right), GUESSES), -1, np.int8)
    for position in range(GUESSES):
        chains[: len(right) - position, position] = right[position:]
    return chains


def by_ngram(record: Record, shortest: int = 1) -> Chains:
    """Chains of the n-gram proposer, as it would draft them."""
    ngram = NGram(shortest)
    ngram.begin(Request(record.ids[: record.begun], _GREEDY, len(record.answer)))
    answer = record.answer
    chains = np.full((len(answer), GUESSES), -1, np.int8)
    for place in range(len(answer)):
        state = State(record.ids[: record.begun + place], place, _RULE)
        draft = ngram.propose(state, UpTo(GUESSES))
        told = answer[place : place + GUESSES]
        guessed = np.array(draft.tokens[: len(told)], np.int32)
        chains[place, : len(guessed)] = guessed == told[: len(guessed)]
    return chains


def first_of(first: Chains, then: Chains) -> Chains:
    """The first where it drafts at all, else the other."""
    return np.where(first[:, :1] >= 0, first, then)


def total(tallies: Sequence[Tally]) -> Tally:
    return sum(tallies, Tally())
