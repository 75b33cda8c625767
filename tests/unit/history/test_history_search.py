"""A search takes words, and nothing in them is syntax."""

from __future__ import annotations

import pytest
from history_fakes import answer

from edgespec.history import History, State

HOSTILE = [
    '"', "'", '""', '""""', '"quoted"', 'say"hi"there', 'a" OR "b', "NEAR(a b)", "rust*", "^rust",
    "content:rust", "texts:rust",
    "-rust", "{rust sql}", "rust AND", "OR", "NOT rust", "(((", "a:b:c", "%", "_", "!", "100%",
    "a_b", "!_", "\\", "\\%", "c++", "[]", "x'00'", "'; DROP TABLE messages; --", "?", "?1", ":a",
    "速度", "ñ", "😀👍", "é́",
]  # fmt: skip


def found(history: History, text: str) -> list[int]:
    return [summary.id for summary in history.search(text, 50)]


def said(history: History, text: str) -> int:
    conversation = history.new()
    conversation.say(text)
    conversation.rename("another title")
    return conversation.id


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_finds_itself_and_nothing_else(history: History, text: str) -> None:
    said(history, "rust sql messages drop table near content texts")
    here = said(history, f"before {text} behind")
    said(history, "something else")
    assert found(history, text) == [here]


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "\0 \0"])
def test_a_search_for_nothing_finds_nothing(history: History, text: str) -> None:
    said(history, "something")
    assert found(history, text) == []


@pytest.mark.parametrize("text", ["\ud800", "word \udcff", "x" * 100_000, "word " * 10_000, "\0q"])
def test_what_no_message_holds_finds_nothing(history: History, text: str) -> None:
    said(history, "some thing")
    assert found(history, text) == []


def test_all_words_must_stand_in_one_message_in_any_order(history: History) -> None:
    conversation = history.new()
    conversation.say("a quick brown fox")
    answer(conversation, "a lazy dog")
    assert found(history, "fox quick") == [conversation.id]
    assert found(history, "fox dog") == []
    assert found(history, "fox zz") == []


def test_parts_of_words_and_other_cases_are_found(history: History) -> None:
    here = said(history, "Die Übergrößenträger and snake_case_name")
    for text in ("übergrößen", "TRÄGER", "case_na", "größ snake"):
        assert found(history, text) == [here]


def test_titles_are_searched_as_well(history: History) -> None:
    conversation = history.new()
    conversation.say("first line")
    conversation.rename("Äpfel und Birnen")
    for text in ("äpfel", "BIRNEN und", "un"):
        assert found(history, text) == [conversation.id]
    assert found(history, "äpfel first") == []


def test_a_conversation_is_listed_once_with_what_stands_around_its_newest_hit(
    history: History,
) -> None:
    conversation = history.new()
    conversation.say("needle one")
    conversation.say("x " * 100 + "the Needle\nhere " + "y " * 100)
    (summary,) = history.search("needle", 5)
    assert summary.messages == 2
    assert "the Needle here" in summary.snippet
    assert summary.snippet.startswith("…x x")
    assert summary.snippet.endswith("y y…")


def test_the_last_changed_comes_first_and_the_limit_holds(history: History) -> None:
    numbers = [said(history, f"needle {number}") for number in range(5)]
    assert found(history, "needle") == numbers[::-1]
    assert [s.id for s in history.search("needle", 2)] == numbers[:2:-1]


def test_an_answer_is_found_once_it_is_whole_and_as_it_is_now(history: History) -> None:
    conversation = history.new()
    conversation.say("question")
    begun = conversation.begin_answer("m", 1)
    conversation.write(begun.id, "first wording", ())
    assert found(history, "wording") == []
    conversation.finish(begun.id, "first wording", (), State.WHOLE, {})
    assert found(history, "wording") == [conversation.id]
    conversation.write(begun.id, "first wording, then more", ())
    conversation.finish(begun.id, "second phrase", (), State.CUT, {})
    assert found(history, "wording") == []
    assert found(history, "phrase") == [conversation.id]


def test_only_the_beginning_of_a_very_long_message_is_searched(history: History) -> None:
    conversation = history.new()
    conversation.say("beginning " + "padding " * 10_000 + "theend")
    assert found(history, "beginning") == [conversation.id]
    assert found(history, "theend") == []
    history.delete(conversation.id)
    assert found(history, "beginning") == []
