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


def test_inputs_of_earlier_sessions_stand_before_those_of_this_one() -> None:
    inputs = history("three")
    inputs.begin_with(["one", "two"])
    assert [inputs.older("") for _ in range(4)] == ["three", "two", "one", None]


def test_only_the_latest_thousand_are_kept() -> None:
    inputs = history(*(str(n) for n in range(1200)))
    recalled = [text for _ in range(1200) if (text := inputs.older("")) is not None]
    assert recalled == [str(n) for n in range(1199, 199, -1)]
