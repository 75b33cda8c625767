"""Walking through earlier inputs."""

from __future__ import annotations

from edgespec.tui.input_history import InputHistory


def history(*texts: str) -> InputHistory:
    inputs = InputHistory()
    for text in texts:
        inputs.add(text)
    return inputs


def test_it_walks_back_to_the_oldest_and_no_further() -> None:
    inputs = history("one", "two")
    assert [inputs.older(""), inputs.older(""), inputs.older("")] == ["two", "one", None]


def test_it_walks_forward_to_the_unsent_draft() -> None:
    inputs = history("one", "two")
    inputs.older("a draft")
    inputs.older("two")
    assert [inputs.newer(), inputs.newer(), inputs.newer()] == ["two", "a draft", None]


def test_the_same_input_twice_in_a_row_is_kept_once() -> None:
    inputs = history("one", "one")
    assert [inputs.older(""), inputs.older("")] == ["one", None]


def test_sending_returns_to_the_end() -> None:
    inputs = history("one", "two")
    inputs.older("")
    inputs.older("")
    inputs.add("three")
    assert inputs.older("") == "three"
