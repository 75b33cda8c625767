"""Nothing leaks between conversations: after a long one, the next is guessed at as the first was.

Kept on purpose, and so not among the claims: what a planner has learned of how often guesses are
right, the watchdog's shorter trial of a drafter that was wrong nearly always, and the table of
`Recycling(keeps=True)`, which the user has to allow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from proposing import GREEDY, WARM

from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Session
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.model_source import DraftCost
from edgespec.planning.planner import Auto
from edgespec.proposers.combine import FirstOf, Fixed, Merged
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.memory import Memory
from edgespec.proposers.model_tree import ModelTree
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.recent import RecentSession
from edgespec.proposers.recycling import Recycling
from edgespec.proposers.trimmed import TrimmedSession
from edgespec.testing import TableSession

V = 8
LONG, SHORT, ANSWER = 300, 12, 60  # tokens

Guesses = list[tuple[tuple[int, int], ...]]
"""For each round, the token and the parent of every guess."""


def _drafter() -> Session:
    return TableSession(V, seed=5, noise=1.0, context=2 * LONG)


def _trained() -> Session:
    """A drafter that knows all of the target's tokens but the last, and the end of a long text."""
    own = RecentSession(TableSession(V, seed=5, noise=1.0, context=256), 2 * LONG)
    return TrimmedSession(own, np.arange(V - 1, dtype=np.int32), V - 1, V)


def _memory() -> Memory:
    return Memory([np.random.default_rng(n).integers(0, V, 80).tolist() for n in range(4)])


MAKERS: dict[str, Callable[[], Proposer]] = {
    "n-gram": NGram,
    "n-gram tree": NGramTree,
    "memory": _memory,
    "recycling": Recycling,
    "small model": lambda: SmallModel(_drafter(), V),
    "small model's tree": lambda: ModelTree(_drafter(), V),
    "trained drafter": lambda: SmallModel(_trained(), V),
    "trained drafter's tree": lambda: ModelTree(_trained(), V),
    "n-gram, then trained drafter": lambda: FirstOf(NGram(2), SmallModel(_trained(), V)),
    "all, joined": lambda: Merged(NGramTree(2), ModelTree(_trained(), V), _memory(), Recycling()),
}


def _prompt(tokens: int, seed: int) -> Tokens:
    return np.random.default_rng(seed).integers(0, V, tokens).astype(np.int32)


def _guesses(
    session: TableSession, proposer: Proposer, prompt: Tokens, sampling: Sampling
) -> Guesses:
    """On a clock by which every pass of the target takes a second, and nothing else any time."""
    request = Request(prompt, sampling, ANSWER)
    return [
        tuple((guess.token, guess.parent) for guess in event.guesses)
        for event in speculate(session, request, proposer, lambda: float(session.forwards))
        if isinstance(event, Round)
    ]


def _target() -> TableSession:
    return TableSession(V, seed=5, context=2 * LONG)


def _after_a_long_one(proposer: Proposer, sampling: Sampling) -> Guesses:
    session = _target()
    _guesses(session, proposer, _prompt(LONG, 1), sampling)
    return _guesses(session, proposer, _prompt(SHORT, 2), sampling)


def _fresh(proposer: Proposer, sampling: Sampling) -> Guesses:
    return _guesses(_target(), proposer, _prompt(SHORT, 2), sampling)


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_after_a_long_conversation_every_guess_is_that_of_a_fresh_start(
    make: Callable[[], Proposer], sampling: Sampling
) -> None:
    second = _after_a_long_one(Fixed(make(), 6), sampling)
    assert any(second)
    assert second == _fresh(Fixed(make(), 6), sampling)


def test_a_table_that_is_kept_on_purpose_shows() -> None:
    kept = _after_a_long_one(Fixed(Recycling(keeps=True), 6), GREEDY)
    assert kept != _fresh(Fixed(Recycling(keeps=True), 6), GREEDY)


def _luck() -> Luck:
    session = _trained()
    drafter = Drafter(SmallModel(session, V), DraftCost(1e-6), ModelTree(session, V))
    return Luck.of(CostCurve({1: 1.0, 16: 1.01}), drafter, _memory())


@pytest.mark.parametrize("name", ["auto", "tree", "recycling", "ngram", "draft"])
def test_the_planner_keeps_how_lucky_guesses_were_but_nothing_that_was_said(name: str) -> None:
    """What its sources would guess next is that of a fresh start, whichever it chose before."""
    used, session = _luck(), _target()
    first = Auto(used.sources(name, trees=True), used.cost)
    assert any(_guesses(session, first, _prompt(LONG, 1), GREEDY))
    fresh = _luck().sources(name, trees=True)
    for source, new in zip(used.sources(name, trees=True), fresh, strict=True):
        second = _guesses(session, Fixed(source.proposer, 6), _prompt(SHORT, 2), GREEDY)
        assert second == _fresh(Fixed(new.proposer, 6), GREEDY)
