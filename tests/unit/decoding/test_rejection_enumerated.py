"""The rejection rule's law, from its own arithmetic, against the exact one to 1e-9.

The rule's random numbers are put on a dial: turning the dial finds where its answer changes, and
so the probability of every answer, without a single random draw.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import pytest
from reference import Outcome, Probabilities, law
from sabotage import AcceptsAlways, DeclaresAnotherQ, SubtractsNothing

from edgespec.decoding.accept import Guessed, Place, Rejection
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Support
from edgespec.decoding.noise import Noise
from edgespec.decoding.sampling import Sampling
from edgespec.testing import TableScores, TableSession

PROMPT = (1, 2, 0)
ALMOST_ONE = float(np.nextafter(1.0, 0.0))
VOCAB = 3


@dataclass
class Dial:
    """Noise that says what it is told to."""

    at: dict[str, float] = field(default_factory=dict)

    def uniform(self, stream: str, *counters: int) -> float:
        return self.at[stream]


def measured(answer_at: Callable[[float], int]) -> dict[int, float]:
    """How much of (0, 1) gives each answer; answers rise with the dial."""
    widths, start = dict[int, float](), 0.0
    while start < ALMOST_ONE:
        answer = answer_at(start or 1e-300)
        low, high = start, 1.0
        while high - low > 1e-15:
            middle = (low + high) / 2
            low, high = (middle, high) if answer_at(middle) == answer else (low, middle)
        end = 1.0 if answer_at(ALMOST_ONE) == answer else high
        widths[answer] = widths.get(answer, 0.0) + end - start
        start = end
    return widths


@dataclass
class Enumeration:
    """One round of `length` guesses by a noisy copy, then the target alone up to length + 1."""

    target: TableSession
    copy: TableSession
    rule: type[Rejection]
    sampling: Sampling
    length: int = 2
    accepted: float = 0.0

    def law(self) -> dict[Outcome, float]:
        out: Counter[Outcome] = Counter()
        for tokens, q, weight in self._drafts():
            self._judge(tokens, q, weight, out)
        return dict(out)

    def _with(self, dial: dict[str, float]) -> Rejection:
        return self.rule(self.sampling, cast(Noise, Dial(dial)))

    def _drafts(self) -> list[tuple[Outcome, tuple[Support | None, ...], float]]:
        drafts: list[tuple[Outcome, tuple[Support | None, ...], float]] = [((), (), 1.0)]
        for _ in range(self.length):
            longer = []
            for tokens, q, weight in drafts:
                line = [*PROMPT, *tokens]
                row = self.copy.row(line)

                def token_at(u: float, row: object = row, line: list[int] = line) -> int:
                    return self._with({"draft": u}).guess(row, line, 0).token  # type: ignore[arg-type]

                declared = self._with({"draft": 0.5}).guess(row, line, 0).q
                for token, p in measured(token_at).items():
                    longer.append(((*tokens, token), (*q, declared), weight * p))
            drafts = longer
        return drafts

    def _judge(
        self, tokens: Outcome, q: tuple[Support | None, ...], weight: float, out: Counter[Outcome]
    ) -> None:
        draft = Draft.chain(tokens, "copy", q)
        for depth in range(self.length):
            kept = tokens[:depth]
            by_coin = measured(lambda u, k=kept: self._child(draft, k, {"coin": u, "rest": 0.5}))
            # children rise with the coin: accepted is node `depth`, turned down is `length`
            turned_down = weight * by_coin.get(self.length, 0.0)
            if turned_down > 0:
                dial = {"coin": ALMOST_ONE}
                rest = measured(lambda u, k=kept, d=dial: self._token(draft, k, {**d, "rest": u}))
                for token, p in rest.items():
                    self._alone((*kept, token), turned_down * p, out)
            weight *= by_coin.get(depth, 0.0)
            self.accepted += weight
        self._alone(tokens, weight, out)

    def _alone(self, tokens: Outcome, weight: float, out: Counter[Outcome]) -> None:
        if len(tokens) > self.length:
            out[tokens] += weight
            return
        for token, p in measured(lambda u: self._token(EMPTY, tokens, {"own": u})).items():
            self._alone((*tokens, token), weight * p, out)

    def _decide(
        self, draft: Draft, kept: Outcome, dial: dict[str, float]
    ) -> tuple[int | None, int]:
        node = len(kept) - 1 if draft else ROOT
        line = [*PROMPT, *kept]
        scores = TableScores({node: self.target.row(line)})
        return self._with(dial).decide(Place(draft, scores, node, line, 0))

    def _child(self, draft: Draft, kept: Outcome, dial: dict[str, float]) -> int:
        child, _ = self._decide(draft, kept, dial)
        return self.length if child is None else child

    def _token(self, draft: Draft, kept: Outcome, dial: dict[str, float]) -> int:
        return self._decide(draft, kept, dial)[1]


def _p(table: TableSession, sampling: Sampling, line: Sequence[int]) -> Probabilities:
    """The distribution that the filters leave, over the whole vocabulary."""
    support = sampling.support(sampling.tempered(sampling.shaped(table.row(line), line)))
    p = np.zeros(VOCAB)
    p[support.ids] = support.p
    return p


def _distance(enumeration: Enumeration) -> float:
    """Total variation to the exact law."""
    found = enumeration.law()
    exact = law(
        lambda line: _p(enumeration.target, enumeration.sampling, line),
        PROMPT,
        enumeration.length + 1,
    )
    return 0.5 * sum(abs(found.get(k, 0.0) - exact.get(k, 0.0)) for k in found.keys() | exact)


SAMPLINGS = {
    "temperature": Sampling(1.0, top_k=0, top_p=1.0, min_p=0.0),
    "filters": Sampling(1.3, top_k=2, top_p=0.95, min_p=0.01),
    "penalties": Sampling(0.9, 0, 1.0, 0.0, repeat_penalty=1.4, presence_penalty=0.3),
}


@pytest.mark.parametrize("name", SAMPLINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_rejection_has_the_exact_law(name: str, seed: int) -> None:
    target, copy = TableSession(VOCAB, seed), TableSession(VOCAB, seed, noise=1.0)
    enumeration = Enumeration(target, copy, Rejection, SAMPLINGS[name])
    assert _distance(enumeration) < 1e-9
    assert 0.1 < enumeration.accepted / enumeration.length < 0.99


@pytest.mark.parametrize("wrong", [AcceptsAlways, SubtractsNothing, DeclaresAnotherQ])
def test_a_sabotaged_rule_has_another_law(wrong: type[Rejection]) -> None:
    target, copy = TableSession(VOCAB, 0), TableSession(VOCAB, 0, noise=1.0)
    assert _distance(Enumeration(target, copy, wrong, SAMPLINGS["temperature"])) > 0.005


def test_a_guess_without_a_q_is_judged_exactly_but_accepted_less() -> None:
    """However a guess was found: as long as it is not drawn with the coin, the law holds."""

    class Certain(Rejection):
        def guess(self, row: Row, recent: Sequence[int], index: int) -> Guessed:
            return replace(Rejection.guess(self, row, recent, index), q=None)

    target, copy = TableSession(VOCAB, 0), TableSession(VOCAB, 0, noise=1.0)
    certain = Enumeration(target, copy, Certain, SAMPLINGS["temperature"])
    drawn = Enumeration(target, copy, Rejection, SAMPLINGS["temperature"])
    assert _distance(certain) < 1e-9
    assert _distance(drawn) < 1e-9
    assert 0 < certain.accepted < drawn.accepted


def test_acceptance_is_one_less_the_distance_of_p_and_q() -> None:
    """Leviathan 2023, theorem 3.5: no rule for single draws can accept more often."""
    target, copy = TableSession(VOCAB, 0), TableSession(VOCAB, 0, noise=1.0)
    sampling = SAMPLINGS["temperature"]
    enumeration = Enumeration(target, copy, Rejection, sampling, length=1)
    assert _distance(enumeration) < 1e-9
    p, q = (_p(table, sampling, PROMPT) for table in (target, copy))
    assert enumeration.accepted == pytest.approx(float(np.minimum(p, q).sum()), abs=1e-9)


def test_a_token_that_neither_side_would_say_is_never_accepted() -> None:
    row = np.array([0.0, 5.0, 1.0], dtype=np.float32)
    q = Support(np.array([1], dtype=np.int32), np.ones(1))
    rule = Rejection(Sampling(1.0, top_k=1), Noise(1, 2))
    place = Place(Draft.chain([0], "odd", [q]), TableScores({ROOT: row}), ROOT, (), 0)
    assert rule.decide(place) == (None, 1)


def test_another_round_draws_anew_at_the_same_place() -> None:
    row, sampling = np.zeros(100, dtype=np.float32), Sampling(1.0, 0, 1.0, 0.0)
    drawn = {Rejection(sampling, Noise(1, 2), n).guess(row, (), 7).token for n in range(20)}
    assert len(drawn) > 10
