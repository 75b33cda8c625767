"""Running estimates of how likely a guess is to be accepted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.proposers.ngram import Match

_LONGEST = 6.0  # log2 of the match length beyond which nothing is gained
_MEAN = (-0.95, 0.85, 1.2, -0.95, 0.25)  # of the weights; see docs/decisions/007
_DEVIATION = (1.0, 0.6, 0.3, 0.3, 0.3)
_DRIFT = 0.04  # variance that the first weight gains at each place: a text changes its character

_PRIOR_GUESSES = 10.0  # that the prior of a model's luck counts as
_SLOWEST = 0.03  # weight of the latest guess in what is typical, once much is known
_TENTHS = 10
_WORD, _FADING = 12.0, 0.99  # guesses that a stated chance counts as; of what was seen, at each one


class MatchAcceptance:
    """For n-grams: a logistic curve over what is known of a match, fitted to each text anew.

    Known are its length, which grows along the draft itself; whether the other places that match
    as well confirm the next token or contest it; and whether it goes on with a copy. The weights
    are Gaussian, so that a text that has just begun promises little.
    Source: the extended Kalman filter for logistic regression.
    """

    def __init__(self) -> None:
        self.new_text()

    def new_text(self) -> None:
        self._mean = np.array(_MEAN)
        self._covariance = np.diag(np.square(_DEVIATION))

    def chances(self, match: Match, guesses: int) -> list[float]:
        """For each guess of a draft, how likely it is right if all before it are."""
        features = _features(match, guesses)
        variance = ((features @ self._covariance) * features).sum(axis=1)
        likely = (features @ self._mean) / np.sqrt(1.0 + np.pi / 8.0 * variance)
        chances: list[float] = (1.0 / (1.0 + np.exp(-likely))).tolist()
        return chances

    def learn(self, match: Match, right: Sequence[bool]) -> None:
        """Guesses of one draft in a row, as far as they were tested."""
        if not right:
            return
        self._covariance[0, 0] += _DRIFT
        for features, accepted in zip(_features(match, len(right)), right, strict=True):
            chance = _sigmoid(float(features @ self._mean))
            information = chance * (1.0 - chance)
            towards = self._covariance @ features
            gain = 1.0 / (1.0 + information * float(features @ towards))
            self._covariance -= information * gain * np.outer(towards, towards)
            self._mean += gain * (accepted - chance) * towards


def _features(match: Match, guesses: int) -> NDArray[np.float64]:
    """float64 [guesses, 5], in the order of the weights."""
    features = np.zeros((guesses, len(_MEAN)))
    features[:, 0] = 1.0
    features[:, 1] = np.minimum(_LONGEST, np.log2(match.length + np.arange(guesses)))
    features[0, 2], features[0, 3] = match.confirmed, match.contested
    features[:, 4] = match.near
    return features


class ConfidenceAcceptance:
    """For models: a logistic curve over the drafter's own log-odds, refitted as it goes.

    Source of the one-feature logistic: the adaptive verification of vLLM 0.33. Before a guess
    is made its confidence is unknown; `typical` stands for it then.
    """

    PRIOR = 0.7

    def __init__(self) -> None:
        self._slope, self._offset = 0.95, 0.4
        self._squares = [1.0, 1.0]
        self.typical, self._seen = self.PRIOR, _PRIOR_GUESSES

    def probability(self, confidence: float) -> float:
        return _sigmoid(self._slope * _log_odds(confidence) + self._offset)

    def learn(self, confidence: float, accepted: bool) -> None:
        x = _log_odds(confidence)
        error = float(accepted) - self.probability(confidence)
        for n, gradient in enumerate((error * x, error)):
            self._squares[n] += gradient * gradient
        self._slope = max(0.05, self._slope + 0.3 * error * x / math.sqrt(self._squares[0]))
        self._offset += 0.3 * error / math.sqrt(self._squares[1])
        self._seen += 1.0
        self.typical += max(_SLOWEST, 1.0 / self._seen) * (float(accepted) - self.typical)

    def new_text(self) -> None:
        """Another text begins: what was typical of the last one counts half."""
        self.typical += 0.5 * (self.PRIOR - self.typical)
        self._seen = _PRIOR_GUESSES


class StatedAcceptance:
    """For proposers that state a chance: how often guesses of about that chance were right.

    Counted apart for each tenth, so that the many unlikely guesses of a tree say nothing about the
    few likely ones; a tenth that is little known is taken at its word.
    """

    def __init__(self) -> None:
        self._asked, self._right = [0.0] * _TENTHS, [0.0] * _TENTHS

    def probability(self, stated: float) -> float:
        tenth = _tenth(stated)
        known = self._asked[tenth] + _WORD
        return (self._right[tenth] + _WORD * stated) / known

    def learn(self, stated: float, accepted: bool) -> None:
        tenth = _tenth(stated)
        self._asked[tenth] = _FADING * self._asked[tenth] + 1.0
        self._right[tenth] = _FADING * self._right[tenth] + accepted

    def new_text(self) -> None:
        """Another text begins: what was seen counts half."""
        self._asked = [n / 2 for n in self._asked]
        self._right = [n / 2 for n in self._right]


def _tenth(stated: float) -> int:
    return min(_TENTHS - 1, int(_TENTHS * stated))


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, x))))


def _log_odds(p: float) -> float:
    p = max(1e-4, min(1 - 1e-4, p))
    return math.log(p / (1 - p))
