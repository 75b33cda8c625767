"""What is said is there again when the history is opened again."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from history_fakes import answer, texts

from edgespec.bench.conversations import ConversationFile
from edgespec.errors import BadInput, NotFound
from edgespec.history import Attachment, History, State
from edgespec.text.template import Message

Open = Callable[[], History]


def test_a_message_is_kept_with_all_that_belongs_to_it(
    history: History, open_history: Open
) -> None:
    conversation = history.new("Answer briefly.")
    said = conversation.say("Read this.", [Attachment("a.txt", "text\n", 3), Attachment("b", "")])
    begun = conversation.begin_answer("m\x1b.gguf", 2**63 - 1, 4)
    stats = {"tokens_per_second": 3.5, "nested": [1, {"a": None}], "odd": float("nan")}
    ended = conversation.finish(begun.id, "Done \0 ☃", (0, 151_935), State.CUT, stats)
    again = open_history().load(conversation.id)
    assert again.path == (said, again.path[1])
    kept = again.path[1]
    assert (kept.content, kept.ids, kept.state) == (ended.content, ended.ids, State.CUT)
    assert (kept.model, kept.seed, kept.branch) == ("m\x1b.gguf", 2**63 - 1, 4)
    assert kept.stats == stats | {"odd": None}
    assert (again.title, again.system) == ("Read this.", "Answer briefly.")


def test_nothing_is_kept_before_the_first_message(history: History) -> None:
    conversation = history.new("Answer briefly.")
    conversation.set_system("At length.")
    conversation.rename("Mine")
    assert conversation.id == 0
    assert history.recent(5) == []
    conversation.say("Hi")
    assert [(s.id, s.title) for s in history.recent(5)] == [(conversation.id, "Mine")]
    assert history.load(conversation.id).system == "At length."


def test_an_answer_is_kept_while_it_is_written(history: History, open_history: Open) -> None:
    conversation = history.new()
    conversation.say("Go on.")
    begun = conversation.begin_answer("m", None)
    conversation.write(begun.id, "One", (1,))
    seen = open_history().load(conversation.id).path[1]
    assert (seen.content, seen.ids, seen.state) == ("One", (1,), State.CUT)
    assert conversation.path[1].state is State.WRITING
    conversation.write(begun.id, "One two", (1, 2))
    conversation.finish(begun.id, "One two three", (1, 2, 3), State.WHOLE, {})
    assert history.load(conversation.id).path[1].state is State.WHOLE


def test_which_vocabulary_an_answer_is_in_is_kept_from_its_beginning_on(
    history: History, open_history: Open
) -> None:
    conversation = history.new()
    conversation.say("Go on.")
    begun = conversation.begin_answer("m\x1b", 1, vocabulary="0f")
    conversation.write(begun.id, "One", (1,))
    (_, cut) = open_history().load(conversation.id).path
    conversation.finish(begun.id, "One two", (1, 2), State.WHOLE, {"completion_tokens": 2})
    (_, whole) = open_history().load(conversation.id).path
    assert whole.stats == {"vocabulary": "0f", "completion_tokens": 2}
    for kept in (cut, whole):
        assert kept.is_by("m", "0f")
        assert not kept.is_by("m", "1e")
        assert not kept.is_by("other", "0f")


def test_an_answer_from_before_the_vocabulary_was_kept_goes_by_the_name(
    history: History, open_history: Open
) -> None:
    conversation = history.new()
    conversation.say("Go on.")
    answer(conversation, "An answer")
    (_, kept) = open_history().load(conversation.id).path
    assert kept.is_by("model.gguf", "0f")
    assert not kept.is_by("other.gguf", "0f")


@pytest.mark.parametrize("vocabulary", ["null", "0", "[]", '{"a": 1}', '"1e"'])
def test_a_vocabulary_that_is_none_is_not_this_one(
    history: History, path: Path, vocabulary: str
) -> None:
    conversation = history.new()
    conversation.say("Go on.")
    begun = conversation.begin_answer("m", 1, vocabulary="0f")
    conversation.finish(begun.id, "Done", (1,), State.WHOLE, {})
    with closing(sqlite3.connect(path)) as file, file:
        stats = f'{{"vocabulary": {vocabulary}}}'
        file.execute("UPDATE messages SET stats = ? WHERE id = ?", (stats, begun.id))
    assert not history.load(conversation.id).path[1].is_by("m", "0f")


def test_an_edited_message_and_an_answer_made_anew_are_branches(
    history: History, open_history: Open
) -> None:
    conversation = history.new()
    asked = conversation.say("question")
    first = answer(conversation, "first")
    conversation.say("thanks")
    begun = conversation.begin_answer("m", 7, 1, beside=first.id)
    conversation.finish(begun.id, "second", (), State.WHOLE, {})
    assert texts(conversation) == ["question", "second"]
    assert conversation.siblings(first.id) == (first.id, begun.id)
    edited = conversation.edit(asked.id, "better question")
    assert texts(conversation) == ["better question"]
    assert conversation.siblings(asked.id) == (asked.id, edited.id)
    conversation.switch(first.id)
    assert texts(conversation) == ["question", "first", "thanks"]
    conversation.switch(asked.id)
    assert texts(conversation) == ["question", "second"]
    again = open_history().load(conversation.id)
    assert texts(again) == ["question", "second"]
    assert again.siblings(asked.id) == (asked.id, edited.id)


def test_only_a_message_can_be_answered_and_only_one_of_the_user_edited(history: History) -> None:
    conversation = history.new()
    with pytest.raises(BadInput, match="no message to answer"):
        conversation.begin_answer("m", 1)
    conversation.say("hi")
    answered = answer(conversation, "hello")
    with pytest.raises(BadInput, match="no message to answer"):
        conversation.begin_answer("m", 1)
    with pytest.raises(BadInput, match="cannot be edited"):
        conversation.edit(answered.id, "hullo")
    assert texts(conversation) == ["hi", "hello"]


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("\n  \n\tFirst  line\nsecond", "First line"),
        ("x" * 100, "x" * 79 + "…"),
        (
            "\x1b]0;evil\x07\x9b2J[@click=x]title\u202e",
            "\x1b]0;evil\x07\x9b2J[@click=x]title\u202e",
        ),
    ],
)
def test_the_title_is_the_first_line_as_it_was_written(
    history: History, said: str, title: str
) -> None:
    conversation = history.new()
    conversation.say(said)
    conversation.say("later")
    assert history.load(conversation.id).title == title


def test_a_first_message_that_says_nothing_gives_no_title(history: History) -> None:
    conversation = history.new()
    conversation.say(" \n")
    assert conversation.title == ""
    conversation.say("later")
    assert conversation.title == "later"


def test_a_title_that_was_given_stays_until_it_is_taken_back(
    history: History, open_history: Open
) -> None:
    conversation = history.new()
    conversation.say("automatic")
    conversation.rename("  given \n title\x00 ")
    conversation.say("more")
    again = open_history().load(conversation.id)
    assert again.title == "given title\x00"
    again.rename("  ")
    assert open_history().load(conversation.id).title == "automatic"


def test_half_a_surrogate_pair_stops_nothing(history: History) -> None:
    conversation = history.new("\udc80")
    conversation.say("a\ud800b \ud83d\ude00", [Attachment("\udcff", "\udcff")])
    conversation.rename("\ud800")
    again = history.load(conversation.id)
    assert texts(again) == ["a\ufffdb 😀"]
    assert again.title == "\ufffd"
    assert history.notes == ()


def test_the_last_changed_conversation_comes_first(history: History) -> None:
    first, second = history.new(), history.new()
    first.say("first")
    second.say("second")
    answer(first, "an answer")
    told = [(s.title, s.messages, s.snippet) for s in history.recent(9)]
    assert told == [("first", 2, "an answer"), ("second", 1, "second")]
    assert [s.title for s in history.recent(1, 1)] == ["second"]
    assert [s.title for s in history.recent(-1)] == ["first", "second"]
    assert history.inputs(1) == ["second"]
    assert history.inputs(5) == ["first", "second"]


def test_a_deleted_conversation_leaves_nothing_in_the_files(history: History, path: Path) -> None:
    doomed, other = history.new("Systemgeheimnis"), history.new()
    doomed.say("Textgeheimnis", [Attachment("Namensgeheimnis", "Anhangsgeheimnis")])
    answer(doomed, "Antwortgeheimnis")
    for _ in range(1200):  # deeper than SQLite lets a cascade go
        doomed.say("deep")
    other.say("stays")
    history.delete(doomed.id)
    with pytest.raises(NotFound, match="no conversation 1"):
        history.load(doomed.id)
    with pytest.raises(NotFound):
        history.delete(doomed.id)
    assert [summary.title for summary in history.recent(5)] == ["stays"]
    assert b"stays" in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"geheimnis" not in b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert history.search("geheimnis", 5) == []


def test_a_number_is_never_given_twice(history: History, open_history: Open) -> None:
    one = history.new()
    said = one.say("one")
    history.delete(one.id)
    two = open_history().new()
    assert two.say("two").id > said.id
    assert two.id > one.id


def test_a_history_in_memory_does_all_of_it_and_leaves_no_file(tmp_path: Path) -> None:
    history = History.in_memory()
    conversation = history.new()
    conversation.say("only here")
    assert [s.id for s in history.search("only", 5)] == [s.id for s in history.recent(5)] == [1]
    assert texts(history.load(1)) == ["only here"]
    history.close()
    assert list(tmp_path.iterdir()) == []


def test_markdown_shows_the_path_with_figures_and_nothing_a_terminal_obeys(
    history: History,
) -> None:
    conversation = history.new("Be\x1b[2J brief.")
    conversation.say("Look", [Attachment("a\nb.md", "```\ncode\n```\n", 4)])
    begun = conversation.begin_answer("m.gguf", 9)
    stats = {"completion_tokens": 12, "tokens_per_second": 3.25, "speedup": None}
    conversation.finish(begun.id, "Fine\u202e.\x9b0m", (1,), State.CUT, stats)
    conversation.rename("T\x07itle")
    assert history.markdown(conversation.id).split("\n\n") == [
        "# Title",
        "## System",
        "Be brief.",
        "## You",
        "Attached: a b.md (4 tokens)",
        "````\n```\ncode\n```\n````",
        "Look",
        "## Model (m.gguf)",
        "Fine.",
        "*cut off, 12 tokens, 3.2 tokens/s, seed 9*\n",
    ]


def test_json_holds_every_branch_and_tune_can_read_it(history: History, tmp_path: Path) -> None:
    conversation = history.new("Be brief.")
    asked = conversation.say("one", [Attachment("a", "b", 1)])
    answer(conversation, "answer", (5, 6))
    conversation.edit(asked.id, "two")
    answer(conversation, "reply", (7,))
    told = history.as_json(conversation.id)
    assert [(m["role"], m["content"]) for m in told["messages"]] == [
        ("system", "Be brief."),
        ("user", "two"),
        ("assistant", "reply"),
    ]
    assert [m["content"] for m in told["branches"]] == ["one", "answer"]
    assert told["branches"][0]["attachments"] == [{"name": "a", "tokens": 1, "text": "b"}]
    assert told["branches"][1]["token_ids"] == [5, 6]
    assert told["messages"][2]["stats"] == {"completion_tokens": 1}
    file = tmp_path / "said.json"
    file.write_text(json.dumps(told, allow_nan=False))
    found = ConversationFile.open(file)
    assert found is not None
    assert found.conversations() == [
        [Message("system", "Be brief."), Message("user", "two"), Message("assistant", "reply")]
    ]


def test_what_was_said_can_be_replayed_as_the_model_heard_it(history: History) -> None:
    older, newer = history.new(), history.new("Be brief.")
    older.say("old")
    newer.say("Sum up.", [Attachment("a.txt", "text")])
    answer(newer, "Done.")
    assert list(history.conversations()) == [
        [
            Message("system", "Be brief."),
            Message("user", '<document name="a.txt">\ntext\n</document>\n\nSum up.'),
            Message("assistant", "Done."),
        ],
        [Message("user", "old")],
    ]


def test_a_number_that_no_table_holds_stops_nothing(history: History) -> None:
    conversation = history.new()
    conversation.say("question")
    begun = conversation.begin_answer("m", 2**64)
    conversation.finish(begun.id, "answer", (), State.WHOLE, {})
    assert texts(conversation) == ["question", "answer"]
    assert "goes on in memory only" in history.notes[0]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names")
def test_a_folder_of_any_name_can_hold_a_history(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=ro#b%20c ☃" / "é.sqlite3"
    for text in ("one", "two"):
        with closing(History.open(path)) as history:
            assert history.notes == ()
            history.new().say(text)
    assert path.is_file()
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.parent.name]
