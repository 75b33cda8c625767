"""A small model guesses what it would say itself, whatever was turned down before."""

from __future__ import annotations

import numpy as np
import pytest
from proposing import GREEDY, WARM, asked, at, rule_of

from edgespec.decoding.draft import Row, Support
from edgespec.decoding.events import Finished, Round, Stop
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import UpTo
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

V = 6


def _model(context: int = 512, vocab: int = V) -> SmallModel:
    return SmallModel(TableSession(V, seed=3, context=context), vocab)


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
@pytest.mark.parametrize("rule", RuleName)
def test_after_a_rejection_it_guesses_as_if_it_had_never_seen_the_rejected_tokens(
    sampling: Sampling, rule: RuleName
) -> None:
    rng, used = np.random.default_rng(0), _model()
    used.begin(asked([0]))
    text = rng.integers(0, V, 12).tolist()
    judge = rule_of(sampling, rule)
    kept = 0
    for index in range(60):
        room = UpTo(int(rng.integers(1, 9)))
        draft = used.propose(at(text, index, judge), room)
        fresh = _model().propose(at(text, index, judge), room)
        assert draft.tokens == fresh.tokens
        right = int(rng.integers(0, len(draft) + 1))
        kept += right
        text += [*draft.tokens[:right], int(rng.integers(0, V))]
    assert kept > 60


def test_it_reads_only_what_it_has_not_read() -> None:
    model, text = _model(), list(range(5)) * 4
    draft = model.propose(at(text), UpTo(4))
    assert model.timing.read_tokens == 20
    model.propose(at([*text, *draft.tokens[:2], 5], 3), UpTo(4))
    assert model.timing.read_tokens <= 2


def test_guesses_are_the_tokens_that_the_rule_would_choose_from_its_scores() -> None:
    table, judge = TableSession(V, seed=3), rule_of(WARM)
    text = [1, 2, 3]
    draft = _model().propose(at(text, 7, judge), UpTo(5))
    for n, token in enumerate(draft.tokens):
        assert token == judge.guess(table.row(text), text, 7 + n).token
        text.append(token)


@pytest.mark.parametrize("rule", RuleName)
def test_under_rejection_every_node_says_what_it_was_drawn_from(rule: RuleName) -> None:
    model = _model()
    draft = model.propose(at([1, 2, 3], rule=rule_of(WARM, rule)), UpTo(6))
    assert len(draft) == len(draft.q) == len(model.confidences) == 6
    if rule is RuleName.COUPLED:
        assert list(draft.q) == [None] * 6
        return
    for token, q in zip(draft.tokens, draft.q, strict=True):
        assert isinstance(q, Support)
        assert q.of(token) > 0
        assert q.p.sum() == pytest.approx(1)


def test_ids_that_the_target_does_not_know_are_never_guessed() -> None:
    free, bound = _model(), _model(vocab=3)
    drafts = [
        [m.propose(at([a, b, 1], rule=rule_of(WARM)), UpTo(4)) for a in range(3) for b in range(3)]
        for m in (free, bound)
    ]
    assert max(token for draft in drafts[0] for token in draft.tokens) >= 3
    assert max(token for draft in drafts[1] for token in draft.tokens) < 3


def test_a_full_context_is_said_and_costs_no_pass() -> None:
    table = TableSession(V, seed=3, context=10)
    model = SmallModel(table, V)
    assert model.propose(at([1] * 6), UpTo(4))
    assert model.plan == "draft model ×4"  # noqa: RUF001
    passes = table.forwards
    assert len(model.propose(at([1] * 8), UpTo(4))) == 2, "a shorter draft where less fits"
    passes = table.forwards
    assert not model.propose(at([1] * 10), UpTo(4))
    assert model.plan == "draft model: its context of 10 tokens is full"
    assert table.forwards == passes
    model.begin(asked([1]))
    assert model.propose(at([1] * 3), UpTo(4)), "the next answer may be shorter"


def test_beyond_its_context_the_answer_goes_on_without_it() -> None:
    target = TableSession(V, seed=0, context=64)
    request = Request(np.array([1, 2, 3], dtype=np.int32), WARM, 30)
    plain = list(speculate(target, request, Nothing()))
    small = SmallModel(TableSession(V, 1, context=16), V)
    fast = list(speculate(target, request, Fixed(small, 3)))
    rounds = [event for event in fast if isinstance(event, Round)]
    assert _tokens(fast) == _tokens(plain)
    assert rounds[1].guesses
    assert not rounds[-1].guesses
    assert "its context of 16 tokens is full" in rounds[-1].plan


def test_of_a_chat_that_goes_on_only_what_is_new_is_unread() -> None:
    model, text = _model(), np.arange(40, dtype=np.int32) % V
    assert model.unread(text) == 40
    draft = model.propose(at(text.tolist()), UpTo(3))
    goes_on = np.array([*text, *draft.tokens[:1], (draft.tokens[1] + 1) % V, 2, 2], np.int32)
    assert model.unread(goes_on) == 3, "what it guessed right it has read"
    model.begin(asked([1]))
    assert model.unread(goes_on) == 3, "another answer does not empty its cache"
    branches_off = np.array([*text[:10], (text[10] + 1) % V, *text[11:]], np.int32)
    assert model.unread(branches_off) == 30
    model.propose(at(branches_off.tolist()), UpTo(3))
    assert model.timing.read_tokens == 30
    model.forget()
    assert model.unread(branches_off) == 40


class AsksBeforeEach:
    """A budget that says no after some guesses and notes what it was shown."""

    nodes = 8

    def __init__(self, most: int) -> None:
        self.most, self.shown = most, list[int]()

    def another(self, confidences: list[float]) -> bool:
        self.shown.append(len(confidences))
        return len(confidences) < self.most


def test_the_budget_is_asked_before_each_guess_and_obeyed() -> None:
    budget = AsksBeforeEach(3)
    assert len(_model().propose(at([1, 2]), budget)) == 3
    assert budget.shown == [0, 1, 2, 3]
    assert not _model().propose(at([1, 2]), AsksBeforeEach(0))


def _tokens(events: list[object]) -> list[int]:
    return [t.token for event in events if isinstance(event, Round) for t in event.tokens]


class Damaged(TableSession):
    """Its scores become NaN after `good` passes."""

    good = 0

    def row(self, history: object) -> Row:
        row = super().row(history)  # type: ignore[arg-type]
        return row if self.forwards <= self.good else np.full_like(row, np.nan)


@pytest.mark.parametrize("good", [0, 5])
def test_a_drafter_whose_scores_are_no_numbers_costs_its_drafts_and_is_named(good: int) -> None:
    target, drafter = TableSession(V, seed=0), Damaged(V, seed=0, noise=0.5)
    drafter.good = good
    request = Request(np.array([1, 2, 3], dtype=np.int32), WARM, 40)
    plain = list(speculate(target, request, Nothing()))
    fast = list(speculate(target, request, Fixed(SmallModel(drafter, V), 3)))
    assert _tokens(fast) == _tokens(plain)
    assert fast[-1] == Finished(Stop.LENGTH)
    rounds = [event for event in fast if isinstance(event, Round)]
    notes = [round_.note for round_ in rounds if round_.note]
    assert len(notes) == 1
    assert notes[0].startswith("drafter 'draft' is off for this answer: BackendFailed")
    assert not rounds[-1].guesses
    assert any(round_.guesses for round_ in rounds) == (good > 0)
