"""Rules and noise that are wrong on purpose: a test of a law that passes them proves nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.accept import Coupled, Guessed, Place, Rejection
from edgespec.decoding.draft import Row, Support, Tokens
from edgespec.decoding.noise import Noise
from edgespec.decoding.request import Request


class AcceptsAlways(Rejection):
    def decide(self, place: Place) -> tuple[int | None, int]:
        for child in place.draft.children(place.node):
            return child, place.draft.tokens[child]
        return Rejection.decide(self, place)


class SubtractsNothing(Rejection):
    """Draws from p itself once a guess is turned down."""

    def decide(self, place: Place) -> tuple[int | None, int]:
        child, token = Rejection.decide(self, place)
        if child is not None or not place.draft.children(place.node):
            return child, token
        return None, self._draw(self._distribution(place.scores.logits(place.node), ()), "rest", 0)


class DeclaresAnotherQ(Rejection):
    """Draws from q and says that it drew evenly."""

    def guess(self, row: Row, recent: Sequence[int], index: int) -> Guessed:
        guessed = Rejection.guess(self, row, recent, index)
        assert guessed.q is not None
        n = len(guessed.q.ids)
        return replace(guessed, q=Support(guessed.q.ids, np.full(n, 1.0 / n)))


class OneStream(Noise):
    """The coin is the number that the guess was drawn with."""

    def uniform(self, stream: str, *counters: int) -> float:
        return Noise.uniform(self, "any", *counters)


class ByDepth(Noise):
    """Every round has the same noise again."""

    def uniform(self, stream: str, *counters: int) -> float:
        return Noise.uniform(self, stream)

    def argmax(self, index: int, scores: NDArray[np.float32]) -> int:
        return Noise.argmax(self, 0, scores)


class ByPosition(Noise):
    """Keyed by the absolute position, which comes again where a later prompt is shorter.

    `reply` is the length of the prompt.
    """

    def uniform(self, stream: str, *counters: int) -> float:
        return Noise(self.seed, 0).uniform(stream, counters[-1] + self.reply)

    def argmax(self, index: int, scores: NDArray[np.float32]) -> int:
        return Noise(self.seed, 0).argmax(index + self.reply, scores)

    def gumbel(self, index: int, ids: Tokens) -> NDArray[np.float64]:
        return Noise(self.seed, 0).gumbel(index + self.reply, ids)


def noise_of(request: Request, kind: type[Noise] = Noise) -> Noise:
    """The noise of a reply: by its key, or by the length of its prompt where that is sabotaged."""
    assert request.reply is not None
    assert request.sampling.seed is not None
    key = len(request.prompt) if kind is ByPosition else request.reply.key
    return kind(request.sampling.seed, key)


def coupled(request: Request, round_number: int, noise: type[Noise] = Noise) -> Coupled:
    return Coupled(request.sampling, noise_of(request, noise))


def rejection(
    request: Request,
    round_number: int,
    rule: type[Rejection] = Rejection,
    noise: type[Noise] = Noise,
) -> Rejection:
    return rule(request.sampling, noise_of(request, noise), round_number)
