"""A training ends the same wherever it was broken off, within its time and its memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_models import TinyModels
from train_trials import VOCAB, counting

from edgespec.errors import BadInput, OutOfMemory
from edgespec.train.records import Shelf
from edgespec.train.vocabulary import most_common

torch = pytest.importorskip("torch", reason="torch is in the extra 'train'")
torch.set_num_threads(1)

from edgespec.train import course  # noqa: E402
from edgespec.train.course import Course, Place, Watching, follow, place_of  # noqa: E402
from edgespec.train.fitting import Training  # noqa: E402
from edgespec.train.starting import begin_with, target_tables  # noqa: E402
from edgespec.train.student import Shape, Student  # noqa: E402

KEPT = most_common([counting(n) for n in range(64)], 90, VOCAB, always=(0, 299))
LONG, ROOM = 1e9, 8 << 30


def _training() -> Training:
    torch.manual_seed(0)
    return Training(Student(Shape(KEPT.size, 32, 2, 64, 2, 1, 16, context=64)), rate=1e-2)


@pytest.fixture
def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, ...]:
    """Four shards, of which two fit into memory at a time."""
    monkeypatch.setattr(course, "LESSON_TOKENS", 256)
    shelf = Shelf(tmp_path)
    paths = [shelf.add([counting(n + 16 * m) for n in range(16)]) for m in range(4)]
    one = course.bytes_in_memory(course.counted_shard(paths[0]))
    monkeypatch.setattr(course, "least_bytes", lambda shape: ROOM - 2 * one)
    return tuple(paths)


def _course(shards: tuple[Path, ...], seconds: float = LONG, passes: int = 2) -> Course:
    return Course(shards, KEPT, passes, seconds, ROOM, seed=3)


def _quiet(stop_after: int = 10**9) -> Watching:
    steps = iter(range(stop_after + 1))
    return Watching(lambda line: None, None, lambda: next(steps, None) == stop_after - 1)


def _weights(training: Training) -> list[torch.Tensor]:
    return list(training.student.parameters())


@pytest.mark.parametrize("stops", [(1,), (5, 3), (9, 1, 1)], ids=str)
def test_a_course_that_was_broken_off_ends_as_one_that_was_not(
    tmp_path: Path, shards: tuple[Path, ...], stops: tuple[int, ...]
) -> None:
    whole, place = _training(), Place()
    follow(_course(shards), whole, place, tmp_path / "whole.pt", _quiet())
    broken, at, kept = _training(), Place(), tmp_path / "broken.pt"
    for stop in stops:
        with pytest.raises(KeyboardInterrupt):
            follow(_course(shards), broken, at, kept, _quiet(stop))
        broken, about = Training.load(kept, 1e-2, shape=broken.student.shape)
        at = place_of(about)
    follow(_course(shards), broken, at, kept, _quiet())
    assert whole.steps == broken.steps > 20
    assert all(map(torch.equal, _weights(whole), _weights(broken)))
    assert at.passes + at.share == 2


def test_all_answers_but_those_held_out_are_learned_from_once_a_pass(
    shards: tuple[Path, ...],
) -> None:
    Shelf(shards[0].parent).add([counting(99, held=True)])
    every = tuple(Shelf(shards[0].parent).shards())
    shape = _training().student.shape
    made = [lesson for _, lesson in course._lessons(_course(every, passes=1), shape, Place())]
    assert sum(len(lesson.ids) for lesson in made) == 64
    again = [lesson for _, lesson in course._lessons(_course(every, passes=1), shape, Place())]
    assert all(map(torch.equal, [a.ids for a in made], [b.ids for b in again]))


def test_held_out_answers_are_looked_at_on_the_way_and_at_the_end(
    tmp_path: Path, shards: tuple[Path, ...]
) -> None:
    steps: list[int] = []

    def check(training: Training) -> tuple[float, float, float]:
        steps.append(training.steps)
        return 3.0, 4.0, 0.5

    training, place, told = _training(), Place(), list[str]()
    watching = Watching(told.append, check)
    follow(_course(shards), training, place, tmp_path / "c.pt", watching)
    assert 5 <= len(place.curve) == len(steps) <= 11
    assert steps[-1] == training.steps
    assert [row[1:] for row in place.curve] == [[3.0, 4.0, 0.5]] * len(steps)
    assert place.curve == sorted(place.curve)
    assert "held-out answers: loss 4.00, and 3.00 on others; 0.50 guesses accepted a round" in told


def test_a_course_ends_when_its_time_is_over(tmp_path: Path, shards: tuple[Path, ...]) -> None:
    training, place = _training(), Place()
    follow(_course(shards, seconds=1e-6), training, place, tmp_path / "c.pt", _quiet())
    assert training.steps == 1
    follow(_course(shards, seconds=1e-6), training, place, tmp_path / "c.pt", _quiet())
    assert training.steps == 2, "one step too many costs nothing"


def test_a_course_that_takes_more_than_its_memory_stops_and_keeps_what_it_learned(
    tmp_path: Path, shards: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = 64 << 20  # less than torch itself takes
    monkeypatch.setattr(course, "least_bytes", lambda shape: 0)
    tight = Course(shards, KEPT, 2, LONG, small, seed=3)
    with pytest.raises(OutOfMemory, match=r"more than the 0\.1 GiB of --memory"):
        follow(tight, _training(), Place(), tmp_path / "c.pt", _quiet())
    training, about = Training.load(tmp_path / "c.pt", 1e-2)
    assert training.steps == place_of(about).lesson == 1


@pytest.mark.parametrize(
    "about",
    [{}, {"passes": -1}, {"seconds": "1"}, {"curve": [[1]]}, {"curve": 3}, {"more": 0}],
    ids=str,
)
def test_a_checkpoint_that_does_not_tell_its_place_is_refused(about: dict[str, object]) -> None:
    if not about:
        assert place_of(about) == Place()
        return
    with pytest.raises(BadInput, match="does not tell how far it came"):
        place_of(about)


def test_a_checkpoint_of_another_shape_is_refused(tmp_path: Path) -> None:
    training = _training()
    training.save(tmp_path / "c.pt", {})
    other = Shape(KEPT.size + 32, 32, 2, 64, 2, 1, 16, context=64)
    with pytest.raises(BadInput, match=r"c\.pt cannot be gone on with .*another shape"):
        Training.load(tmp_path / "c.pt", 1e-2, shape=other)


def test_the_targets_tables_are_read_row_by_row(tiny_models: TinyModels) -> None:
    import gguf

    path = tiny_models(layers=2)
    ids = np.array([0, 5, 17, 300, 383], np.int32)
    tables = target_tables(path, ids)
    assert tables is not None
    real = {tensor.name: tensor.data for tensor in gguf.GGUFReader(path).tensors}
    for found, name in zip(tables, ("token_embd.weight", "output.weight"), strict=True):
        assert (found == real[name][ids]).all()
    assert target_tables(path, np.array([384], np.int32)) is None
    assert target_tables(path.parent, ids) is None


def test_the_tables_of_a_target_in_parts_are_found_in_whichever_part(tmp_path: Path) -> None:
    import gguf

    rng = np.random.default_rng(0)
    tables = [rng.standard_normal((40, 32)).astype(np.float32) for _ in range(2)]
    writer = gguf.GGUFWriter(tmp_path / "t", "llama", split_max_tensors=1)
    for name, table in zip(("token_embd.weight", "output.weight"), tables, strict=True):
        writer.add_tensor(name, table)
    writer.write_header_to_file(tmp_path / "t.gguf")
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    ids = np.array([0, 7, 39], np.int32)
    found = target_tables(tmp_path / "t-00001-of-00002.gguf", ids)
    assert found is not None
    assert all((rows == table[ids]).all() for rows, table in zip(found, tables, strict=True))


def test_a_drafter_begins_with_the_targets_neighbours_each_table_turned_its_own_way() -> None:
    rows = np.random.default_rng(0).standard_normal((60, 24)).astype(np.float32)
    student = Student(Shape(96, 32, 1, 64, 2, 1, 16, context=64))
    begin_with(student, rows, rows, seed=1)
    embedding, output = student.embedding.detach(), student.output.detach()
    assert float(embedding[:60].std()) == pytest.approx(1.0, abs=0.01)
    assert float(output[:60].std()) == pytest.approx(0.04, abs=0.001)
    centred = rows - rows.mean(0)
    near = torch.from_numpy(centred @ centred.T).flatten()
    for table in (embedding, output):
        assert not table[60:].any()
        kept = torch.corrcoef(torch.stack([near, (table[:60] @ table[:60].T).flatten()]))
        assert kept[0, 1] > 0.99
    same = torch.nn.functional.cosine_similarity(embedding[:60], output[:60])
    assert same.mean().abs() < 0.2
