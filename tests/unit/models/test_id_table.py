"""A drafter that knows some of a target's tokens says which, and for which target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_bytes import MODEL, Gguf
from hypothesis import given
from hypothesis import strategies as st

from edgespec.errors import IncompatiblePair, ModelFileError
from edgespec.models.compat import check_vocabularies
from edgespec.models.gguf import read_header
from edgespec.models.id_table import IDS_KEY, VOCABULARY_KEY, id_table, vocabulary_digest

TOKENS = ["a", "b", "ab", "<|end|>"]
HERE = Path("drafter.gguf")
DIGEST = vocabulary_digest([t.encode() for t in TOKENS])
NO_TOKENS = {key: value for key, value in MODEL.items() if not key.startswith("tokenizer.")}


def _drafter(path: Path, ids: Any, vocabulary: Any = DIGEST, rows: int = 4) -> Path:
    more = {IDS_KEY: ids, VOCABULARY_KEY: vocabulary, "llama.vocab_size": rows}
    return Gguf(NO_TOKENS | more).write(path)


def _target(path: Path, tokens: list[str] = TOKENS) -> Path:
    kinds = [1] * len(tokens)
    own = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": kinds}
    return Gguf(dict(MODEL) | own).write(path)


def test_a_drafter_made_for_this_vocabulary_goes_with_it(tmp_path: Path) -> None:
    drafter = read_header(_drafter(tmp_path / "d.gguf", [0, 2, 3]))
    assert drafter.id_table is not None
    assert drafter.id_table.ids.tolist() == [0, 2, 3]
    assert drafter.id_table.unknown == 3
    found = check_vocabularies(read_header(_target(tmp_path / "t.gguf")), drafter)
    assert found.shared == 4
    assert found.note == "the draft knows 3 of the target's 4 tokens"


def test_a_drafter_made_for_another_vocabulary_is_refused(tmp_path: Path) -> None:
    drafter = read_header(_drafter(tmp_path / "d.gguf", [0, 2]))
    other = read_header(_target(tmp_path / "t.gguf", ["a", "b", "ba", "<|end|>"]))
    with pytest.raises(IncompatiblePair, match="trained for a model with another vocabulary"):
        check_vocabularies(other, drafter)


def test_a_table_of_ids_that_the_target_lacks_is_refused(tmp_path: Path) -> None:
    drafter = read_header(_drafter(tmp_path / "d.gguf", [0, 4]))
    with pytest.raises(IncompatiblePair, match="id table names id 4, and the target has 4"):
        check_vocabularies(read_header(_target(tmp_path / "t.gguf")), drafter)


def test_a_target_without_a_vocabulary_takes_no_such_drafter(tmp_path: Path) -> None:
    drafter = read_header(_drafter(tmp_path / "d.gguf", [0, 2]))
    bare = read_header(Gguf(NO_TOKENS | {"llama.vocab_size": 4}).write(tmp_path / "t.gguf"))
    with pytest.raises(IncompatiblePair, match="another vocabulary"):
        check_vocabularies(bare, drafter)


@pytest.mark.parametrize(
    ("ids", "vocabulary", "rows"),
    [
        ([0, 2], "", 4),
        ([0, 2], "\x1b[2Jgone", 4),
        ([0, 2], 7, 4),
        ("0 2", DIGEST, 4),
        ([2, 0], DIGEST, 4),
        ([1, 1], DIGEST, 4),
        ([0, 1 << 24], DIGEST, 4),
        ([0, 1, 2], DIGEST, 3),
        (None, DIGEST, 4),
    ],
    ids=["no digest", "control", "number", "text", "falls", "twice", "huge", "no room", "missing"],
)
def test_a_table_that_makes_no_sense_is_a_damaged_file(
    tmp_path: Path, ids: Any, vocabulary: Any, rows: int
) -> None:
    path = tmp_path / "d.gguf"
    entries = {IDS_KEY: ids, VOCABULARY_KEY: vocabulary, "llama.vocab_size": rows}
    Gguf(NO_TOKENS | {k: v for k, v in entries.items() if v is not None}).write(path)
    with pytest.raises(ModelFileError, match=r"d\.gguf: its id table .* damaged"):
        _ = read_header(path).id_table


def test_a_model_without_a_table_has_none(tmp_path: Path) -> None:
    assert read_header(_target(tmp_path / "t.gguf")).id_table is None


@given(st.lists(st.integers(-3, 40), max_size=8), st.integers(0, 12))
def test_only_ascending_ids_that_leave_room_for_the_others_are_a_table(
    ids: list[int], rows: int
) -> None:
    sound = ids and ids[0] >= 0 and ids == sorted(set(ids)) and len(ids) < rows
    for spelled in (ids, np.array(ids, np.int32)):
        if sound:
            table = id_table(HERE, spelled, DIGEST, rows)
            assert table is not None
            assert table.ids.tolist() == ids
        else:
            with pytest.raises(ModelFileError):
                id_table(HERE, spelled, DIGEST, rows)


@pytest.mark.parametrize("ids", [[True, False], [0.5], ["1"], {}, [[0]], [10**30]])
def test_what_a_config_may_hold_in_place_of_ids_is_turned_down(ids: Any) -> None:
    with pytest.raises(ModelFileError):
        id_table(HERE, ids, DIGEST, 9)


words = st.lists(st.binary(max_size=6), max_size=6)


@given(words, words, st.integers(0, 4))
def test_a_digest_tells_vocabularies_apart_but_not_their_padding(
    one: list[bytes], other: list[bytes], pads: int
) -> None:
    padded = [*one, *(b"[PAD%d]" % n for n in range(pads))]
    assert vocabulary_digest(padded) == vocabulary_digest(one)
    assert (vocabulary_digest(one) == vocabulary_digest(other)) == (one == other)
