"""A drafter that fails costs its draft: the text stays, and one note says what happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from trials import Copy, V, answer, ask, unfiltered

from edgespec.decoding.draft import Draft, Support
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

WARM = unfiltered(seed=4)
FOREIGN: Any = "x"


def _draft(tokens: Sequence[Any], parents: Sequence[Any], q: Sequence[Any] | None = None) -> Draft:
    n = len(tokens)
    return Draft(tokens, parents, ("bad",) * n, (None,) * n if q is None else q)


def _much(budget: Budget) -> Draft:
    return Draft.chain([0] * (budget.nodes + 1), "bad")


NONSENSE: dict[str, Callable[[Budget], Any]] = {
    "a parent that comes later": lambda b: _draft([1, 2], [1, -1]),
    "its own parent": lambda b: _draft([1, 2], [-1, 1]),
    "a parent before the root": lambda b: _draft([1, 2], [-2, 0]),
    "a parent that is half a node": lambda b: _draft([1, 2], [-1, -0.5]),
    "a token past the vocabulary": lambda b: _draft([1, V], [-1, 0]),
    "a token below zero": lambda b: _draft([-1], [-1]),
    "a token that is no whole number": lambda b: _draft([1.5, 2], [-1, 0]),
    "a token that is text": lambda b: _draft([FOREIGN], [-1]),
    "more tokens than fit": _much,
    "lists of different lengths": lambda b: Draft((1, 2), (-1,), ("bad",), (None,)),
    "no draft at all": lambda b: None,
    "a list instead of a draft": lambda b: [1, 2, 3],
    "a q that is no distribution": lambda b: _draft([1], [-1], [FOREIGN]),
}


class Broken(Nothing):
    """Drafts well twice, then once not."""

    name, plan = "broken", "as ever"

    def __init__(self, bad: Callable[[Budget], Any]) -> None:
        self.bad, self.good = bad, Copy(TableSession(V), 2)
        self.asked = 0

    def propose(self, state: State, budget: Budget) -> Draft:
        self.asked += 1
        if self.asked <= 2:
            return self.good.propose(state, budget)
        return cast(Draft, self.bad(budget))


def _request(rule: RuleName = RuleName.COUPLED, sampling: Sampling = WARM) -> Request:
    return replace(ask(sampling), rule=rule)


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize("rule", RuleName)
def test_nonsense_costs_drafts_and_never_the_answer(rule: RuleName, nonsense: str) -> None:
    broken = Broken(NONSENSE[nonsense])
    told = answer(TableSession(V), _request(rule), broken)
    assert len(told.tokens) == 24
    if rule is RuleName.COUPLED:
        assert told.tokens == answer(TableSession(V), _request()).tokens
    assert told.accepted > 0
    assert broken.asked == 3
    (note,) = told.notes
    assert note.startswith("drafter 'broken' is off for this answer: ")
    assert "\n" not in note
    silenced = [round_ for round_ in told.rounds[3:] if round_.guesses]
    assert not silenced
    assert told.rounds[-1].plan == "broken stopped after a fault"
    assert told.rounds[1].plan == "as ever"


class Raises(Nothing):
    """Raises in one of its steps, every time it is asked for it."""

    name = "raises"

    def __init__(self, step: str) -> None:
        self.step = step

    def begin(self, request: Request) -> None:
        self._maybe("begin")

    def propose(self, state: State, budget: Budget) -> Draft:
        self._maybe("propose")
        return Draft.chain([0], self.name)

    def observe(self, outcome: Outcome) -> None:
        self._maybe("observe")

    def end(self) -> None:
        self._maybe("end")

    @property
    def plan(self) -> str:  # type: ignore[override]
        self._maybe("plan")
        return "a plan"

    def _maybe(self, step: str) -> None:
        if step == self.step:
            raise ZeroDivisionError(f"in {step}")


@pytest.mark.parametrize(
    ("step", "noted"), [("begin", 1), ("propose", 1), ("observe", 1), ("end", 0), ("plan", 1)]
)
def test_an_exception_in_any_step_is_noted_once_and_costs_no_token(step: str, noted: int) -> None:
    told = answer(TableSession(V), _request(), Raises(step))
    assert told.tokens == answer(TableSession(V), _request()).tokens
    assert len(told.notes) == noted
    assert all(f"ZeroDivisionError: in {step}" in note for note in told.notes)


def test_a_tree_under_the_rejection_rule_is_noted_and_costs_no_answer() -> None:
    tree = Broken(lambda budget: _draft([1, 2], [-1, -1]).cut(budget.nodes))
    assert answer(TableSession(V), _request(), tree).notes == []
    told = answer(TableSession(V), _request(RuleName.REJECTION), Broken(tree.bad))
    assert len(told.tokens) == 24
    assert [note.split(": ")[1] for note in told.notes] == [
        "it guessed a tree where only a chain can be verified"
    ]


def test_a_tree_for_a_session_that_takes_chains_is_noted() -> None:
    session = TableSession(V)
    session.caps = replace(session.caps, tree=False)
    told = answer(session, _request(), Broken(lambda budget: _draft([1, 2], [-1, -1])))
    assert told.tokens == answer(TableSession(V), _request()).tokens
    assert len(told.notes) == 1


def test_a_drafter_gets_another_chance_with_the_next_answer() -> None:
    broken = Broken(NONSENSE["a token below zero"])
    assert answer(TableSession(V), _request(), broken).notes
    broken.asked = 0
    assert answer(TableSession(V), _request(), broken).accepted > 0


class Vandal(Copy):
    """Writes into everything it is shown."""

    def propose(self, state: State, budget: Budget) -> Draft:
        draft = Copy.propose(self, state, budget)
        for shown in (state.tokens, state.recent):
            try:
                cast(list[int], shown)[:] = [0] * len(shown)
            except (TypeError, ValueError):
                continue
        return draft


def test_a_drafter_cannot_change_the_text_by_writing_into_what_it_is_shown() -> None:
    sampling = replace(WARM, presence_penalty=1.0, repeat_penalty=1.5, penalty_window=8)
    vandal = Vandal(TableSession(V, noise=1.0), 3)
    told = answer(TableSession(V), _request(sampling=sampling), vandal)
    assert told.tokens == answer(TableSession(V), _request(sampling=sampling)).tokens
    assert told.drafted > 0


def test_a_user_who_interrupts_a_drafter_is_heard() -> None:
    class Interrupted(Nothing):
        def propose(self, state: State, budget: Budget) -> Draft:
            raise KeyboardInterrupt

    session, proposer = TableSession(V), Interrupted()
    with pytest.raises(KeyboardInterrupt):
        answer(session, _request(), proposer)
    assert len(session.cache) > 0  # what was committed before is still there


class Listening(Copy):
    """Looks at every outcome: the scores must still be those of its round."""

    def __init__(self, length: int) -> None:
        Copy.__init__(self, TableSession(V, noise=1.0), length)
        self.outcomes = list[Outcome]()
        self.shown = list[list[int]]()

    def observe(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        tops = [outcome.scores.top(node) for node in range(-1, len(outcome.draft))]
        self.shown.append(tops)


def test_outcomes_tell_of_every_round_plain_ones_too() -> None:
    listening = Listening(3)
    told = answer(TableSession(V), _request(sampling=Sampling(0.0)), listening)
    assert len(listening.outcomes) == len(told.rounds)
    assert len(listening.outcomes[0].draft) == 0
    for outcome, tops, round_ in zip(listening.outcomes, listening.shown, told.rounds, strict=True):
        tokens = [token.token for token in round_.tokens]
        assert outcome.accepted.tokens(outcome.draft) == tokens
        assert outcome.rows == len(round_.guesses) + 1
        assert tops[: len(tokens)] == tokens  # greedy: what the target said along the path


def test_a_declared_q_travels_with_its_guess() -> None:
    even = Support(np.arange(V, dtype=np.int32), np.full(V, 1 / V))
    told = answer(
        TableSession(V),
        _request(RuleName.REJECTION),
        Broken(lambda budget: _draft([1], [-1], [even])),
    )
    assert not told.notes
    assert 0 < told.accepted <= told.drafted
