"""Budgets and turns of proposers that are made of proposers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from proposing import Remembers, asked, at, outcome

from edgespec.decoding.draft import EMPTY
from edgespec.decoding.proposer import UpTo
from edgespec.proposers.combine import Capped, FirstOf, Fixed
from edgespec.proposers.ngram import NGram
from edgespec.proposers.nothing import Nothing


@pytest.mark.parametrize(("room", "most", "nodes"), [(8, 3, 3), (2, 3, 2), (0, 3, 0), (5, 5, 5)])
def test_a_cap_is_the_smaller_of_two_budgets(room: int, most: int, nodes: int) -> None:
    budget = Capped(UpTo(room), most)
    assert budget.nodes == nodes
    assert [budget.another([0.5] * n) for n in range(nodes + 2)] == [*[True] * nodes, False, False]


@dataclass
class Moody:
    """Says no whatever the number."""

    nodes: int = 9

    def another(self, confidences: object) -> bool:
        return False


def test_a_cap_does_not_overrule_the_budget_inside() -> None:
    assert not Capped(Moody(), 4).another([])


def test_fixed_asks_for_the_same_number_every_round() -> None:
    inner = Remembers("a", [1], [2])
    fixed = Fixed(inner, 3)
    assert fixed.propose(at([1]), UpTo(9)).tokens == [1]
    assert fixed.propose(at([1]), UpTo(2)).tokens == [2]
    assert [budget.nodes for budget in inner.budgets] == [3, 2]
    assert fixed.plan == "fixed: plan of a, up to 3"
    assert fixed.name == "a"


def test_fixed_at_nothing_does_not_even_ask() -> None:
    inner = Remembers("a", [1])
    assert Fixed(inner, 0).propose(at([1]), UpTo(9)) is EMPTY
    assert not inner.budgets


def test_fixed_passes_everything_on() -> None:
    inner = Remembers("a")
    inner.note = "a fault"
    fixed = Fixed(inner, 2)
    fixed.begin(asked([1]))
    fixed.observe(outcome())
    fixed.end()
    assert inner.heard == ["begin", "observe", "end"]
    assert fixed.note == "a fault"


def test_first_of_takes_the_first_draft_and_asks_no_further() -> None:
    a, b, c = Remembers("a"), Remembers("b", [4, 5]), Remembers("c", [6])
    chosen = FirstOf(a, b, c)
    draft = chosen.propose(at([1]), UpTo(7))
    assert list(draft.tokens) == [4, 5]
    assert list(draft.source) == ["b", "b"]
    assert chosen.plan == "plan of b"
    assert chosen.name == "a+b+c"
    assert [len(p.budgets) for p in (a, b, c)] == [1, 1, 0]
    assert a.budgets[0] == b.budgets[0] == UpTo(7)


def test_first_of_is_empty_when_all_are() -> None:
    assert FirstOf(Remembers("a"), Remembers("b")).propose(at([1]), UpTo(7)) is EMPTY


def test_everybody_hears_of_every_round() -> None:
    parts = Remembers("a", [1]), Remembers("b")
    chosen = FirstOf(*parts)
    chosen.begin(asked([1]))
    chosen.propose(at([1]), UpTo(1))
    chosen.observe(outcome())
    chosen.end()
    assert [p.heard for p in parts] == [["begin", "observe", "end"]] * 2


def test_the_first_fault_of_a_part_is_told() -> None:
    a, b = Remembers("a"), Remembers("b")
    assert FirstOf(a, b).note == ""
    b.note = "b is out"
    assert FirstOf(a, b).note == "b is out"


def test_a_fixed_first_of_keeps_the_cap_for_each_part() -> None:
    text = [1, 2, 3, 4, 1, 2]
    fixed = Fixed(FirstOf(NGram(2), Remembers("b", [9])), 2)
    fixed.begin(asked([1]))
    assert list(fixed.propose(at(text), UpTo(9)).tokens) == [3, 4]
    assert list(fixed.propose(at([*text, 7]), UpTo(9)).tokens) == [9]


def test_nothing_guesses_nothing() -> None:
    plain = Nothing()
    plain.begin(asked([1]))
    assert plain.propose(at([1]), UpTo(9)) is EMPTY
    plain.observe(outcome())
    plain.end()
    assert "switched off" in plain.plan
