"""A target asks and answers itself; what is kept of that is what it really said."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import CHATML, TinyModels

from edgespec import backends
from edgespec.backends import LoadedModel, Placement, SessionOptions
from edgespec.conversation import PromptEncoder
from edgespec.decoding.draft import EMPTY, ROOT, Row
from edgespec.errors import BadInput, CacheFull
from edgespec.testing import read
from edgespec.text.template import Message
from edgespec.train.batch import Batch, OffersBatches
from edgespec.train.choosing import drawn, nearest
from edgespec.train.harvest import (
    LONGEST_ANSWER,
    LONGEST_QUESTION,
    TEMPERATURE,
    Frame,
    Harvest,
    frames_of,
    held,
    loops,
    room_for,
)
from edgespec.train.records import NEAR, Record, Shelf

SLOTS, ROOM, WANTED = 4, 300, 12


@pytest.fixture(scope="module")
def model(tiny_models: TinyModels) -> LoadedModel:
    pytest.importorskip("llama_cpp")
    return backends.find("llamacpp").load(tiny_models(layers=2), Placement())


@pytest.fixture
def batch(model: LoadedModel) -> Batch:
    assert isinstance(model, OffersBatches)
    return model.batch(SLOTS, ROOM, threads=1)


@pytest.fixture(scope="module")
def records(model: LoadedModel) -> list[Record]:
    assert isinstance(model, OffersBatches)
    harvest = Harvest(model.batch(SLOTS, ROOM, threads=1), PromptEncoder(model.tokenizer), seed=1)
    return list(itertools.islice(harvest.records(), WANTED))


def test_a_slot_scores_as_a_session_of_its_own_does(model: LoadedModel, batch: Batch) -> None:
    rng = np.random.default_rng(0)
    texts = [rng.integers(0, 256, 20).tolist() for _ in range(SLOTS)]
    for n in range(12):
        rows = batch.step(range(SLOTS), [text[n] for text in texts])
    batch.forget(1)
    texts[1] = rng.integers(0, 256, 20).tolist()
    for n in range(8):
        rows = batch.step([1], [texts[1][n]])
    batch.step([3], [texts[3][12]])
    rows = batch.step([3, 1], [texts[3][13], texts[1][8]])
    alone = model.session(SessionOptions(context=64, threads=1))
    for row, text in zip(rows, (texts[3][:14], texts[1][:9]), strict=True):
        read(alone, text)
        assert np.abs(alone.verify(EMPTY).logits(ROOT) - row).max() < 0.05, "the cache is bf16"


def test_a_full_slot_says_so(batch: Batch) -> None:
    for _ in range(ROOM):
        batch.step([2], [5])
    with pytest.raises(CacheFull, match="Slot 2"):
        batch.step([2], [5])
    batch.forget(2)
    assert batch.step([2], [5]).shape[0] == 1


def test_every_record_is_a_question_in_the_models_frame_and_an_answer(
    model: LoadedModel, records: list[Record]
) -> None:
    frames = [
        Frame.of(PromptEncoder(model.tokenizer), s) for s in ("", "You are a helpful assistant.")
    ]
    for record in records:
        prompt = record.ids[: record.begun].tolist()
        assert any(
            prompt[: len(f.before)] == list(f.before) and prompt[-len(f.behind) :] == list(f.behind)
            for f in frames
        )
        assert len(record.answer) == len(record.near) == len(record.scores) >= 8


def test_what_was_said_is_among_what_was_near_and_greedy_answers_are_the_best(
    records: list[Record],
) -> None:
    assert {record.temperature for record in records} == {0.0, TEMPERATURE}
    for record in records:
        said = record.answer[:, None] == record.near
        assert said.any(axis=1).all()
        if not record.temperature:
            assert (record.answer == record.near[:, 0]).all()
        assert (record.scores[:, 0] == 0).all()
        assert (np.diff(record.scores.astype(np.float32), axis=1) <= 0).all()


def test_what_was_near_is_what_a_fresh_session_finds(
    model: LoadedModel, records: list[Record]
) -> None:
    alone = model.session(SessionOptions(context=ROOM, threads=1))
    for record in records[:3]:
        middle = len(record.answer) // 2
        read(alone, record.ids[: record.begun + middle].tolist())
        row = alone.verify(EMPTY).logits(ROOT)
        best = record.near[middle, 0]
        assert row.max() - row[best] < 0.05
        kept = record.scores[middle].astype(np.float32)
        assert np.abs(row[record.near[middle]] - row[best] - kept).max() < 0.1


def test_a_frame_with_the_question_put_in_is_the_models_own_prompt(model: LoadedModel) -> None:
    encoder = PromptEncoder(model.tokenizer)
    frame = Frame.of(encoder, "Be brief.")
    said = [Message("system", "Be brief."), Message("user", "why")]
    whole = encoder.encode(said, {}).tolist()
    question = model.tokenizer.encode("why", special=False)
    assert [*frame.before, *question, *frame.behind] == whole


class _Slots:
    """A batch of a model that says anything, and never that it is done."""

    def __init__(self, context: int, never: Sequence[int]) -> None:
        self.slots, self.context = SLOTS, context
        self._never, self._rng = list(never), np.random.default_rng(5)
        self.read = [0] * SLOTS

    def step(self, slots: Sequence[int], tokens: Sequence[int]) -> Row:
        for slot in slots:
            if self.read[slot] >= self.context:
                raise CacheFull(f"Slot {slot} is full.")
            self.read[slot] += 1
        rows = self._rng.standard_normal((len(slots), 384)).astype(np.float32)
        rows[:, self._never] = -100.0
        return rows

    def forget(self, slot: int) -> None:
        self.read[slot] = 0

    def close(self) -> None: ...


@pytest.fixture
def wordy(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> PromptEncoder:
    """Of a model whose template has a long system prompt of its own."""
    long = "the model wrote one word after the other, and kept it. " * 12
    monkeypatch.setattr(
        type(model.tokenizer),
        "template",
        lambda _: (
            "{% if messages[0]['role'] != 'system' %}<|im_start|>system\n"
            + f"{long}<|im_end|>\n{{% endif %}}{CHATML}"
        ),
    )
    return PromptEncoder(model.tokenizer)


def _harvested(encoder: PromptEncoder, context: int) -> list[Record]:
    batch = _Slots(context, list(encoder.tokenizer.end_tokens))
    return list(itertools.islice(Harvest(batch, encoder, seed=1).records(), 2 * SLOTS))


def test_a_long_system_prompt_of_the_template_takes_nothing_from_the_answers(
    wordy: PromptEncoder,
) -> None:
    frames = frames_of(wordy)
    room = room_for(frames)
    longest = max(frame.size for frame in frames)
    assert longest > 2 * min(frame.size for frame in frames) > 0
    assert room == longest + LONGEST_QUESTION + LONGEST_ANSWER
    records = _harvested(wordy, room)
    assert {len(record.answer) for record in records} == {LONGEST_ANSWER}


@pytest.mark.parametrize("left", [60, 100, 300])
def test_in_a_short_context_question_and_answer_share_what_the_frame_leaves(
    wordy: PromptEncoder, left: int
) -> None:
    context = max(frame.size for frame in frames_of(wordy)) + left
    for record in _harvested(wordy, context):
        assert left // 3 <= len(record.answer) <= context - record.begun


def test_a_frame_that_leaves_no_room_for_an_answer_is_not_used(wordy: PromptEncoder) -> None:
    sizes = sorted({frame.size for frame in frames_of(wordy)})
    assert len(sizes) == 2
    given_, own = sizes
    told = {record.begun for record in _harvested(wordy, own)}
    assert max(told) < own
    with pytest.raises(BadInput, match=f"template alone takes {given_} tokens, .* context of 60"):
        _harvested(wordy, 60)


@given(st.integers(0, 2**32 - 1), st.sampled_from([50, 300, 5000, 49152]))
def test_the_nearest_are_the_best_by_a_full_sort(seed: int, vocab: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((2, vocab)).astype(np.float32)
    ids, scores = nearest(rows)
    for row, found, score in zip(rows, ids, scores, strict=True):
        order = np.lexsort((np.arange(vocab), -row))[:NEAR]
        assert found.tolist() == order.tolist()
        assert np.allclose(score, row[order] - row[order[0]])


def test_tokens_are_drawn_as_often_as_the_sampler_says() -> None:
    scores = np.tile(np.log([0.5, 0.3, 0.15, 0.05]).astype(np.float32), (20_000, 1))
    scores -= scores[:, :1]
    chosen = drawn(scores, np.ones(20_000), np.random.default_rng(3))
    shares = np.bincount(chosen, minlength=4) / 20_000
    # top-p 0.95 keeps the first three
    assert np.abs(shares - np.array([0.5, 0.3, 0.15, 0.0]) / 0.95).max() < 0.015
    assert not drawn(scores, np.zeros(20_000), np.random.default_rng(3)).any()


def test_a_shelf_gives_back_what_was_put_on_it(tmp_path: Path, records: list[Record]) -> None:
    shelf = Shelf(tmp_path)
    shelf.add(records[:5])
    shelf.add(records[5:])
    found = list(Shelf(tmp_path))
    assert len(found) == len(records)
    for one, other in zip(found, records, strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.near.tolist() == other.near.tolist()
        assert (one.scores == other.scores).all()
        assert (one.begun, one.held, one.category) == (other.begun, other.held, other.category)


def test_a_damaged_shard_is_named(tmp_path: Path, records: list[Record]) -> None:
    path = Shelf(tmp_path).add(records)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BadInput, match=r"answers-00000\.npz"):
        list(Shelf(tmp_path))


def test_a_question_is_always_held_out_or_never() -> None:
    rng = np.random.default_rng(0)
    questions = [rng.integers(0, 999, 12).astype(np.int32) for _ in range(4000)]
    sides = [held(question) for question in questions]
    assert sides == [held(question.astype(np.int64)) for question in questions]
    assert 0.02 < np.mean(sides) < 0.04


@pytest.mark.parametrize("period", [1, 7, 40])
def test_saying_the_same_again_and_again_is_a_loop(period: int) -> None:
    before, round_ = [900, 901], list(range(period))
    assert loops(before + round_ * max(4, 24 // period + 1))
    assert not loops(before + round_ * 3 + [555])
    assert not loops(list(range(200)))
