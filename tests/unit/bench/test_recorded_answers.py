"""What a draft model would have guessed at each place of an answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from edgespec.bench.recorded import NO_GUESS, Recorded, score
from edgespec.decoding.accept import Coupled
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import State, UpTo
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.model_tree import OTHERS, Branching
from edgespec.proposers.recent import RecentSession
from edgespec.testing import TableSession

VOCAB = 40


class Narrow(TableSession):
    """Takes few rows at a time."""

    def __init__(self, rows: int, rollback: int | None = None) -> None:
        super().__init__(VOCAB, seed=1)
        self.caps = replace(self.caps, rows=rows, rollback=rollback)


def answer(length: int, start: int, seed: int = 3) -> Recorded:
    tokens = np.random.default_rng(seed).integers(0, VOCAB, length).astype(np.int32)
    return Recorded("one", "test", tokens[:start], tokens[start:])


GREEDY, WARM = (Coupled(Sampling(temperature), Noise(5, 7)) for temperature in (0.0, 0.8))


@pytest.mark.parametrize("rule", [GREEDY, WARM], ids=["greedy", "warm"])
@pytest.mark.parametrize("rows", [1, 2, 7, 65])
def test_each_guess_is_what_the_draft_model_would_say_after_the_true_text(
    rows: int, rule: Coupled
) -> None:
    found = score(answer(50, 9), Narrow(rows), VOCAB, rule)
    assert found.guesses is not None
    assert found.confidences is not None
    model = SmallModel(TableSession(VOCAB, seed=1), VOCAB)
    for place, guess in enumerate(found.guesses):
        text = [*found.prompt, *found.reply[:place]]
        said = model.propose(State(np.array(text, np.int32), place, rule), UpTo(1))
        assert guess == said.tokens[0]
        assert found.confidences[place] == pytest.approx(model.confidences[0])


@pytest.mark.parametrize("rule", [GREEDY, WARM], ids=["greedy", "warm"])
def test_beside_each_guess_is_kept_what_a_branching_model_would_note(rule: Coupled) -> None:
    found = score(answer(50, 9), Narrow(7), VOCAB, rule)
    assert found.noted is not None
    assert found.shares is not None
    model, full = Branching(TableSession(VOCAB, seed=1), VOCAB), 0
    for place, tokens in enumerate(found.noted.tolist()):
        text = [*found.prompt, *found.reply[:place]]
        said = model.propose(State(np.array(text, np.int32), place, rule), UpTo(1))
        others = model.others[0]
        noted = [said.tokens[0], *(other.token for other in others)]
        sure = [model.confidences[0], *(other.confidence for other in others)]
        assert tokens[: len(noted)] == noted
        assert set(tokens[len(noted) :]) <= {NO_GUESS}
        assert found.shares[place, : len(sure)] == pytest.approx(sure)
        full += len(noted) == 1 + OTHERS
    assert full > 10


def test_a_text_is_scored_in_passes_as_wide_as_the_session_takes() -> None:
    session = Narrow(8)
    score(answer(50, 10), session, VOCAB, GREEDY)
    assert session.widths == [8, 8, 8, 8, 8]


def test_no_more_guesses_are_made_than_the_session_can_take_back() -> None:
    session = Narrow(8, rollback=3)
    score(answer(30, 10), session, VOCAB, GREEDY)
    assert max(session.widths) == 4


def test_a_draft_model_without_room_has_no_guess_for_the_rest() -> None:
    found = score(answer(30, 10), TableSession(VOCAB, seed=1, context=20), VOCAB, GREEDY)
    for ids, sure in ((found.guesses, found.confidences), (found.noted, found.shares)):
        assert ids is not None
        assert sure is not None
        assert (ids[:10] != NO_GUESS).all()
        assert (ids[10:] == NO_GUESS).all()
        assert (sure[10:] == 0).all()


def test_a_draft_model_that_reads_the_end_of_longer_texts_guesses_at_every_place() -> None:
    short = RecentSession(TableSession(VOCAB, seed=1, context=200), 512)
    found = score(answer(400, 9), short, VOCAB, GREEDY)
    whole = score(answer(400, 9), TableSession(VOCAB, seed=1), VOCAB, GREEDY)
    assert found.guesses is not None
    assert whole.guesses is not None
    assert found.guesses.tolist() == whole.guesses.tolist()


def test_ids_that_only_the_draft_model_has_are_never_guessed() -> None:
    found = score(answer(60, 5), TableSession(VOCAB, seed=1), VOCAB // 2, GREEDY)
    assert found.guesses is not None
    assert found.noted is not None
    assert max(found.guesses.max(), found.noted.max()) < VOCAB // 2
