"""What was chosen for a target is kept, used, and forgotten."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
import pytest
from tiny_models import TinyModels

from edgespec.cli.run import run
from edgespec.errors import EdgespecError
from edgespec.models.choices import (
    PROPOSERS,
    WITHOUT_DRAFT_MODEL,
    Choice,
    all_choices,
    as_chosen,
    check_room,
    chosen_for,
    forget,
    remember,
)
from edgespec.models.pairs import Pair
from edgespec.options import ProposerName

HERE = "0123456789ab"


@pytest.fixture(autouse=True)
def data_of_the_test(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("EDGESPEC_DATA_DIR", str(folder))
    return folder


@pytest.fixture
def target(tiny_models: TinyModels) -> Path:
    return tiny_models(layers=2)


@pytest.fixture
def draft(tiny_models: TinyModels) -> Path:
    return tiny_models(layers=2, noise=0.03)


def choice(draft: Path | None = None, **changes: Any) -> Choice:
    made = Choice(
        "t.gguf", draft, "auto", None, "2026-01-02T03:04:05+00:00", "12 answers", 31.0, 60.0, HERE
    )
    return replace(made, **changes)


def as_chosen_here(pair: Pair) -> tuple[Pair, Choice | None]:
    return as_chosen(pair, lambda target: HERE)


def test_a_choice_is_found_again_for_its_target_alone(target: Path, draft: Path) -> None:
    remember(target, choice(draft))
    assert chosen_for(target) == choice(draft)
    assert chosen_for(draft) is None
    assert list(all_choices()) == [choice(draft)]


def test_a_later_choice_takes_the_place_of_the_earlier(target: Path) -> None:
    remember(target, choice())
    remember(target, choice(proposer="none"))
    assert list(all_choices()) == [choice(proposer="none")]


def test_a_forgotten_choice_is_gone(target: Path) -> None:
    assert not forget(target)
    remember(target, choice())
    assert forget(target)
    assert chosen_for(target) is None


def test_the_file_is_the_users_alone(target: Path, data_of_the_test: Path) -> None:
    remember(target, choice())
    (file,) = (data_of_the_test / "choices").iterdir()
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "change",
    [
        {"proposer": "magic"},
        {"draft_tokens": 0},
        {"draft_tokens": 65},
        {"draft_tokens": True},
        {"draft": 7},
        {"basis": None},
        {"made_on": 7},
        {"chosen_at": "yesterday"},
        {"seconds": "many"},
        {"seconds": float("inf")},
        {"plain_seconds": float("nan")},
        {"seconds": -1},
        {"seconds": 10**400},
        {"draft": "/a\0b"},
        {"draft": ""},
        {"draft": "small.gguf"},
        {"draft": None, "proposer": "draft"},
        {"draft": "/a.gguf", "proposer": "ngram"},
        {"draft": "/a.gguf", "proposer": "none"},
    ],
    ids=str,
)
def test_a_damaged_choice_is_set_aside_with_one_note(
    target: Path, draft: Path, data_of_the_test: Path, change: dict[str, Any]
) -> None:
    remember(target, choice())
    (file,) = (data_of_the_test / "choices").iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(EdgespecError, match="holds no choice"):
        chosen_for(target)
    assert list(all_choices()) == []
    pair, found = as_chosen_here(Pair("p", target, draft))
    assert (pair.draft, found) == (draft, None)
    (note,) = pair.notes
    assert note.startswith("what 'edgespec tune' chose is not used: ")
    assert forget(target)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"\xff", b"[" * 100_000, b" " * (2 << 20)],
    ids=["nothing", "a list", "no text", "too deep", "too long"],
)
def test_a_file_that_holds_no_choice_is_one_note(
    target: Path, data_of_the_test: Path, content: bytes
) -> None:
    remember(target, choice())
    (file,) = (data_of_the_test / "choices").iterdir()
    file.write_bytes(content)
    pair, found = as_chosen_here(Pair("p", target))
    assert found is None
    assert len(pair.notes) == 1


def test_a_folder_in_the_place_of_a_draft_model_is_a_note(target: Path, tmp_path: Path) -> None:
    remember(target, choice(tmp_path))
    pair, found = as_chosen_here(Pair("p", target))
    assert (pair.draft, found) == (None, None)
    assert "is a folder" in pair.notes[0]


def test_a_folder_that_takes_no_choice_is_told_beforehand(
    target: Path, data_of_the_test: Path
) -> None:
    data_of_the_test.write_text("in the way")
    with pytest.raises(EdgespecError, match="cannot be written"):
        check_room(target)


def test_looking_whether_there_is_room_leaves_nothing_behind(
    target: Path, data_of_the_test: Path
) -> None:
    check_room(target)
    assert list((data_of_the_test / "choices").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="has no such files")
def test_a_pipe_in_the_place_of_a_choice_is_not_waited_for(
    target: Path, data_of_the_test: Path
) -> None:
    remember(target, choice())
    (file,) = (data_of_the_test / "choices").iterdir()
    file.unlink()
    os.mkfifo(file)
    assert as_chosen_here(Pair("p", target))[1] is None
    assert list(all_choices()) == []


def test_a_pair_gets_the_draft_model_that_was_chosen(target: Path, draft: Path) -> None:
    remember(target, choice(draft))
    pair, found = as_chosen_here(Pair("p", target))
    assert (pair.draft, pair.notes) == (draft, ())
    assert found == choice(draft)


def test_a_choice_without_a_draft_model_leaves_the_pairs_own_out(target: Path, draft: Path) -> None:
    remember(target, choice(proposer="ngram"))
    assert as_chosen_here(Pair("p", target, draft))[0].draft is None


@pytest.mark.parametrize("told", [{"made_on": "ba9876543210"}, {}], ids=["elsewhere", "not told"])
def test_what_was_chosen_on_another_device_or_build_is_not_used_and_that_is_said(
    target: Path, draft: Path, data_of_the_test: Path, told: dict[str, str]
) -> None:
    remember(target, choice(proposer="none"))
    (file,) = (data_of_the_test / "choices").iterdir()
    kept = json.loads(file.read_text())
    del kept["made_on"]
    file.write_text(json.dumps(kept | told))
    pair, found = as_chosen_here(Pair("p", target, draft))
    assert (pair.draft, found) == (draft, None)
    (note,) = pair.notes
    assert note.startswith("what 'edgespec tune' chose is not used: it is not known to hold for")
    assert [other.words for other in all_choices()] == ["plain decoding"]


def test_a_draft_model_that_vanished_is_a_note(target: Path, tmp_path: Path) -> None:
    remember(target, choice(tmp_path / "gone.gguf"))
    pair, found = as_chosen_here(Pair("p", target))
    assert (pair.draft, found) == (None, None)
    assert "'edgespec tune' chose is not used" in pair.notes[0]
    assert "gone.gguf" in pair.notes[0]


def test_a_draft_model_that_no_longer_fits_is_a_note(target: Path, tiny_models: TinyModels) -> None:
    remember(target, choice(tiny_models(layers=2, vocab=300)))
    pair, found = as_chosen_here(Pair("p", target))
    assert (pair.draft, found) == (None, None)
    assert pair.notes


def test_a_choice_says_itself_in_words() -> None:
    assert choice(Path("a/small.gguf")).words == "draft model small.gguf"
    assert choice(Path("small.gguf"), draft_tokens=4).words.endswith("always 4 guesses")
    assert choice(proposer="ngram").words == "n-gram alone"
    assert choice(proposer="none").words == "plain decoding"


@pytest.mark.parametrize(
    ("proposer", "words"),
    [("tree", "trees of n-grams and recycling"), ("recycling", "recycling alone")],
)
def test_trees_can_be_chosen_and_are_said_in_words(target: Path, proposer: str, words: str) -> None:
    remember(target, choice(proposer=proposer))
    kept = chosen_for(target)
    assert kept is not None
    assert (kept.proposer, kept.words) == (proposer, words)


def test_every_way_to_guess_can_be_chosen_wherever_one_is_named() -> None:
    (option,) = [o for o in run.params if o.name == "proposer"]
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == PROPOSERS == get_args(ProposerName)
    assert set(WITHOUT_DRAFT_MODEL) < set(PROPOSERS)
