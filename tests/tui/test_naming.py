# ruff: noqa: RUF001  the multiplication sign is meant
"""Where guesses come from: the same words everywhere."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_model import guessed

from edgespec.decoding.events import Guess
from edgespec.tui.command_line import parse
from edgespec.tui.commands import ChangeSpeculation
from edgespec.tui.naming import guesses_in_words, is_tree, proposer_name
from edgespec.tui.status import Drafting


def guess(parent: int, source: str) -> Guess:
    return Guess(1, parent, source, tested=True, accepted=False, text="a")


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("memory", "earlier answers"),
        ("ngram+memory", "n-gram + earlier answers"),
        ("x\x1b", "x\\x1b"),
    ],
)
def test_a_source_is_called_what_people_call_it(source: str, name: str) -> None:
    assert proposer_name(source) == name


def test_two_guesses_of_one_place_are_a_tree() -> None:
    chain, tree = (guess(-1, "draft"), guess(0, "draft")), (guess(-1, "draft"), guess(-1, "ngram"))
    assert not is_tree(chain)
    assert is_tree(tree)
    assert guesses_in_words(chain) == "draft model ×2"
    assert guesses_in_words(tree) == "draft model ×1 + n-gram ×1, a tree"


def test_the_status_line_names_every_source_of_a_merged_draft() -> None:
    guesses = (guess(-1, "ngram"), guess(0, "memory"))
    event = replace(guessed("a", "b", accepted=0), guesses=guesses, plan="auto → n-gram ×2")
    assert Drafting().after(event).plan == "auto → n-gram ×1 + earlier answers ×1"


@pytest.mark.parametrize("name", ["tree", "recycling"])
def test_spec_takes_the_newer_ways_to_guess(name: str) -> None:
    assert parse(f"/spec {name}") == ChangeSpeculation(name, None)
