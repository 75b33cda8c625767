"""A drafter with little room goes on guessing in a long conversation, from the end of it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from proposing import at

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.proposer import UpTo
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.recent import RecentSession
from edgespec.testing import TableSession

ROOM, CONTEXT, VOCAB = 640, 4096, 7
SEED = 5


def _text(length: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, VOCAB, length).astype(np.int32)


def _recent() -> RecentSession:
    return RecentSession(TableSession(VOCAB, seed=SEED, context=ROOM), CONTEXT)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_the_end_of_any_text_is_read_and_fits(lengths: list[int]) -> None:
    session = _recent()
    for length in lengths:
        *_, held = session.prefill(_text(length))
        assert length - 64 <= held <= length
        start = session._start
        kept = length - start
        assert kept <= ROOM - 128
        assert start == 0 or kept >= (ROOM - 128) // 2
        alone = TableSession(VOCAB, seed=SEED, context=ROOM)
        list(alone.prefill(_text(length)[start:]))
        draft = Draft.chain([1, 2, 3], "test")
        one, other = session.verify(draft), alone.verify(draft)
        for node in (ROOT, 0, 1, 2):
            assert (one.logits(node) == other.logits(node)).all()
        session.commit((), 4)


def test_a_growing_text_is_seldom_read_again() -> None:
    session, reread = _recent(), 0
    for length in range(1, 3000):
        first, *_ = session.prefill(_text(length))
        if length - first > 16:
            reread += 1
    assert reread <= 3000 // ((ROOM - 128) // 2)


def test_guesses_come_in_a_text_that_is_longer_than_its_room() -> None:
    model = SmallModel(_recent(), VOCAB)
    draft = model.propose(at(_text(2000).tolist(), 3), UpTo(4))
    assert len(draft) == 4
    assert model.room(at(_text(CONTEXT).tolist(), 3)) == 0


def test_forgetting_begins_at_the_start() -> None:
    session = _recent()
    list(session.prefill(_text(2000)))
    session.reset()
    assert session._start == 0
    list(session.prefill(_text(3)))
    assert session.verify(EMPTY).logits(ROOT).shape == (VOCAB,)


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_what_is_unread_of_a_text_is_known_before_it_is_read(lengths: list[int]) -> None:
    model = SmallModel(_recent(), VOCAB)
    for length in lengths:
        unread = model.unread(_text(length))
        assert 1 <= unread <= ROOM - 128
        model.propose(at(_text(length).tolist()), UpTo(3))
        assert model.timing.read_tokens == unread
