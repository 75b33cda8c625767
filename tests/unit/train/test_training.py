"""A small llama learns what a target would say, and stays the same model however it is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from train_trials import VOCAB, counting

from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.testing import read
from edgespec.train.judging import (
    GUESSES,
    Tally,
    by_model,
    by_ngram,
    first_of,
    total,
    walked,
)
from edgespec.train.records import CONTEXT, NEAR, Record, Shelf
from edgespec.train.vocabulary import most_common

torch = pytest.importorskip("torch", reason="torch is in the extra 'train'")
torch.set_num_threads(1)

RECORDS = [counting(seed) for seed in range(64)]
KEPT = most_common(RECORDS, 90, VOCAB, always=(0, 299))


def _student() -> object:
    from edgespec.train.student import Shape, Student

    torch.manual_seed(0)
    return Student(Shape(KEPT.size, 32, 2, 64, 2, 1, 16, context=64))


def test_the_commonest_tokens_are_kept_and_those_that_must_be() -> None:
    assert len(KEPT.ids) == 90
    assert {0, 299} <= set(KEPT.ids.tolist())
    table = KEPT.table()
    assert (table[KEPT.ids] == np.arange(90)).all()
    assert (np.delete(table, KEPT.ids) == KEPT.unknown).all()
    assert KEPT.size % 32 == 0
    assert KEPT.size > KEPT.unknown


def test_a_lesson_says_what_the_target_would_say_among_the_tokens_it_knows() -> None:
    from edgespec.train.lessons import TEMPERATURE, lesson

    made = lesson(RECORDS[:3], KEPT, KEPT.table())
    assert made.at.sum() == len(made.wanted) == 120
    own = KEPT.table()
    place, record = 0, RECORDS[0]
    p = np.exp(record.scores[place].astype(float) / TEMPERATURE)
    known = own[record.near[place]] != KEPT.unknown
    expected = np.where(known, p, 0) / p[known].sum()
    assert np.allclose(made.share[place].numpy(), expected, atol=1e-6)
    assert made.ids[0, : len(record.ids)].tolist() == own[record.ids].tolist()


def test_what_was_gathered_beyond_a_drafters_context_is_learned_from_as_far_as_that(
    tmp_path: Path,
) -> None:
    from edgespec.train.fitting import Training
    from edgespec.train.lessons import lesson
    from edgespec.train.student import Shape, Student

    shelf = Shelf(tmp_path)
    shelf.add([counting(0), counting(1, answer=CONTEXT), counting(2, begun=CONTEXT)])
    whole, cut = shelf
    assert whole.ids.tolist() == counting(0).ids.tolist()
    assert cut.ids.tolist() == counting(1, answer=CONTEXT).ids[:CONTEXT].tolist()
    assert len(cut.answer) == len(cut.near) == len(cut.scores) == CONTEXT - cut.begun
    student = Student(Shape(KEPT.size, 32, 2, 64, 2, 1, 16))
    step = Training(student, rate=1e-2).step(lesson([cut], KEPT, KEPT.table()), 0.0)
    assert step.places == CONTEXT - cut.begun
    assert np.isfinite(step.loss)


def test_it_learns() -> None:
    from edgespec.train.examining import guesses
    from edgespec.train.fitting import Training
    from edgespec.train.lessons import lessons

    training = Training(_student(), rate=1e-2)
    rng, losses = np.random.default_rng(0), []
    for epoch in range(12):
        for lesson in lessons(RECORDS, KEPT, 512, rng):
            losses.append(training.step(lesson, epoch / 12).loss)
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    unseen = [counting(seed) for seed in range(100, 116)]
    found, loss = guesses(training.student, unseen, KEPT, "cpu")
    answers = np.concatenate([record.answer for record in unseen])
    known = np.isin(answers, KEPT.ids)
    assert ((np.concatenate(found) == answers)[known]).mean() > 0.5
    assert loss < losses[0]


def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    from edgespec.train.fitting import Training
    from edgespec.train.lessons import lessons

    made = list(lessons(RECORDS, KEPT, 512, np.random.default_rng(1)))
    whole = Training(_student(), rate=1e-2)
    for n, lesson in enumerate(made):
        if n == 2:
            whole.save(tmp_path / "half.pt", {"seen": n})
        whole.step(lesson, 0.1)
    resumed, about = Training.load(tmp_path / "half.pt", rate=1e-2)
    assert about == {"seen": 2}
    for lesson in made[2:]:
        resumed.step(lesson, 0.1)
    for one, other in zip(whole.student.parameters(), resumed.student.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_checkpoint_that_is_none_is_refused(tmp_path: Path) -> None:
    from edgespec.errors import BadInput
    from edgespec.train.fitting import Training

    path = tmp_path / "half.pt"
    for content in (b"", b"PK\x03\x04 nonsense", b"\x80\x02cos\nsystem\n."):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=r"half\.pt"):
            Training.load(path, rate=1e-2)


def test_llama_cpp_scores_the_exported_file_as_torch_does(tmp_path: Path) -> None:
    pytest.importorskip("llama_cpp")
    from edgespec import backends
    from edgespec.backends import Placement, SessionOptions
    from edgespec.train.exporting import write_gguf

    student = _student()
    path = tmp_path / "drafter.gguf"
    write_gguf(path, student, KEPT, name="count", target="abc")
    model = backends.find("llamacpp").load(path, Placement())
    session = model.session(SessionOptions(64, threads=1, kv_type="f32", flash_attention="off"))
    ids = [3, 17, 5, 60, 2, 44, 9, 31]
    with torch.no_grad():
        rows = student.scores(student(torch.tensor([ids])))[0].numpy()
    read(session, ids)
    row = session.verify(EMPTY).logits(ROOT)
    assert np.corrcoef(row, rows[-1])[0, 1] > 0.999, "8-bit weights round"
    assert row.argmax() == rows[-1].argmax()
    session.reset()
    read(session, ids[:3])
    scores = session.verify(Draft.chain(ids[3:6], "test"))
    for node in range(-1, 3):
        assert np.corrcoef(scores.logits(node), rows[3 + node])[0, 1] > 0.999
    model.close()


def test_rounds_are_counted_as_a_run_would_make_them() -> None:
    chains = np.array(
        [[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1], [-1, -1, -1, -1], [0, 0, 0, 0], [1, -1, -1, -1]],
        np.int8,
    )
    # places 0 (two right, third wrong), 3 (no guess), 4 (wrong at once), 5 (right)
    tally = walked(chains)
    assert tally == Tally(4, (2, 1, 0, 0), (3, 1, 1, 0))
    assert tally.mean == 0.75
    assert total([tally, tally]) == Tally(8, (4, 2, 0, 0), (6, 2, 2, 0))


def test_chains_of_a_model_that_is_always_right_take_all_in_few_rounds() -> None:
    record = counting(1)
    tally = walked(by_model(record.answer, record))
    assert tally.rounds == len(record.answer) // (GUESSES + 1)
    assert tally.rates() == [1.0] * GUESSES
    wrong = walked(by_model(record.answer + 1, record))
    assert (wrong.mean, wrong.rounds) == (0.0, len(record.answer))


def test_the_n_gram_finds_only_what_came_before() -> None:
    text = np.tile(np.arange(10), 5).astype(np.int32)
    record = Record(
        text,
        12,
        np.zeros((38, NEAR), np.int32),
        np.zeros((38, NEAR), np.float16),
        0.0,
        "loop",
        held=True,
    )
    assert walked(by_ngram(record)).mean > 3
    fresh = Record(np.arange(50, dtype=np.int32), 12, record.near, record.scores, 0.0, "new", True)
    assert (by_ngram(fresh) == -1).all()
    both = first_of(by_ngram(fresh), by_model(fresh.answer, fresh))
    assert walked(both).rates() == [1.0] * GUESSES
