"""Under the coupled rule the text is the plain text, whoever drafts and however much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from answer_trials import Told
from trials import Copy, RandomTree, Script, V, Wrong, answer, ask

from edgespec.decoding.proposer import Proposer
from edgespec.decoding.sampling import Sampling
from edgespec.testing import TableSession

SEEDS = range(20)
LENGTHS = (0, 1, 3, 8, 16)
NOISE = 1.5

Make = Callable[[int, int, list[int]], Proposer]
DRAFTERS: dict[str, Make] = {
    "noisy copy": lambda seed, k, truth: Copy(TableSession(V, seed, noise=NOISE), k),
    "random tree": lambda seed, k, truth: RandomTree(TableSession(V, seed, noise=NOISE), k, seed),
    "always wrong": lambda seed, k, truth: Wrong(TableSession(V, seed), k),
    "same table": lambda seed, k, truth: Copy(TableSession(V, seed), k),
    "written down": lambda seed, k, truth: Script([*truth, 0, 1, 2, 3], k),
}
BOTH = (False, True)


def _sampling(temperature: float, *, penalised: bool, filtered: bool, seed: int) -> Sampling:
    off = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
    sampling = Sampling(temperature, seed=seed, **({"top_k": 5, "top_p": 0.9} if filtered else off))
    if not penalised:
        return sampling
    return replace(
        sampling,
        repeat_penalty=1.3,
        presence_penalty=0.4,
        frequency_penalty=0.2,
        penalty_window=9,
        logit_bias={2: 1.5, 4: -2.0},
    )


def _never_vacuous(drafter: str, runs: list[Told]) -> None:
    drafted, accepted = sum(a.drafted for a in runs), sum(a.accepted for a in runs)
    assert drafted > 0
    if drafter == "always wrong":
        assert accepted == 0
    elif drafter in ("noisy copy", "random tree"):
        assert 0 < accepted < drafted
    else:
        assert accepted == drafted


@pytest.mark.parametrize("filtered", BOTH, ids=("all tokens", "filtered"))
@pytest.mark.parametrize("penalised", BOTH, ids=("as scored", "penalised"))
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.3])
def test_text_is_the_plain_text_token_for_token(
    temperature: float, penalised: bool, filtered: bool
) -> None:
    runs: dict[str, list[Told]] = {name: [] for name in DRAFTERS}
    for seed in SEEDS:
        sampling = _sampling(temperature, penalised=penalised, filtered=filtered, seed=seed)
        target, request = TableSession(V, seed), ask(sampling)
        plain = answer(target, request)
        assert len(plain.tokens) == request.max_tokens
        for name, make in DRAFTERS.items():
            for length in LENGTHS:
                fast = answer(target, request, make(seed, length, plain.tokens))
                assert fast.tokens == plain.tokens, (name, length, seed)
                assert fast.why == plain.why
                assert not fast.notes
                runs[name].append(fast)
    for name, answers in runs.items():
        _never_vacuous(name, answers)


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_text_ends_at_the_plain_end_token_even_if_more_was_guessed(drafter: str) -> None:
    runs, cut_short = [], 0
    for seed in SEEDS:
        target = TableSession(V, seed)
        request = ask(_sampling(1.0, penalised=False, filtered=True, seed=seed))
        whole = answer(target, request).tokens
        ended = replace(request, end_tokens=(whole[12],))
        plain = answer(target, ended)
        assert plain.tokens == whole[: whole.index(whole[12]) + 1]
        for length in LENGTHS:
            fast = answer(target, ended, DRAFTERS[drafter](seed, length, whole))
            assert (fast.tokens, fast.why) == (plain.tokens, plain.why)
            runs.append(fast)
            last = fast.rounds[-1]
            cut_short += len(last.guesses) > len(last.tokens)
    assert sum(a.drafted for a in runs) > 0
    assert drafter == "always wrong" or sum(a.accepted for a in runs) > 0
    assert cut_short > 0  # guesses beyond the end token were on the table


def test_a_better_copy_is_agreed_with_more_often() -> None:
    """The shared noise is what makes a drafter guess well: acceptance falls with its error."""
    rates = []
    for noise in (0.0, 0.5, 2.0, 8.0):
        drafted = accepted = 0
        for seed in SEEDS:
            request = ask(_sampling(1.0, penalised=False, filtered=False, seed=seed))
            drafter = Copy(TableSession(V, seed, noise=noise), 1)
            told = answer(TableSession(V, seed), request, drafter)
            drafted, accepted = drafted + told.drafted, accepted + told.accepted
        rates.append(accepted / drafted)
    assert rates[0] == 1.0
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] > 1 / V
