"""Whether paired measurements agree that one way is faster than another."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import log, sqrt
from statistics import fmean, median, stdev

PAYS = 1.03  # a speed-up below is within the noise of a quiet machine
MUCH = 1.10  # half of the pairs above this carry the others, where none of them speaks against it
_ERRORS = 2.5  # standard errors of the mean that no chance explains
_FEWEST_PAIRS = 6  # fewer tell no standard error


class Side(Enum):
    """On which side of no difference the pairs are."""

    FASTER = auto()
    SLOWER = auto()
    UNCLEAR = auto()


def side(ratios: Sequence[float]) -> Side:
    """ratios: of speeds that were measured at the same place: one turn of one prompt in one run."""
    if _agree(ratios):
        return Side.FASTER
    return Side.SLOWER if _agree([1 / ratio for ratio in ratios]) else Side.UNCLEAR


def _agree(ratios: Sequence[float]) -> bool:
    if not ratios:
        return False
    lowest = min(ratios)
    if lowest >= PAYS or (median(ratios) >= MUCH and lowest >= 1 / PAYS):
        return True
    if len(ratios) < _FEWEST_PAIRS:
        return False
    logs = [log(ratio) for ratio in ratios]
    return fmean(logs) > max(log(PAYS), _ERRORS * stdev(logs) / sqrt(len(logs)))
