"""Several programs on one history, and programs that are killed."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from history_fakes import __file__ as fakes

from edgespec.history import History, State, database

Open = Callable[[], History]
Start = Callable[[str, str], subprocess.Popen[str]]


@pytest.fixture
def start(path: Path) -> Iterator[Start]:
    """Starts a program that writes."""
    started: list[subprocess.Popen[str]] = []

    def popen(what: str, argument: str) -> subprocess.Popen[str]:
        command = [sys.executable, fakes, str(path), what, argument]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield popen
    for process in started:
        process.kill()
        process.communicate()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.mark.parametrize("until", [1, 20, 150])
def test_a_killed_program_loses_at_most_its_last_write(
    start: Start, open_history: Open, until: int
) -> None:
    process = start("stream", "Tell me.")
    assert process.stdout is not None
    for _ in range(until):
        told = process.stdout.readline()
    process.kill()
    told = ([told, *process.stdout.read().splitlines()])[-1]
    process.wait()
    for _ in range(2):  # the mark stays
        question, answer = open_history().load(1).path
        assert (question.content, question.state) == ("Tell me.", State.WHOLE)
        assert answer.state is State.CUT
        assert len(answer.ids) in (int(told), int(told) + 1)
        assert answer.content == " ".join(f"word{number}" for number in answer.ids)


def test_the_words_of_a_killed_program_are_found(start: Start, open_history: Open) -> None:
    process = start("stream", "Tell me.")
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.wait()
    assert [found.id for found in open_history().search("word0", 5)] == [1]


def test_two_programs_lose_nothing_and_mix_nothing(start: Start, open_history: Open) -> None:
    first = open_history().new().say("for both")
    programs = {name: start("talk", name) for name in ("ann", "bob")}
    for program in programs.values():
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs.values():
        begin(program)
    own = {name: program.communicate()[0].split() for name, program in programs.items()}
    assert own.keys() == programs.keys()
    assert own["ann"] != own["bob"]
    history = open_history()
    for name, (number,) in own.items():  # one number each, and no note
        path = history.load(int(number)).path
        expected = [
            text for n in range(100) for text in (f"{name} asks {n}", f"{name} answers {n}")
        ]
        assert [message.content for message in path] == expected
        assert [m.ids for m in path if m.role == "assistant"] == [(n, n) for n in range(100)]
        assert {message.state for message in path} == {State.WHOLE}
    shared = history.load(1)
    said = [message.content for message in shared.messages]
    for name in programs:
        mine = [text for text in said if text.startswith(name)]
        assert mine == [f"{name} also {n}" for n in range(100)]
    assert len(said) == 1 + 2 * 100
    assert len(shared.siblings(shared.path[1].id)) == 2
    assert shared.path[0].id == first.id
    assert len({m.content.split()[0] for m in shared.path[1:]}) == 1
    turns = [text.split()[0] for text in said[1:]]
    assert sum(one != other for one, other in itertools.pairwise(turns)) > 2  # at the same time


def test_programs_that_begin_a_history_at_once_begin_one(
    start: Start, open_history: Open, path: Path
) -> None:
    names = [f"program {number}" for number in range(4)]
    programs = [start("say_once", name) for name in names]
    assert [program.communicate()[0] for program in programs] == ["\n"] * len(programs)
    assert sorted(summary.title for summary in open_history().recent(9)) == names
    assert not list(path.parent.glob("*damaged*"))


def test_a_conversation_that_another_program_deleted_goes_on_in_memory(
    open_history: Open,
) -> None:
    here, there = open_history(), open_history()
    conversation = here.new()
    conversation.say("one")
    there.delete(conversation.id)
    there.new().say("other")
    told: list[str] = []
    here.listen(told.append)
    conversation.say("two")
    conversation.rename("three")
    assert [message.content for message in conversation.path] == ["one", "two"]
    assert told == [
        "The conversation was deleted by another edgespec, so “one” goes on in memory only; export"
        " it to keep it."
    ]
    assert [m.content for m in there.load(2).messages] == ["other"]


def test_of_each_conversation_that_another_program_deleted_it_is_told(open_history: Open) -> None:
    here, there = open_history(), open_history()
    told: list[str] = []
    here.listen(told.append)
    talks = [here.new(), here.new()]
    for talk in talks:
        talk.say("the same")
        there.delete(talk.id)
    for talk in talks:
        talk.say("more")
    assert len(told) == 2
    assert all("“the same” goes on in memory only" in note for note in told)
    assert list(here.notes) == told


def test_a_write_that_another_program_holds_up_is_made_up_for_by_the_next(
    open_history: Open, path: Path
) -> None:
    history = open_history()
    conversation = history.new()
    conversation.say("question")
    begun = conversation.begin_answer("m", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        conversation.write(begun.id, "one", (1,))
        other.execute("ROLLBACK")
    assert history.notes == ()
    assert open_history().load(1).path[1].content == ""
    conversation.write(begun.id, "one two", (1, 2))
    assert open_history().load(1).path[1].content == "one two"


def test_a_title_given_elsewhere_outlives_a_change_of_the_system_prompt_here(
    open_history: Open,
) -> None:
    conversation = open_history().new()
    conversation.say("question")
    open_history().load(1).rename("given elsewhere")
    conversation.set_system("Be brief.")
    kept = open_history().load(1)
    assert (kept.title, kept.system) == ("given elsewhere", "Be brief.")


def test_an_answer_that_another_program_is_writing_looks_cut_off_until_it_is_whole(
    open_history: Open,
) -> None:
    here, there = open_history(), open_history()
    conversation = there.new()
    conversation.say("question")
    begun = conversation.begin_answer("m", 1)
    conversation.write(begun.id, "half", (1,))
    assert here.load(1).path[1].state is State.CUT
    open_history()  # takes it for one that was cut off
    conversation.write(begun.id, "half and more", (1, 2))
    conversation.finish(begun.id, "all of it", (1, 2, 3), State.WHOLE, {})
    assert (here.load(1).path[1].content, here.load(1).path[1].state) == ("all of it", State.WHOLE)
    assert [found.id for found in here.search("all of it", 5)] == [1]
    assert here.search("half", 5) == []


def test_an_answer_that_is_being_written_does_not_wait_for_another_program(
    open_history: Open, path: Path
) -> None:
    history = open_history()
    conversation = history.new()
    conversation.say("question")
    begun = conversation.begin_answer("m", 1)
    written, order = threading.Event(), list[str]()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:

        def let_go() -> None:
            # a write that waits does so for all its patience, and it is one of twenty
            written.wait(2 * database.PATIENCE_MS / 1000)
            order.append("let go")
            other.execute("ROLLBACK")

        other.execute("BEGIN IMMEDIATE")
        holder = threading.Thread(target=let_go)
        holder.start()
        for number in range(20):
            conversation.write(begun.id, "one", (number,))
        order.append("written")
        written.set()
        holder.join()
    assert order == ["written", "let go"]
    conversation.finish(begun.id, "one two", (1, 2), State.WHOLE, {})
    assert open_history().load(1).path[1].content == "one two"
