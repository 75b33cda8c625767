"""Trees are drafted where further rows are nearly free, and cost nothing where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from simulator import T1, VOCAB, Run, curve, flat, linear, machine_for, run, usual

from edgespec.bench.replay import Cost, Machine
from edgespec.decoding.draft import Draft
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.planning.acceptance import StatedAcceptance
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Luck
from edgespec.planning.planner import Auto
from edgespec.planning.tree_source import OWED, TreeSource
from edgespec.proposers.growing import GrowingTree
from edgespec.proposers.nothing import Nothing


class Branching(Nothing):
    """For each place two guesses, of which the first is right this often and the second half of
    what is left; what it states of that may be something else."""

    name, plan = "branching", "two guesses for each place"

    def __init__(self, machine: Machine, often: float, stated: float | None = None) -> None:
        self._machine, self._often = machine, often
        self._stated = often if stated is None else stated
        self._rng = np.random.default_rng(0)

    def propose(self, state: State, budget: Budget) -> Draft:
        tree, line, start = GrowingTree(), -1, len(state.tokens)
        for depth in range(6):
            truth, dice = self._machine.text[start + depth], self._rng.random()
            first = dice < self._often
            second = not first and self._rng.random() < 0.5
            guesses = [truth if first else VOCAB - 2, truth if second else VOCAB - 1]
            sure = [self._stated, (1 - self._stated) / 2]
            nodes = [tree.add(line, t, s) for t, s in zip(guesses, sure, strict=True)]
            line = nodes[1] if second else nodes[0]
        return tree.draft(budget.nodes, self.name)


class OnlyFirst(Branching):
    """The same without alternatives."""

    def propose(self, state: State, budget: Budget) -> Draft:
        draft = super().propose(state, budget)
        n = next((n for n, p in enumerate(draft.parents) if p != n - 1), len(draft))
        return draft.cut(n)


def _auto(kind: type[Branching], cost: Cost, often: float, stated: float | None = None) -> Run:
    machine, costs = machine_for(cost), curve(cost)
    return run(machine, Auto([TreeSource(kind(machine, often, stated), costs)], costs), 1000)


def test_where_rows_are_free_alternatives_make_answers_faster() -> None:
    tree, chain = _auto(Branching, flat, 0.6), _auto(OnlyFirst, flat, 0.6)
    assert tree.relative < 0.9 * chain.relative
    assert tree.drafted(0, 1000) > chain.drafted(0, 1000)


@pytest.mark.parametrize("often", [0.2, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("cost", [linear, usual, flat])
def test_a_tree_never_costs_more_than_the_chain_in_it(cost: Cost, often: float) -> None:
    assert _auto(Branching, cost, often).relative <= 1.03 * _auto(OnlyFirst, cost, often).relative


@pytest.mark.parametrize("stated", [0.5, 0.95])
def test_where_each_row_costs_a_pass_nothing_is_drafted(stated: float) -> None:
    told = _auto(Branching, linear, 0.5, stated)
    assert told.relative < 1.02
    assert told.drafted(0, 1000) < 0.1


@pytest.mark.parametrize("cost", [usual, flat])
def test_a_proposer_that_is_too_sure_of_itself_is_found_out(cost: Cost) -> None:
    told = _auto(Branching, cost, 0.05, stated=0.95)
    assert told.relative < 1.06
    assert told.drafted(500, 1000, "branching") <= _auto(
        Branching, cost, 0.05, stated=0.95
    ).drafted(0, 100, "branching")


def test_dear_rows_take_the_likeliest_nodes_and_cheap_ones_more_of_them() -> None:
    sizes = [_auto(Branching, cost, 0.8).drafted(100, 1000) for cost in (linear, usual, flat)]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 8


class Slow(Branching):
    """Guesses wrongly, and counts what it was asked and told. takes: plain passes a guess."""

    takes, asked, told = 0.75, 0, 0

    def propose(self, state: State, budget: Budget) -> Draft:
        self.asked += 1
        self._machine.now += self.takes * T1
        return super().propose(state, budget)

    def observe(self, outcome: Outcome) -> None:
        self.told += 1


def test_guessing_that_costs_more_than_it_wins_rests_for_the_answer_and_learns_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine, costs = machine_for(linear), curve(linear)
    monkeypatch.setattr("edgespec.planning.tree_source.perf_counter", machine.clock)
    slow = Slow(machine, 0.0)
    source = TreeSource(slow, costs)
    auto = Auto([source], costs)
    for answer in (1, 2):
        assert run(machine, auto, 60).tokens == 60
        assert source.proposer.resting
        tries = int(OWED / slow.takes) + 1
        assert slow.asked == tries * answer, "it rests once it owes more, and tries each answer"
        before = 1 + tries - 1  # the first token's round, and all but the last that it was asked in
        assert slow.told == before * answer, "at rest it is told nothing"


class SaysHalf(Branching):
    """Is silent on how sure it is of the second half of its guesses."""

    def propose(self, state: State, budget: Budget) -> Draft:
        draft = super().propose(state, budget)
        return replace(draft, confidence=draft.confidence[: len(draft) // 2])


def test_guesses_whose_proposer_does_not_say_how_sure_it_is_are_weighed_all_the_same() -> None:
    told = _auto(SaysHalf, flat, 0.6)
    assert not [round_.note for round_ in told.rounds if round_.note]
    assert told.relative < 0.6


def test_what_guesses_of_a_stated_chance_come_to_is_learned_for_each_tenth_apart() -> None:
    luck, rng = StatedAcceptance(), np.random.default_rng(0)
    assert luck.probability(0.85) == pytest.approx(0.85)
    for _ in range(400):
        luck.learn(0.85, bool(rng.random() < 0.6))
        luck.learn(0.03, bool(rng.random() < 0.05))
    assert abs(luck.probability(0.85) - 0.6) < 0.12
    assert luck.probability(0.03) < 0.12
    assert luck.probability(0.55) == pytest.approx(0.55)
    luck.new_text()
    assert luck.probability(0.85) > 0.6 - 0.12


def test_siblings_are_expected_to_be_right_no_more_than_once() -> None:
    machine, costs = machine_for(flat), curve(flat)
    source = TreeSource(Branching(machine, 0.5), costs)
    for _ in range(200):
        source._luck.learn(0.25, True)
        source._luck.learn(0.55, True)
    weighed = source._weighed(
        Draft((1, 2, 3), (-1, -1, 0), ("t",) * 3, (None,) * 3, (0.25, 0.55, 0.5))
    )
    assert weighed.chance[0] + weighed.chance[1] <= 1.0
    assert weighed.chance[1] > weighed.chance[0]


class Learns(Nothing):
    """Counts what it was told."""

    name, plan = "learns", "nothing yet"
    told = 0

    def observe(self, outcome: Outcome) -> None:
        self.told += 1


def test_a_source_that_guesses_nothing_is_told_of_every_round() -> None:
    machine, costs, learns = machine_for(usual), curve(usual), Learns()
    run(machine, Auto([TreeSource(learns, costs)], costs), 30)
    assert learns.told == 30


def _names(sources: Sequence[object]) -> list[str]:
    return [source.proposer.name for source in sources]  # type: ignore[attr-defined]


def test_auto_takes_trees_from_the_text_only_where_four_rows_cost_little_more_than_one() -> None:
    dear = Luck.of(CostCurve({1: T1, 4: 1.8 * T1}), None)
    cheap = Luck.of(CostCurve({1: T1, 4: 1.1 * T1}), None)
    assert dear.sources("auto", trees=True) == [dear.ngram]
    assert cheap.sources("auto", trees=True) == [cheap.text]
    assert cheap.sources("auto", trees=False) == [cheap.ngram]
    assert cheap.sources("ngram", trees=True) == [cheap.ngram]
    assert _names(dear.sources("recycling", trees=True)) == ["recycling"]
    assert _names(dear.sources("tree", trees=True)) == ["ngram+recycling"]


def test_fixed_guesses_come_from_what_was_named() -> None:
    luck = Luck.of(curve(usual), None)
    made: dict[str, Proposer] = {name: luck.fixed(name) for name in ("auto", "ngram", "tree")}
    assert {name: proposer.name for name, proposer in made.items()} == {
        "auto": "ngram",
        "ngram": "ngram",
        "tree": "ngram+recycling",
    }
    assert luck.fixed("recycling").name == "recycling"
