"""Walking through earlier inputs."""

from __future__ import annotations

from composing import ComposerApp

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
    walked = [inputs.newer("one"), inputs.newer("two"), inputs.newer("a draft")]
    assert walked == ["two", "a draft", None]


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


def test_an_input_that_was_changed_in_passing_waits_where_it_stands_as_the_draft_does() -> None:
    inputs = history("one", "two")
    inputs.older("a draft")
    assert inputs.older("two, changed") == "one"
    assert inputs.newer("one") == "two, changed"
    assert inputs.newer("two, changed") == "a draft"
    assert inputs.older("a draft") == "two, changed"


def test_an_input_that_was_emptied_or_has_waited_until_another_was_sent_is_as_it_was() -> None:
    inputs = history("one", "two")
    inputs.older("a draft")
    inputs.older("")
    assert inputs.newer("one, changed") == "two"
    inputs.add("three")
    assert [inputs.older(""), inputs.older("three"), inputs.older("two")] == ["three", "two", "one"]


async def test_a_message_of_a_foreign_history_is_recalled_without_what_moves_the_cursor() -> None:
    app = ComposerApp()
    async with app.run_test() as pilot:
        app.composer.remember(["a\x1b[2Jb", "\x1b]52;c;aGk=\x07/etc", "\x1b[2J"])
        await pilot.press("up")
        assert app.composer.box.text == "//etc"
        await pilot.press("up")
        assert app.composer.box.text == "ab"
