"""Proposers that are exchanged in the middle of an answer."""

from __future__ import annotations

from answer_trials import PLAIN
from hypothesis import given, settings
from hypothesis import strategies as st
from trials import Copy, RandomTree, V, Wrong, answer, ask, unfiltered

from edgespec.decoding.draft import Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Outcome, Proposer, State
from edgespec.decoding.request import Request
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.switching import Switching
from edgespec.testing import TableSession

REQUEST = ask(unfiltered(seed=7), 60)
PROPOSERS: list[Proposer] = [
    PLAIN,
    Copy(TableSession(V), 3),
    Copy(TableSession(V, noise=0.5), 6),
    Wrong(TableSession(V), 2),
    RandomTree(TableSession(V), 7),
]


class Hands:
    """Wants one proposer, then another."""

    def __init__(self, wanted: Proposer) -> None:
        self.wanted = wanted

    def __call__(self) -> Proposer:
        return self.wanted


class Heard(Copy):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__(TableSession(V), 2)
        self.heard: list[str] = []

    def begin(self, request: Request) -> None:
        self.heard.append("begin")

    def propose(self, state: State, budget: Budget) -> Draft:
        self.heard.append("propose")
        return super().propose(state, budget)

    def observe(self, outcome: Outcome) -> None:
        self.heard.append("observe")

    def end(self) -> None:
        self.heard.append("end")


class Failing(Nothing):
    name = "failing"

    def propose(self, state: State, budget: Budget) -> Draft:
        raise RuntimeError("it broke")


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.integers(0, 60), st.sampled_from(PROPOSERS), max_size=12))
def test_the_text_is_the_same_whatever_is_exchanged_when(moments: dict[int, Proposer]) -> None:
    session, hands, tokens = TableSession(V), Hands(moments.get(0, PLAIN)), list[int]()
    switching = Switching(hands, session.caps)
    for number, event in enumerate(speculate(session, REQUEST, switching)):
        hands.wanted = moments.get(number, hands.wanted)
        tokens += [t.token for t in event.tokens] if isinstance(event, Round) else []
    assert tokens == answer(TableSession(V), REQUEST).tokens


def test_another_proposer_takes_over_with_the_next_round() -> None:
    session, copy = TableSession(V), Copy(TableSession(V), 3)
    hands, guessed = Hands(PLAIN), list[int]()
    for event in speculate(session, REQUEST, Switching(hands, session.caps)):
        if isinstance(event, Round):
            guessed.append(len(event.guesses))
            hands.wanted = copy if 4 <= len(guessed) < 8 else PLAIN
    assert guessed[:10] == [0, 0, 0, 0, 3, 3, 3, 3, 0, 0]


def test_each_hears_of_its_own_rounds_from_a_beginning_to_an_end() -> None:
    session, first, second = TableSession(V), Heard(), Heard()
    hands = Hands(first)
    rounds = 0
    for event in speculate(session, REQUEST, Switching(hands, session.caps)):
        rounds += isinstance(event, Round)
        if rounds == 3:
            hands.wanted = second
    assert first.heard == ["begin", "observe", *["propose", "observe"] * 2, "end"]
    assert second.heard[:3] == ["begin", "propose", "observe"]
    assert second.heard.count("observe") == rounds - 3
    assert second.heard[-1] == "end"


def test_one_that_failed_is_told_of_and_its_successor_is_heard() -> None:
    session, hands = TableSession(V), Hands(Failing())
    rounds = list[Round]()
    for event in speculate(session, REQUEST, Switching(hands, session.caps)):
        if isinstance(event, Round):
            rounds.append(event)
            if len(rounds) == 5:
                hands.wanted = Copy(TableSession(V), 3)
    notes = [round_.note for round_ in rounds if round_.note]
    assert notes == ["drafter 'failing' is off for this answer: RuntimeError: it broke"]
    assert not any(round_.guesses for round_ in rounds[:5])
    assert all(round_.guesses for round_ in rounds[5:-1])
