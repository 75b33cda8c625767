"""Whole answers over many seeds have the target's own law; sabotaged ones do not.

The law of what is compared is computed exactly; the p-value of what was seen must not be
absurd. Seeds are fixed, so a result never changes from run to run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from reference import Law, Outcome, Probabilities, chi_square, distribution, law
from sabotage import (
    AcceptsAlways,
    ByDepth,
    ByPosition,
    DeclaresAnotherQ,
    OneStream,
    SubtractsNothing,
    coupled,
    rejection,
)
from trials import Copy, Judged, RandomTree, unfiltered

from edgespec.decoding import accept
from edgespec.decoding.accept import Rule
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.testing import TableSession

VOCAB = 4
PROMPT = (1, 2, 3, 1, 2)
SEEDS, SABOTAGED_SEEDS = range(2500), range(1000)
FALSE_ALARM, CERTAIN = 1e-4, 1e-9
TABLE, NOISY = TableSession(VOCAB, 3), TableSession(VOCAB, 3, noise=3.0)
Make = Callable[[Request, int], Rule]

FILTERED = Sampling(1.2, top_k=3, top_p=0.97, min_p=0.02)
PENALISED = replace(unfiltered(1.1), repeat_penalty=1.3, presence_penalty=0.5, penalty_window=4)


ALL_ACCEPTED = (accepts_always := partial(rejection, rule=AcceptsAlways),)


@dataclass
class Tally:
    """What was guessed and kept while listening."""

    drafted: int = 0
    accepted: int = 0

    def first(self, n: int, request: Request, proposer: Proposer) -> Outcome:
        """The first `n` tokens of an answer; listening stops there."""
        tokens = list[int]()
        for event in speculate(TABLE, request, proposer):
            if isinstance(event, Round):
                tokens += [token.token for token in event.tokens]
                self.drafted += len(event.guesses)
                self.accepted += event.accepted
                if len(tokens) >= n:
                    break
        return tuple(tokens[:n])


def _ask(make: Make, sampling: Sampling, seed: int, prompt: Sequence[int] = PROMPT) -> Judged:
    ids = np.array(prompt, dtype=np.int32)
    return Judged(ids, replace(sampling, seed=seed), max_tokens=12, make=make)


def _p_after(sampling: Sampling) -> Callable[[Sequence[int]], Probabilities]:
    return lambda line: distribution(TABLE.row(line), line, sampling)


def _p_value(
    make: Make, sampling: Sampling, seeds: range = SEEDS, proposer: Proposer | None = None
) -> float:
    """How believable the first four tokens of many answers are: rounds of 1, 1 to 3, ... tokens."""
    tally, seen = Tally(), Counter[Outcome]()
    proposer = proposer or Copy(NOISY, 2)
    for seed in seeds:
        seen[tally.first(4, _ask(make, sampling, seed), proposer)] += 1
    assert tally.accepted > 0
    assert tally.accepted < tally.drafted or make in ALL_ACCEPTED
    return chi_square(seen, law(_p_after(sampling), PROMPT, 4))


@pytest.mark.parametrize("make", [coupled, rejection])
@pytest.mark.parametrize("sampling", [unfiltered(), FILTERED, PENALISED], ids=str)
def test_many_seeds_have_the_law_of_the_target(make: Make, sampling: Sampling) -> None:
    assert _p_value(make, sampling) > FALSE_ALARM


def test_many_seeds_have_the_law_of_the_target_with_trees() -> None:
    assert _p_value(coupled, unfiltered(), proposer=RandomTree(NOISY, 4)) > FALSE_ALARM


@pytest.mark.parametrize(
    "make",
    [
        accepts_always,
        partial(rejection, rule=SubtractsNothing),
        partial(rejection, rule=DeclaresAnotherQ),
        partial(rejection, noise=OneStream),
        partial(rejection, noise=ByDepth),
        partial(coupled, noise=ByDepth),
    ],
    ids=str,
)
def test_sabotage_is_caught(make: Make) -> None:
    assert _p_value(make, unfiltered(), SABOTAGED_SEEDS) < CERTAIN


def test_a_remainder_that_is_not_subtracted_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "_left_over", lambda p, token, q: p)
    assert _p_value(rejection, unfiltered(), SABOTAGED_SEEDS) < CERTAIN


def _next_prompt(prompt: Sequence[int], reply: Outcome) -> list[int]:
    """One token shorter, and it holds the last reply: where an early message was dropped."""
    return [*prompt[: len(prompt) - 4], *reply]


def _compared(first: Outcome, then: Outcome) -> Outcome:
    """Four tokens of six; 4096 outcomes would be too rare each."""
    return (*first[:2], *then[1:])


def _law_of_two_replies() -> Law:
    p_after, out = _p_after(unfiltered()), Counter[Outcome]()
    for first, p in law(p_after, PROMPT, 3).items():
        for then, q in law(p_after, _next_prompt(PROMPT, first), 3).items():
            out[_compared(first, then)] += p * q  # type: ignore[assignment]
    return dict(out)


def _p_value_of_conversations(make: Make) -> float:
    tally, seen = Tally(), Counter[Outcome]()
    for seed in SEEDS:
        first = tally.first(3, _ask(make, unfiltered(), seed), Copy(NOISY, 2))
        shorter = _next_prompt(PROMPT, first)
        then = tally.first(3, _ask(make, unfiltered(), seed, shorter), Copy(NOISY, 2))
        seen[_compared(first, then)] += 1
    assert 0 < tally.accepted < tally.drafted
    return chi_square(seen, _law_of_two_replies())


@pytest.mark.parametrize("make", [coupled, rejection])
def test_replies_of_one_conversation_under_one_seed_are_independent(make: Make) -> None:
    assert _p_value_of_conversations(make) > FALSE_ALARM


@pytest.mark.parametrize("make", [coupled, rejection])
def test_noise_keyed_by_position_is_caught_when_a_prompt_gets_shorter(make: Make) -> None:
    sabotaged = partial(make, noise=ByPosition)
    assert _p_value_of_conversations(sabotaged) < CERTAIN
