"""What a draft model would have guessed, and the file it is kept in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import beside, fresh, recorded

from edgespec.bench.recorded import NO_GUESS, Recorded, load, save, score
from edgespec.decoding.accept import Coupled
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import State, UpTo
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput, NotFound
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.model_tree import OTHERS, Branching
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


def test_ids_that_only_the_draft_model_has_are_never_guessed() -> None:
    found = score(answer(60, 5), TableSession(VOCAB, seed=1), VOCAB // 2, GREEDY)
    assert found.guesses is not None
    assert found.noted is not None
    assert max(found.guesses.max(), found.noted.max()) < VOCAB // 2


def test_what_is_saved_is_what_is_loaded(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    answers = [recorded(fresh(5), [True] * 4 + [False]), recorded(fresh(3))]
    save(file, answers)
    first, second = load(file)
    assert first.guesses is not None
    assert first.guesses.tolist() == [100, 101, 102, 103, 105]
    assert first.confidences == pytest.approx(answers[0].confidences)
    assert first.reply.dtype == first.prompt.dtype == first.guesses.dtype == np.int32
    assert second.guesses is None
    assert second.confidences is None
    assert second.reply.tolist() == [100, 101, 102]


def whole() -> Recorded:
    """Everything that can be known of an answer."""
    answer = beside(recorded([1, 2], [True, False]), [False, True])
    near, scores = np.array([[1, 5], [2, 0]], np.int32), np.array([[-0.1, -3], [-0.5, -1]])
    return replace(answer, near=near, scores=scores.astype(np.float32))


def test_siblings_and_the_targets_scores_are_saved_too(tmp_path: Path) -> None:
    file, answer = tmp_path / "answers.json", whole()
    save(file, [answer])
    (found,) = load(file)
    for name in ("noted", "shares", "near", "scores"):
        kept = getattr(found, name)
        assert kept.dtype == getattr(answer, name).dtype
        assert kept.shape == (2, 2)
        assert kept == pytest.approx(getattr(answer, name))


def test_a_file_from_before_siblings_were_kept_is_loaded_without_them(tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    save(file, [whole()])
    content = json.loads(file.read_bytes())
    for name in ("noted", "shares", "near", "scores"):
        del content["records"][0][name]
    file.write_text(json.dumps(content))
    (found,) = load(file)
    assert found.guesses is not None
    assert found.guesses.tolist() == [1, 3]
    assert found.noted is found.shares is found.near is found.scores is None


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": []},
        {"reply": [1, -1]},
        {"reply": [1, 2**31]},
        {"reply": [1, 2.0]},
        {"reply": [True, 2]},
        {"reply": "12"},
        {"reply": 7},
        {"guesses": [1, 2, 3]},
        {"guesses": [1, -2]},
        {"confidences": [0.5]},
        {"confidences": [0.5, 1.5]},
        {"confidences": [0.5, float("nan")]},
        {"confidences": None},
        {"prompt": [[1, 2]]},
        {"guesses": [[1], [2]], "confidences": [[0.5], [0.5]]},
        {"noted": [1, 2], "shares": [0.5, 0.5]},
        {"noted": [[1, 2], [3]], "shares": [[0.5, 0.1], [0.5]]},
        {"noted": [[1, 2]], "shares": [[0.5, 0.1]]},
        {"shares": [[0.5, 0.1]]},
        {"shares": None},
        {"near": [[1, -1], [2, 3]]},
        {"scores": [[float("nan"), 0.0], [0.0, 0.0]]},
        {"id": 4},
        {"category": None},
    ],
    ids=str,
)
def test_a_damaged_file_is_told_as_one(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "answers.json"
    save(file, [whole()])
    content = json.loads(file.read_bytes())
    content["records"][0] |= change
    file.write_text(json.dumps(content))
    with pytest.raises(BadInput, match="holds no recorded answers"):
        load(file)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "other", "records": []}', "\xff"])
def test_another_file_is_told_as_one(tmp_path: Path, content: str) -> None:
    file = tmp_path / "answers.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(BadInput, match="holds no recorded answers"):
        load(file)


def test_a_missing_file_is_told_as_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is not there"):
        load(tmp_path / "answers.json")
