"""What the target thought of a place: the log-probability of a token and of the best ones."""

from __future__ import annotations

from math import log

import numpy as np

from edgespec.decoding.draft import Row
from edgespec.decoding.events import Alternative
from edgespec.decoding.sampling import best_token, best_tokens


def considered(row: Row, token: int, most: int) -> tuple[float, tuple[Alternative, ...]]:
    """The log-probability of `token`, and those of the best tokens, best first.

    Natural logarithms of the softmax at temperature 1. Of equal tokens the lower id comes first.
    Raises: BackendFailed where the best score is no finite number.
    """
    best = row[best_token(row)]
    # one pass over the vocabulary in float32 and one sum in float64; nothing is sorted whole
    zero = float(best) + log(float(np.exp(row - best).sum(dtype=np.float64)))
    others = best_tokens(row, most)
    alternatives = tuple(Alternative(int(other), float(row[other]) - zero) for other in others)
    return float(row[token]) - zero, alternatives
