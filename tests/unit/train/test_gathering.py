"""Answers and texts come onto the shelf until it is enough, and stay there whatever happens."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from interrupting import interrupted_everywhere
from tiny_models import TinyModels
from train_trials import counting

from edgespec import backends
from edgespec.backends import LoadedModel, Placement, SessionOptions
from edgespec.decoding.draft import EMPTY, ROOT
from edgespec.errors import EdgespecError
from edgespec.models.gguf import read_header
from edgespec.models.header import GgufHeader
from edgespec.testing import read
from edgespec.train import gathering
from edgespec.train.batch import OffersBatches
from edgespec.train.gathering import Enough, Gathering, slots_within
from edgespec.train.reading import FILES, passages, readings, unread
from edgespec.train.records import Record, Shelf

TEXT = "the user asked for a short answer and the model wrote one word after the other. " * 12


def _gathering(folder: Path) -> Gathering:
    return Gathering(Shelf(folder), lambda line: None, lambda seconds: None)


def _endless() -> Iterator[list[Record]]:
    """A record with every other pass."""
    return ([counting(n)] if n % 2 else [] for n in itertools.count())


def test_it_is_over_once_there_are_enough_tokens_those_of_before_included(tmp_path: Path) -> None:
    _gathering(tmp_path).gather(_endless(), Enough(100, 1e9))
    assert Shelf(tmp_path).census().tokens == 120
    _gathering(tmp_path).gather(_endless(), Enough(200, 1e9))
    assert Shelf(tmp_path).census().tokens == 200
    _gathering(tmp_path).gather(_endless(), Enough(200, 1e9))
    assert len(Shelf(tmp_path).shards()) == 2


def test_it_is_over_once_the_time_is_up(tmp_path: Path) -> None:
    _gathering(tmp_path).gather(_endless(), Enough(100, 0.0))
    assert Shelf(tmp_path).census().tokens == 0


def test_passes_in_which_nothing_ends_take_time_too(tmp_path: Path) -> None:
    _gathering(tmp_path).gather(itertools.repeat([]), Enough(100, 0.05))
    assert not Shelf(tmp_path).shards()


def test_shards_are_written_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "_SHARD_TOKENS", 100)
    _gathering(tmp_path).gather(_endless(), Enough(480, 1e9))
    assert len(Shelf(tmp_path).shards()) == 4


def test_what_was_taken_is_kept_when_it_is_broken_off(tmp_path: Path) -> None:
    def failing() -> Iterator[list[Record]]:
        yield [counting(0)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _gathering(tmp_path).gather(failing(), Enough(480, 1e9))
    assert Shelf(tmp_path).census().answers == 1


def _named(count: int) -> Iterator[list[Record]]:
    """A record with each pass, that can be told from the others."""
    return ([replace(counting(n), category=str(n))] for n in range(count))


def _names(folder: Path) -> list[str]:
    return [record.category for record in Shelf(folder)]


# a file that Ctrl+C left open is closed once nobody has it
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("room", ["edgespec/train/", "edgespec/models/store.py"])
def test_ctrl_c_at_any_line_loses_no_shard_and_writes_none_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    monkeypatch.setattr(gathering, "_SHARD_TOKENS", 100)
    folder, taken = tmp_path / "answers", list[str]()

    def empty() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        taken.clear()

    def noting(passes: Iterator[list[Record]]) -> Iterator[list[Record]]:
        for records in passes:
            taken.extend(record.category for record in records)
            yield records

    def gather() -> None:
        _gathering(folder).gather(noting(_named(8)), Enough(1000, 1e9))

    for place in interrupted_everywhere(room, gather, empty):
        # what it was just being handed may be missing
        assert _names(folder) in (taken, taken[:-1]), place
    empty()
    gather()
    assert len(Shelf(folder).shards()) == 3


def test_a_shard_is_written_once_where_its_time_cannot_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "_SHARD_TOKENS", 100)

    def full(seconds: float) -> None:
        raise EdgespecError("No space left")

    with pytest.raises(EdgespecError, match="No space left"):
        Gathering(Shelf(tmp_path), lambda line: None, full).gather(_named(8), Enough(1000, 1e9))
    assert _names(tmp_path) == ["0", "1", "2"]


def test_time_in_which_nothing_ended_is_counted_too(tmp_path: Path) -> None:
    counted: list[float] = []
    nothing = Gathering(Shelf(tmp_path), lambda line: None, counted.append)
    nothing.gather(itertools.repeat([]), Enough(100, 0.05))
    assert sum(counted) >= 0.05


@pytest.fixture(scope="module")
def model(tiny_models: TinyModels) -> Iterator[LoadedModel]:
    pytest.importorskip("llama_cpp")
    model = backends.find("llamacpp").load(tiny_models(layers=2), Placement())
    yield model
    model.close()


def test_a_text_is_scored_as_a_session_would_score_it(model: LoadedModel) -> None:
    assert isinstance(model, OffersBatches)
    pieces = passages(TEXT, model.tokenizer, 40)
    assert len(pieces) > 4
    whole, read_ = model.tokenizer.encode(TEXT, special=False), np.concatenate(pieces).tolist()
    assert read_ == whole[: len(read_)]
    assert len(whole) - len(read_) < 16, "a few tokens at the end are left out"
    found = [r for ended in readings(model.batch(4, 40, threads=1), pieces) for r in ended]
    assert sorted(r.ids.tobytes() for r in found) == sorted(p.tobytes() for p in pieces)
    alone = model.session(SessionOptions(context=128, threads=1))
    for record in found[::3]:
        assert (record.begun, record.category) == (1, FILES)
        for at in (0, len(record.answer) // 2, len(record.answer) - 1):
            read(alone, record.ids[: 1 + at].tolist())
            row = alone.verify(EMPTY).logits(ROOT)
            assert row.max() - row[record.near[at, 0]] < 0.05, "the cache is bf16"


def test_what_was_read_before_is_not_read_again(model: LoadedModel) -> None:
    pieces = passages(TEXT, model.tokenizer, 40)
    assert len(unread(pieces, {pieces[1].tobytes()})) == len(pieces) - 1


def test_less_memory_means_fewer_texts_at_a_time(tiny_models: TinyModels) -> None:
    header = read_header(tiny_models(layers=2))
    assert isinstance(header, GgufHeader)
    sizes = (0, 8, 290, 295, 310, 1024)
    slots = [slots_within(header.needs(), mib << 20, 640) for mib in sizes]
    assert slots[0] == 0
    assert slots == sorted(slots)
    assert slots[-1] == 64
    assert slots_within(header.needs(), 310 << 20, 64_000) < slots[4], "so do longer ones"
