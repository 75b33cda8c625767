"""Estimates of acceptance find the rate that is there, and follow it when it changes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from edgespec.planning.acceptance import ConfidenceAcceptance, MatchAcceptance
from edgespec.proposers.ngram import Match


def _chance(luck: MatchAcceptance, match: Match) -> float:
    return luck.chances(match, 1)[0]


def _alone(length: int) -> Match:
    return Match(place=0, length=length, places=1, agreeing=1)


@pytest.mark.parametrize("truth", [0.05, 0.4, 0.95])
@pytest.mark.parametrize("length", [1, 3, 20])
def test_matches_of_one_length_converge_to_their_share_of_right_guesses(
    length: int, truth: float
) -> None:
    luck, rng = MatchAcceptance(), np.random.default_rng(0)
    seen = []
    for _ in range(400):
        luck.learn(_alone(length), [bool(rng.random() < truth)])
        seen.append(_chance(luck, _alone(length)))
    assert np.mean(seen[200:]) == pytest.approx(truth, abs=0.06)
    assert all(0 <= p <= 1 for p in seen)


def test_longer_matches_are_trusted_more_before_anything_is_known() -> None:
    luck = MatchAcceptance()
    chances = [_chance(luck, _alone(n)) for n in range(1, 65)]
    assert chances == sorted(chances)
    assert 0 < chances[0] < 0.5 < chances[-1] < 1


def test_a_draft_is_trusted_more_the_further_it_goes_if_all_before_was_right() -> None:
    luck = MatchAcceptance()
    chances = luck.chances(_alone(2), 20)
    assert chances == sorted(chances)
    assert chances[6] == pytest.approx(_chance(luck, _alone(8)))


def test_places_that_agree_are_trusted_and_places_that_differ_are_not() -> None:
    luck = MatchAcceptance()
    confirmed, contested = Match(0, 2, 3, 3), Match(0, 2, 3, 2)
    assert _chance(luck, confirmed) > _chance(luck, _alone(2)) + 0.1
    assert _chance(luck, contested) < _chance(luck, _alone(2)) - 0.1


def test_what_one_length_teaches_moves_the_others_too_but_less() -> None:
    luck = MatchAcceptance()
    before = _chance(luck, _alone(2))
    for _ in range(5):
        luck.learn(_alone(8), [False])
    assert _chance(luck, _alone(8)) < 0.5
    assert _chance(luck, _alone(2)) < before


def test_a_new_text_starts_from_what_texts_are_like() -> None:
    luck = MatchAcceptance()
    for _ in range(50):
        luck.learn(_alone(3), [True, True, False])
    luck.new_text()
    assert luck.chances(_alone(3), 5) == MatchAcceptance().chances(_alone(3), 5)


def test_a_change_of_luck_is_followed_within_fifty_guesses() -> None:
    luck = MatchAcceptance()
    for _ in range(300):
        luck.learn(_alone(4), [True])
    for _ in range(50):
        luck.learn(_alone(4), [False])
    assert _chance(luck, _alone(4)) < 0.3


def _honest(confidence: float) -> float:
    return confidence


def _boastful(confidence: float) -> float:
    """Right far less often than it says."""
    odds = math.log(confidence / (1 - confidence))
    return 1 / (1 + math.exp(-(0.8 * odds - 1.5)))


@pytest.mark.parametrize("truth", [_honest, _boastful])
def test_the_curve_over_confidence_converges_to_the_truth(truth: object) -> None:
    luck, rng = ConfidenceAcceptance(), np.random.default_rng(0)
    for _ in range(6000):
        confidence = float(rng.uniform(0.05, 0.98))
        luck.learn(confidence, bool(rng.random() < truth(confidence)))  # type: ignore[operator]
    for confidence in (0.2, 0.5, 0.8, 0.95):
        expected = truth(confidence)  # type: ignore[operator]
        assert luck.probability(confidence) == pytest.approx(expected, abs=0.1)


def test_more_confidence_is_never_less_trusted() -> None:
    """Even where the drafter is right when it doubts and wrong when it is sure."""
    luck, rng = ConfidenceAcceptance(), np.random.default_rng(0)
    for _ in range(500):
        confidence = float(rng.uniform(0, 1))
        luck.learn(confidence, confidence < 0.5)
    chances = [luck.probability(c) for c in np.linspace(0, 1, 50)]
    assert chances == sorted(chances)
    assert all(0 < p < 1 for p in chances)


@pytest.mark.parametrize("truth", [0.1, 0.9])
def test_typical_luck_is_found_in_thirty_guesses_and_followed_when_it_changes(truth: float) -> None:
    luck, rng, seen = ConfidenceAcceptance(), np.random.default_rng(0), list[float]()
    for _ in range(400):
        luck.learn(0.7, bool(rng.random() < truth))
        seen.append(luck.typical)
    assert abs(seen[30] - truth) < 0.25
    assert np.mean(seen[100:]) == pytest.approx(truth, abs=0.05)
    for _ in range(40):
        luck.learn(0.7, truth < 0.5)
    assert abs(luck.typical - truth) > 0.5


def test_a_new_text_forgets_half_of_what_was_typical() -> None:
    luck = ConfidenceAcceptance()
    for _ in range(200):
        luck.learn(0.7, True)
    luck.new_text()
    assert luck.typical == pytest.approx((1 + ConfidenceAcceptance.PRIOR) / 2, abs=0.01)
