"""A draft model's second thoughts are verified where rows are cheap, and cost nothing elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from simulator import T1, VOCAB, Guesses, Run, curve, flat, linear, machine_for, random_text, run

from edgespec.bench.replay import Cost, Machine
from edgespec.decoding.accept import Guessed
from edgespec.decoding.draft import Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.planning.beside import Alone, Beside, Siblings
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.model_source import DraftCost, ModelSource
from edgespec.planning.planner import Auto
from edgespec.planning.sources import NGramSource, Offer
from edgespec.proposers.draft_model import DraftTiming, SmallModel
from edgespec.proposers.model_tree import Branching, ModelTree
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

TOKENS = 1000
LEFT = (
    0.27,
    0.2,
    0.15,
)  # of what a guess leaves, what the next one takes; as real drafters have it
Kind = Callable[[], Beside]


class Ranked(Guesses):
    """Guesses of which the first is right this often, and the others as often as they state.

    honest: whether the others are ever right at all.
    """

    def __init__(
        self, machine: Machine, often: float, guess_s: float, *, honest: bool = True
    ) -> None:
        super().__init__(machine, lambda _: often, guess_s)
        self._often, self._honest = often, honest

    def propose(self, state: State, budget: Budget) -> Draft:
        self.confidences, self.others = [], []
        guesses, others, started = list[int](), list[list[Guessed]](), self._machine.now
        while len(guesses) < budget.nodes and budget.another(self.confidences):
            self._machine.now += self._guess_s
            truth = self._machine.text[len(state.tokens) + len(guesses)]
            first, *rest = self._place(truth)
            guesses.append(first.token)
            self.confidences.append(first.confidence)
            others.append(rest)
        self.others = others
        self.timing = DraftTiming(len(guesses), 1, self._guess_s, self._machine.now - started)
        self._reads(len(state.tokens), guesses)
        return Draft.chain(guesses, "draft")

    def _place(self, truth: int) -> list[Guessed]:
        share = [float(self._rng.beta(1.2 * self._often, 1.2 * (1 - self._often)))]
        for part in LEFT:
            share.append((1 - sum(share)) * part)
        share.sort(reverse=True)
        right = int(np.searchsorted(np.cumsum(share), self._rng.random()))
        if right and not self._honest:
            right = -1
        wrong = [(truth + 1 + rank) % VOCAB for rank in range(len(share))]
        tokens = [truth if rank == right else wrong[rank] for rank in range(len(share))]
        return [Guessed(t, p) for t, p in zip(tokens, share, strict=True)]


def rows(four: float) -> Cost:
    """Four rows cost so many plain passes."""
    return lambda n: T1 * (1 + (four - 1) / 3 * (n - 1))


def _told(kind: Kind, cost: Cost, often: float, guess: float, *, honest: bool = True) -> Run:
    """guess: plain passes that one takes."""
    machine, costs = machine_for(cost, tokens=TOKENS), curve(cost)
    drafter = Ranked(machine, often, guess * T1, honest=honest)
    source = ModelSource(drafter, costs, DraftCost(guess * T1), None, kind())
    return run(machine, Auto([source], costs), TOKENS)


def _gain(cost: Cost, often: float, guess: float) -> float:
    chain, tree = (_told(kind, cost, often, guess).relative for kind in (Alone, Siblings))
    return chain / tree - 1


OFTEN, GUESS = (0.3, 0.45, 0.8), (0.006, 0.1)


@pytest.mark.parametrize(("four", "least"), [(1.02, 0.08), (1.1, 0.03), (1.2, 0.01), (1.3, 0.0)])
def test_siblings_win_the_more_the_cheaper_rows_are_and_lose_nowhere(
    four: float, least: float
) -> None:
    gains = [_gain(rows(four), often, guess) for often in OFTEN for guess in GUESS]
    assert sum(gains) / len(gains) > least
    assert min(gains) > -0.02


@pytest.mark.parametrize("four", [1.6, 2.0])
def test_where_rows_are_dear_siblings_are_left_out(four: float) -> None:
    chain, tree = (_told(kind, rows(four), 0.45, 0.03) for kind in (Alone, Siblings))
    assert tree.drafted(0, TOKENS) > 0
    assert tree.relative < 1.01 * chain.relative
    assert sum(_siblings(round_) for round_ in tree.rounds) < 0.02 * len(tree.rounds)


def _siblings(round_: Round) -> int:
    return sum(guess.parent != n - 1 for n, guess in enumerate(round_.guesses))


@pytest.mark.parametrize("guess", GUESS)
@pytest.mark.parametrize("often", OFTEN)
def test_where_each_row_costs_a_pass_neither_guess_nor_sibling_pays(
    often: float, guess: float
) -> None:
    told = _told(Siblings, linear, often, guess)
    assert told.relative < 1.02
    assert told.drafted(0, TOKENS) < 0.1


@pytest.mark.parametrize("four", [1.02, 1.2])
def test_siblings_that_are_never_right_are_found_out(four: float) -> None:
    chain, tree = (_told(kind, rows(four), 0.45, 0.03, honest=False) for kind in (Alone, Siblings))
    assert tree.relative < 1.02 * chain.relative
    early, late = (tree.rounds[at : at + 100] for at in (0, 300))
    assert sum(map(_siblings, late)) < 0.7 * sum(map(_siblings, early))


def test_an_ngram_carries_on_the_chain_and_not_its_siblings() -> None:
    """Half of the text repeats, so that both have something to say."""
    text = random_text(60) * 12
    machine, costs = machine_for(flat, text), curve(flat)
    ngram, drafter = NGramSource(costs), Ranked(machine, 0.6, 0.01 * T1)
    model = ModelSource(drafter, costs, DraftCost(0.01 * T1), ngram, Siblings())
    told = run(machine, Auto([Asked(ngram), model], costs), 600)
    assert not [round_.note for round_ in told.rounds if round_.note]
    carried = [r for r in told.rounds if {g.source for g in r.guesses} == {"draft", "ngram"}]
    assert any(_siblings(round_) for round_ in carried)
    for round_ in carried:
        tail = [n for n, guess in enumerate(round_.guesses) if guess.source == "ngram"]
        above = [round_.guesses[n].parent for n in tail]
        assert tail == list(range(tail[0], len(round_.guesses)))
        assert above[1:] == tail[:-1]
        chain = (n for n, guess in enumerate(round_.guesses) if guess.parent != n - 1)
        assert above[0] == next(chain, tail[0]) - 1
    assert sum(g.accepted for r in carried for g in r.guesses if g.source == "ngram") > 10


class Asked:
    """A source that is asked and never has an offer of its own."""

    probes, spent_s, words = False, 0.0, ""

    def __init__(self, inner: NGramSource) -> None:
        self.inner, self.proposer = inner, inner.proposer

    def begin(self, request: Request) -> None:
        self.inner.begin(request)

    def offer(self, state: State, room: int, pace: float) -> Offer | None:
        self.inner.offer(state, room, pace)
        return None

    def observe(self, outcome: Outcome) -> None:
        self.inner.observe(outcome)


def test_the_chances_of_siblings_are_learned_by_rank_and_sum_to_no_more_than_what_is_left() -> None:
    luck, rng = Siblings(), np.random.default_rng(0)
    sure = [0.4, 0.3, 0.2, 0.05]
    for _ in range(600):
        luck.learn(sure, int(rng.choice([1, 2, -1], p=[0.2, 0.3, 0.5])))
    second, third, fourth = luck.chances(0.4, sure)
    assert second == pytest.approx(0.6 * 0.2, abs=0.04)
    assert third == pytest.approx(0.6 * 0.3, abs=0.04)
    assert fourth < 0.02
    assert luck.typical == pytest.approx([0.2, 0.3, 0.0], abs=0.06)
    for _ in range(600):
        luck.learn([0.9, 0.02, 0.02, 0.02], 1)
    for first in (0.0, 0.5, 0.99, 1.0):
        assert 0 <= sum(luck.chances(first, sure)) <= 1 - first + 1e-9
    known = luck.typical[0]
    luck.new_text()
    assert 0.25 < luck.typical[0] < known, "another text may be another matter"


V, NOISY = 6, 1.5


def _source(model: SmallModel, costs: CostCurve) -> ModelSource:
    return ModelSource(model, costs, DraftCost(1e-4), None, Siblings())


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_text_is_the_plain_text_and_siblings_are_accepted_in_it(temperature: float) -> None:
    siblings = accepted = 0
    for seed in range(6):
        sampling = Sampling(temperature, seed=seed)
        request = Request(np.array([1, 2, 3, 1], dtype=np.int32), sampling, 60)
        target, costs = TableSession(V, seed), CostCurve({1: 1.0, 4: 1.03, 16: 1.1})
        plain = [t.token for r in _rounds(target, request, Nothing()) for t in r.tokens]
        auto = Auto([_source(Branching(TableSession(V, seed, noise=NOISY), V), costs)], costs)
        told = _rounds(target, request, auto)
        assert [t.token for r in told for t in r.tokens] == plain
        assert not [r.note for r in told if r.note]
        siblings += sum(map(_siblings, told))
        accepted += sum(
            g.accepted for r in told for n, g in enumerate(r.guesses) if g.parent < n - 1
        )
    assert siblings > 100
    assert accepted > 20


def _rounds(target: TableSession, request: Request, proposer: Proposer) -> list[Round]:
    """Each pass of the target takes a second, whatever its width."""
    events = speculate(target, request, proposer, clock=lambda: float(target.forwards))
    return [event for event in events if isinstance(event, Round)]


@pytest.mark.parametrize("rule", [RuleName.COUPLED, RuleName.REJECTION])
def test_where_siblings_cannot_be_judged_it_drafts_a_chain(rule: RuleName) -> None:
    target, costs = TableSession(V, 1), CostCurve({1: 1.0, 4: 1.03, 16: 1.1})
    if rule is RuleName.COUPLED:
        target.caps = replace(target.caps, tree=False)
    sampling = Sampling(0.8, seed=0)
    request = Request(np.array([1, 2, 3], dtype=np.int32), sampling, 60, rule=rule)
    auto = Auto([_source(Branching(TableSession(V, 1, noise=NOISY), V), costs)], costs)
    told = _rounds(target, request, auto)
    assert sum(len(round_.guesses) for round_ in told) > 0
    assert not [round_.note for round_ in told if round_.note]
    assert not any(map(_siblings, told))


def test_auto_takes_siblings_only_where_rows_are_cheap_and_trees_are_let() -> None:
    session = TableSession(V)
    tree, branching = ModelTree(session, V), Branching(session, V)
    drafter = Drafter(SmallModel(session, V), DraftCost(1e-4), tree, branching)
    dear = Luck.of(CostCurve({1: T1, 4: 1.8 * T1}), drafter)
    cheap = Luck.of(CostCurve({1: T1, 4: 1.1 * T1}), drafter)
    assert cheap.sources("auto", trees=True) == [cheap.text, cheap.branching]
    assert cheap.sources("auto", trees=False) == [cheap.ngram, cheap.draft]
    assert cheap.sources("draft", trees=True) == [cheap.draft]
    assert dear.sources("auto", trees=True) == [dear.ngram, dear.draft]
    chains = Luck.of(cheap.cost, replace(drafter, branching=None))
    assert chains.sources("auto", trees=True) == [chains.text, chains.draft]
