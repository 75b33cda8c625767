"""What a draft model would have guessed, and the file it is kept in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import fresh, recorded

from edgespec.bench.recorded import NO_GUESS, load, save, score
from edgespec.decoding.accept import Coupled
from edgespec.decoding.draft import Tokens
from edgespec.decoding.noise import Noise
from edgespec.decoding.proposer import State, UpTo
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput, NotFound
from edgespec.proposers.draft_model import SmallModel
from edgespec.testing import TableSession

VOCAB = 40


def text(length: int, seed: int = 3) -> Tokens:
    return np.random.default_rng(seed).integers(0, VOCAB, length).astype(np.int32)


class Narrow(TableSession):
    """Takes few rows at a time."""

    def __init__(self, rows: int, rollback: int | None = None) -> None:
        super().__init__(VOCAB, seed=1)
        self.caps = replace(self.caps, rows=rows, rollback=rollback)


@pytest.mark.parametrize("rows", [1, 2, 7, 65])
def test_each_guess_is_what_the_draft_model_would_say_after_the_true_text(rows: int) -> None:
    tokens, start = text(50), 9
    guesses, confidences = score(Narrow(rows), VOCAB, tokens, start)
    model = SmallModel(TableSession(VOCAB, seed=1), VOCAB)
    rule = Coupled(Sampling(0.0), Noise(0, 0))
    for place in range(start, len(tokens)):
        said = model.propose(State(tokens[:place], 0, rule), UpTo(1))
        assert guesses[place - start] == said.tokens[0]
        assert confidences[place - start] == pytest.approx(model.confidences[0])


def test_a_text_is_scored_in_passes_as_wide_as_the_session_takes() -> None:
    session = Narrow(8)
    score(session, VOCAB, text(50), 10)
    assert session.widths == [8, 8, 8, 8, 8]


def test_no_more_guesses_are_made_than_the_session_can_take_back() -> None:
    session = Narrow(8, rollback=3)
    score(session, VOCAB, text(30), 10)
    assert max(session.widths) == 4


def test_a_draft_model_without_room_has_no_guess_for_the_rest() -> None:
    session = TableSession(VOCAB, seed=1, context=20)
    guesses, confidences = score(session, VOCAB, text(30), 10)
    assert (guesses[:10] != NO_GUESS).all()
    assert (guesses[10:] == NO_GUESS).all()
    assert (confidences[10:] == 0).all()


def test_ids_that_only_the_draft_model_has_are_never_guessed() -> None:
    guesses, _ = score(TableSession(VOCAB, seed=1), VOCAB // 2, text(60), 5)
    assert guesses.max() < VOCAB // 2


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
        {"id": 4},
        {"category": None},
    ],
    ids=str,
)
def test_a_damaged_file_is_told_as_one(tmp_path: Path, change: dict[str, Any]) -> None:
    file = tmp_path / "answers.json"
    save(file, [recorded([1, 2], [True, True])])
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
