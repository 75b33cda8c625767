"""Shards are believed only as far as they fit together, and memory holds few at a time."""

from __future__ import annotations

import itertools
import json
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_trials import VOCAB, counting

from edgespec.errors import BadInput
from edgespec.train.begun import Begun, Terms
from edgespec.train.records import NEAR, Census, Shelf, counted_shard, read_shard
from edgespec.train.windows import bytes_in_memory, windows

Parts = dict[str, Any]


def _last(parts: Parts, name: str, value: object) -> None:
    parts[name] = parts[name].copy()
    parts[name].flat[-1] = value


LIES: dict[str, Callable[[Parts], object]] = {
    "an answer without a beginning": lambda p: _last(p, "begun", 0),
    "an answer without an end": lambda p: _last(p, "begun", 46),
    "a longer text than there is": lambda p: _last(p, "lengths", 47),
    "a negative length": lambda p: _last(p, "lengths", -1),
    "an id beyond the vocabulary": lambda p: _last(p, "ids", VOCAB),
    "a near id beyond the vocabulary": lambda p: _last(p, "near", 60_000),
    "a score that is no number": lambda p: _last(p, "scores", np.nan),
    "fewer near tokens": lambda p: p.update(near=p["near"][:, : NEAR - 1]),
    "fewer scores": lambda p: p.update(scores=p["scores"][1:]),
    "no categories": lambda p: p.pop("category"),
    "one side for all": lambda p: p.update(held=p["held"][:1]),
    "words for ids": lambda p: p.update(ids=p["ids"].astype("U")),
    "pickled ids": lambda p: p.update(ids=np.array([{}], object)),
}


@pytest.fixture
def shard(tmp_path: Path) -> Path:
    return Shelf(tmp_path).add([counting(n, held=n == 2) for n in range(3)])


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_shard_that_lies_is_named_and_not_used(
    shard: Path, lie: Callable[[Parts], object]
) -> None:
    with np.load(shard) as file:
        parts = dict(file)
    lie(parts)
    np.savez(shard, **parts)
    with pytest.raises(BadInput, match=r"answers-00000\.npz holds no answers .*; delete it"):
        list(read_shard(shard, VOCAB))


def test_a_shard_that_would_unpack_to_more_than_memory_is_not_unpacked(
    shard: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgespec.train.records._MOST_BYTES", 1 << 20)
    with zipfile.ZipFile(shard, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("ids.npy", bytes(2 << 20))
    assert shard.stat().st_size < 1 << 16
    for read in (counted_shard, lambda path: list(read_shard(path))):
        with pytest.raises(BadInput, match="unpack to more than 1 MiB"):
            read(shard)


def test_a_shelf_counts_its_answers_without_reading_them(shard: Path) -> None:
    assert Shelf(shard.parent).census() == Census(3, 120, 40)


def test_other_files_on_a_shelf_are_left_alone(shard: Path) -> None:
    (shard.parent / "answers-new.npz").write_bytes(b"mine")
    shelf = Shelf(shard.parent)
    shelf.add([counting(9)])
    assert [path.name for path in shelf.shards()] == ["answers-00000.npz", "answers-00001.npz"]


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(50, 200), st.integers(0, 99))
def test_every_shard_is_in_one_window_and_no_window_is_larger_than_memory(
    sizes: list[int], most: int, seed: int
) -> None:
    shards = [(Path(f"{n}"), size) for n, size in enumerate(sizes)]
    made = windows(shards, most, np.random.default_rng(seed))
    assert sorted(path for window in made for path in window) == sorted(p for p, _ in shards)
    by_name = dict(shards)
    assert all(0 <= sum(by_name[path] for path in window) <= most for window in made)
    # no two neighbours would have gone together
    for one, other in itertools.pairwise(made):
        assert sum(by_name[path] for path in (*one, other[0])) > most


def test_a_shard_that_is_too_large_for_memory_is_said_so() -> None:
    shards = [(Path("answers-00007.npz"), 80 << 20)]
    with pytest.raises(BadInput, match=r"answers-00007\.npz takes 80 MiB.*leaves 40 MiB"):
        windows(shards, 40 << 20, np.random.default_rng(0))


def test_records_take_no_more_memory_than_is_counted_for_them() -> None:
    records = [counting(n, answer=300) for n in range(5)]
    real = sum(r.ids.nbytes + r.near.nbytes + r.scores.nbytes for r in records)
    census = Census(5, sum(len(r.answer) for r in records), 0)
    assert real <= bytes_in_memory(census) < 3 * real


TERMS = Terms(64, 7, ("self", "notes.txt"), "c0ffee")
BEGUN = Begun(VOCAB, [0, 3], TERMS, 12.5, 900, [0, 3, 9], ["answers-00000.npz"], [])


def test_what_was_begun_is_remembered(tmp_path: Path) -> None:
    assert Begun.load(tmp_path) is None
    BEGUN.save(tmp_path)
    assert Begun.load(tmp_path) == BEGUN


@pytest.mark.parametrize("text", ["", "[1]", "{", "\0", "[" * 100_000], ids=lambda text: text[:3])
def test_what_holds_no_note_of_a_training_is_refused_with_the_way_on(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / "begun.json").write_text(text)
    with pytest.raises(BadInput, match=r"begun\.json tells of no training .*; --fresh begins anew"):
        Begun.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"ids": [3, 0]},
        {"ids": [0, VOCAB]},
        {"always": ["0"]},
        {"answers": ["../../secret.npz"]},
        {"texts": [4]},
        {"vocab": 1 << 40},
        {"gathered_s": "long"},
        {"tokens": -1},
        {"terms": None},
        {"terms": asdict(TERMS) | {"seed": -1}},
        {"terms": asdict(TERMS) | {"most_ids": 0}},
        {"terms": asdict(TERMS) | {"data": [3]}},
        {"terms": asdict(TERMS) | {"data": 3}},
        {"more": 1},
    ],
    ids=str,
)
def test_a_note_of_a_training_that_makes_no_sense_is_refused(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    (tmp_path / "begun.json").write_text(json.dumps(asdict(BEGUN) | change))
    with pytest.raises(BadInput, match=r"begun\.json tells of no training .*--fresh begins anew"):
        Begun.load(tmp_path)
