"""Whether pairs of measurements agree."""

from __future__ import annotations

import random

import pytest

from edgespec.bench.agreement import Side, side


@pytest.mark.parametrize(
    ("ratios", "told"),
    [
        ([1.3, 1.5, 1.2], Side.FASTER),
        ([0.98, 1.5, 1.8], Side.FASTER),
        ([0.8, 0.7, 0.9], Side.SLOWER),
        ([0.8, 1.6, 1.1], Side.UNCLEAR),
        ([1.0, 1.05, 0.99], Side.UNCLEAR),
        ([], Side.UNCLEAR),
        ([0.95, *[1.4] * 8], Side.FASTER),
    ],
)
def test_pairs_that_contradict_each_other_are_unclear(ratios: list[float], told: Side) -> None:
    assert side(ratios) is told


@pytest.mark.parametrize("pairs", [3, 9, 21])
def test_the_same_thing_twice_is_seldom_told_apart(pairs: int) -> None:
    chance = random.Random(1)
    told = [side([chance.lognormvariate(0, 0.05) for _ in range(pairs)]) for _ in range(500)]
    assert told.count(Side.UNCLEAR) > 465
