"""Running estimates of how likely a guess is to be accepted."""

from __future__ import annotations

import math

_FORGET = 0.97  # weight of a bucket's past at each new observation in it
_PRIOR_WEIGHT = 4.0
_MATCH_PRIORS = (0.15, 0.3, 0.5, 0.7, 0.85, 0.93, 0.95)  # match of 1, 2, 3-4, 5-8, 9-16, ...


class MatchAcceptance:
    """For n-grams: by the length of the match, which grows along the draft itself."""

    def __init__(self) -> None:
        self._accepted = [p * _PRIOR_WEIGHT for p in _MATCH_PRIORS]
        self._seen = [_PRIOR_WEIGHT] * len(_MATCH_PRIORS)

    def new_text(self) -> None:
        """Another text begins: what the last one taught counts no more than the prior."""
        for bucket, prior in enumerate(_MATCH_PRIORS):
            share = self._accepted[bucket] / self._seen[bucket]
            self._seen[bucket] = _PRIOR_WEIGHT
            self._accepted[bucket] = _PRIOR_WEIGHT * (share + prior) / 2

    def probability(self, match_length: int) -> float:
        """The share so far less half its standard error: few observations promise little."""
        bucket = _bucket(match_length)
        share, seen = self._accepted[bucket] / self._seen[bucket], self._seen[bucket]
        return max(0.0, share - 0.25 * math.sqrt(share * (1.0 - share) / seen))

    def learn(self, match_length: int, accepted: bool) -> None:
        bucket = _bucket(match_length)
        self._accepted[bucket] = self._accepted[bucket] * _FORGET + accepted
        self._seen[bucket] = self._seen[bucket] * _FORGET + 1


def _bucket(match_length: int) -> int:
    return min((max(1, match_length) - 1).bit_length(), len(_MATCH_PRIORS) - 1)


class ConfidenceAcceptance:
    """For models: a logistic curve over the drafter's own log-odds, refitted as it goes.

    Source of the one-feature logistic: the adaptive verification of vLLM 0.33. Before a guess
    is made its confidence is unknown; `typical` stands for it then.
    """

    PRIOR = 0.6

    def __init__(self) -> None:
        self._slope, self._offset = 0.7, 0.0
        self._squares = [1.0, 1.0]
        self.typical = self.PRIOR

    def probability(self, confidence: float) -> float:
        return _sigmoid(self._slope * _log_odds(confidence) + self._offset)

    def learn(self, confidence: float, accepted: bool) -> None:
        x = _log_odds(confidence)
        error = float(accepted) - self.probability(confidence)
        for n, gradient in enumerate((error * x, error)):
            self._squares[n] += gradient * gradient
        self._slope = max(0.05, self._slope + 0.3 * error * x / math.sqrt(self._squares[0]))
        self._offset += 0.3 * error / math.sqrt(self._squares[1])
        self.typical += 0.12 * (float(accepted) - self.typical)

    def new_text(self) -> None:
        """Another text begins: what was typical of the last one counts half."""
        self.typical += 0.5 * (self.PRIOR - self.typical)


def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, x))))


def _log_odds(p: float) -> float:
    p = max(1e-4, min(1 - 1e-4, p))
    return math.log(p / (1 - p))
