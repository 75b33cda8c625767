"""Which way of guessing is chosen: the fastest, and something simpler unless more is worth it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import T1, fresh, level, recorded, usual

from edgespec.bench.recorded import Recorded
from edgespec.bench.tuning import (
    Candidate,
    Way,
    chosen,
    fastest,
    plainly,
    with_model,
    with_trees,
    without_model,
)
from edgespec.planning.cost import CostCurve
from edgespec.planning.model_source import DraftCost

CHEAP = DraftCost(guess_s=0.1 * T1, read_s=0.001 * T1)
DRAFT = Path("small.gguf")
PLAIN = Way(None, "none", None, 100.0)


def candidate(seconds: float, draft: Path | None = None, tokens: int | None = None) -> Candidate:
    return Candidate(Way(draft, "auto" if draft else "ngram", tokens, seconds), 1.0)


def test_plain_decoding_takes_a_pass_for_every_token_but_the_first() -> None:
    assert plainly([recorded(fresh(11)), recorded(fresh(6))], usual).seconds == pytest.approx(1.5)


def test_plain_passes_take_as_long_as_the_text_makes_them() -> None:
    curve = CostCurve({1: T1}, context=100, token_s=T1 / 1000)
    answer = recorded(fresh(11), prompt=fresh(1100))
    plain_s = sum(T1 * (1 + (1000 + place) / 1000) for place in range(1, 11))
    assert plainly([answer], curve).seconds == pytest.approx(plain_s)


def test_answers_of_one_token_take_no_time_by_any_way() -> None:
    found = with_model([recorded([7], [True])], usual, CHEAP, DRAFT)
    assert (found.best.seconds, found.bound_seconds) == (0.0, 0.0)


def test_a_text_that_repeats_is_best_guessed_by_the_ngram() -> None:
    best = without_model([recorded([5, 6, 7, 8, 9] * 30)], usual).best
    assert (best.draft, best.proposer) == (None, "ngram")
    assert best.seconds < 0.6 * 149 * T1


def test_a_model_that_is_right_is_best_on_fresh_text() -> None:
    answers = [recorded(fresh(150), [True] * 150)]
    with_it = with_model(answers, usual, CHEAP, DRAFT)
    without = without_model(answers, usual)
    assert with_it.draft == DRAFT
    assert with_it.bound_seconds < with_it.best.seconds < 0.7 * without.best.seconds
    assert chosen(plainly(answers, usual), [without, with_it]) == with_it.best


def test_a_fixed_length_must_be_clearly_faster_than_one_that_adapts() -> None:
    adapts, longer = (Way(DRAFT, "auto", None, seconds) for seconds in (80.0, 81.0))
    near, far, farther = (Way(DRAFT, "draft", 4, seconds) for seconds in (78.5, 77.0, 76.5))
    assert fastest([longer, adapts, near]) == adapts
    assert fastest([adapts, far]) == far
    assert fastest([adapts, far, farther]) == farther


def test_a_draft_model_must_be_worth_its_memory() -> None:
    simple = candidate(80.0)
    assert chosen(PLAIN, [simple, candidate(79.0, DRAFT)]) == simple.best
    assert chosen(PLAIN, [simple, candidate(70.0, DRAFT)]).draft == DRAFT


def test_the_faster_of_two_models_is_chosen() -> None:
    other = Path("other.gguf")
    found = chosen(PLAIN, [candidate(80.0), candidate(60.0, DRAFT), candidate(50.0, other)])
    assert found.draft == other


def test_plain_decoding_is_chosen_only_where_guessing_clearly_loses() -> None:
    assert chosen(PLAIN, [candidate(101.0)]).proposer == "ngram"
    assert chosen(PLAIN, [candidate(110.0)]).proposer == "none"


def forking() -> Recorded:
    """Behind each token one of the same two follows, and the scores name both."""
    rng, reply, near = np.random.default_rng(0), [0], [[0, 1]]
    for _ in range(300):
        ways = [(2 * reply[-1] + 1) % 37, (3 * reply[-1] + 5) % 37]
        said = int(rng.integers(2))
        reply.append(ways[said])
        near.append([ways[said], ways[1 - said]])
    scores = np.tile(np.array([-0.6, -0.8], np.float32), (len(reply), 1))
    return replace(recorded(reply), near=np.array(near, np.int32), scores=scores)


def test_what_auto_drafts_without_a_model_is_tried_where_trees_are_let() -> None:
    let, chains = (without_model([forking()], level, trees=trees) for trees in (True, False))
    assert let.best.proposer == "auto"
    assert let.bound_seconds is not None
    assert let.bound_seconds < let.best.seconds < 0.9 * chains.best.seconds
    assert without_model([forking()], usual, trees=True) == without_model([forking()], usual)


def test_scores_of_both_ways_on_make_trees_the_fastest_without_a_model() -> None:
    answer = forking()
    found, without = with_trees([answer], level), without_model([answer], level)
    assert found.best.proposer in ("tree", "recycling")
    assert found.bound_seconds is None
    assert found.best.seconds < 0.7 * without.best.seconds
    assert chosen(plainly([answer], level), [without, found]) == found.best
