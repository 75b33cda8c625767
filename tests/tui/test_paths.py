"""A path through the tree, as the model reads it and as the screen shows it."""

from __future__ import annotations

import json
from datetime import datetime, tzinfo

import pytest

from edgespec.decoding.events import Alternative
from edgespec.history import Attachment, Conversation, History, State
from edgespec.options import AnswerOptions
from edgespec.tui.kept import kept_options, kept_runs, options_of, runs_of, when_of
from edgespec.tui.paths import (
    before,
    block_of,
    can_go_on,
    last,
    messages_of,
    neighbour,
    numbered,
    turn_for,
    turn_of,
    used_before,
)
from edgespec.tui.talking import Answerer
from edgespec.tui.transcript import Mark, Voice
from edgespec.tui.wishes import (
    Answered,
    Choice,
    another_answer,
    first_answer,
    numbered_runs,
    rest_of,
    steered,
)

RUNS = (("One", Mark.PLAIN), (" two", Mark.ACCEPTED), (" three", Mark.CORRECTION))
IDS = (11, 12, 13)
BY = Answerer("demo", vocabulary="0f")


@pytest.fixture
def talk() -> Conversation:
    return History.in_memory().new("Be brief.")


def answer(talk: Conversation, state: State = State.WHOLE, why: str = "stop") -> int:
    """An answer of three tokens to the head."""
    id = talk.begin_answer("demo", 7).id
    text = "".join(text for text, _ in RUNS)
    stats = {
        "finish_reason": why,
        "tokens": kept_runs(RUNS),
        "asked": kept_options(
            turn_for(
                talk.system,
                talk.path[:-1],
                AnswerOptions(overrides={"temperature": 0.5}, reasoning=True),
                BY,
            )
        ),
    }
    # as it comes back from the disk
    talk.finish(id, text, IDS, state, json.loads(json.dumps(stats)))
    return id


def test_the_model_reads_the_system_prompt_and_what_was_said_in_turn(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    talk.say("On.")
    read = [(message.role, message.content) for message in messages_of(talk.system, talk.path)]
    assert read == [
        ("system", "Be brief."),
        ("user", "Count."),
        ("assistant", "One two three"),
        ("user", "On."),
    ]


def test_a_message_that_got_no_answer_is_not_read_again(talk: Conversation) -> None:
    talk.say("Too long.")
    failed = talk.begin_answer("demo", 1)
    talk.finish(failed.id, "", (), State.CUT, {})
    talk.say("Shorter.")
    assert [m.content for m in messages_of("", talk.path)] == ["Shorter."]


def test_attachments_are_read_in_frames_and_shown_by_name(talk: Conversation) -> None:
    said = talk.say("Sum up.", [Attachment("notes.txt", "all of it", 3)])
    (message,) = messages_of("", talk.path)
    assert message.content == '<document name="notes.txt">\nall of it\n</document>\n\nSum up.'
    assert block_of(said, talk).runs == (("[notes.txt]\nSum up.", Mark.PLAIN),)


def test_an_answer_comes_back_token_by_token_with_its_marks(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    block = block_of(talk.path[-1], talk)
    assert (block.voice, block.runs, block.label) == (Voice.ANSWER, RUNS, "")


@pytest.mark.parametrize(
    "tokens",
    [None, "pac", {}, {"marks": "pa", "lengths": [3, 4, 6]}, {"marks": "pac", "lengths": [3, 4, 7]},
     {"marks": "pac", "lengths": [-3, 10, 6]}, {"marks": 3, "lengths": None}],
)  # fmt: skip
def test_tokens_that_do_not_fit_the_text_are_shown_as_one(tokens: object) -> None:
    assert runs_of("One two three", {"tokens": tokens}) == (("One two three", Mark.PLAIN),)


def test_hostile_text_of_a_history_is_cleaned_before_it_is_shown() -> None:
    runs = (("a\x1b]0;title\x07", Mark.PLAIN), ("b", Mark.ACCEPTED))
    content = "".join(text for text, _ in runs)
    assert runs_of(content, {"tokens": kept_runs(runs)}) == (("ab", Mark.PLAIN),)


def test_nonsense_in_what_was_kept_of_the_options_is_put_aside() -> None:
    now = AnswerOptions(max_tokens=5)
    for asked in (None, 3, {}, {"overrides": 1}, {"overrides": {}, "max_tokens": -1, "stop": [],
                                                 "reasoning": None, "begun": 0}):  # fmt: skip
        assert options_of({"asked": asked}, now) == (now, 0)


def test_labels_tell_the_branch_and_how_an_answer_ended(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    second = talk.begin_answer("demo", 7, 1, beside=talk.path[-1].id)
    assert block_of(second, talk).label == "branch 2 of 2 · not answered · Ctrl+R tries again"
    talk.write(second.id, "One", [11])
    assert block_of(talk.path[-1], talk).label == "branch 2 of 2 · cut off · Ctrl+G continues"
    ended = talk.finish(second.id, "One", [11], State.CUT, {"finish_reason": "length"})
    assert "ended at the token limit" in block_of(ended, talk).label


def test_only_what_was_cut_off_can_go_on(talk: Conversation) -> None:
    assert "no answer" in can_go_on(None)
    assert "no answer" in can_go_on(talk.say("Count."))
    answer(talk)
    assert "whole" in can_go_on(talk.path[-1])
    talk.say("Again.")
    answer(talk, State.CUT, "cancelled")
    assert can_go_on(talk.path[-1]) == ""
    talk.say("And again.")
    answer(talk, State.CUT, "context")
    assert "context is full" in can_go_on(talk.path[-1])


def test_branches_are_walked_like_pages_over_every_fork(talk: Conversation) -> None:
    first = talk.say("Count.")
    early = answer(talk)
    late = talk.begin_answer("demo", 7, 1, beside=early).id
    edited = talk.edit(first.id, "Count to four.").id
    only = answer(talk)
    seen = [talk.path[-1].id]
    while (before_this := neighbour(talk, -1)) is not None:
        talk.switch(before_this)
        seen.append(talk.path[-1].id)
    assert seen == [only, late, early]
    talk.switch(edited)
    assert neighbour(talk, 1) is None
    assert numbered(talk, 1) == first.id
    assert numbered(talk, 3) is None


def test_messages_are_found_from_the_end(talk: Conversation) -> None:
    one = talk.say("One.")
    answer(talk)
    two = talk.say("Two.")
    assert last(talk.path, "user") == two
    assert last(talk.path, "user", 2) == one
    assert last(talk.path, "user", 3) is None
    assert before(talk.path, two.id) == talk.path[:2]


# what is wanted


def test_a_first_answer_gets_a_seed_that_was_set_or_a_fresh_one(talk: Conversation) -> None:
    talk.say("Count.")
    assert first_answer(talk, AnswerOptions(overrides={"seed": 3}), BY).seed == 3
    seeds = {first_answer(talk, AnswerOptions(), BY).seed for _ in range(8)}
    assert len(seeds) > 1


def test_another_answer_has_the_same_seed_and_a_new_branch_number(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    wish = another_answer(talk, talk.path[-1], AnswerOptions(), BY)
    assert (wish.seed, wish.turn.options.branch, wish.beside) == (7, 1, talk.path[-1].id)
    assert [m.content for m in wish.turn.messages] == ["Be brief.", "Count."]


def test_the_rest_of_an_answer_goes_on_behind_its_tokens(talk: Conversation) -> None:
    talk.say("Count.")
    id = answer(talk, State.CUT, "cancelled")
    wish = rest_of(talk, talk.path[-1], AnswerOptions(overrides={"top_k": 3}), BY)
    assert (wish.into, wish.seed, wish.turn.begun, wish.runs) == (id, 7, IDS, RUNS)
    assert wish.turn.options.overrides == {"top_k": 3, "seed": 7}, "what is set now, its own noise"


def test_steering_keeps_the_tokens_before_and_expects_those_behind(talk: Conversation) -> None:
    talk.say("Count.")
    id = answer(talk)
    saved = talk.path[-1]
    choice = Choice(1, Alternative(99, -0.5, " 2"))
    wish = steered(talk, Answered(saved, IDS, RUNS), choice, AnswerOptions(), BY)
    assert wish.turn.begun == (11, 99)
    assert wish.turn.expected == (13,)
    assert wish.runs == (RUNS[0], (" 2", Mark.PLAIN))
    assert (wish.beside, wish.seed, wish.turn.options.branch) == (id, 7, 0)


def test_the_turn_of_a_kept_answer_is_what_it_was_asked_with(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    now = AnswerOptions(overrides={"temperature": 0.9, "seed": 1})
    turn = turn_of(talk.system, talk.path[:1], talk.path[-1], now, BY)
    assert turn.options.overrides == {"temperature": 0.5, "seed": 7}
    assert turn.begun == ()


def test_an_answer_is_explained_continued_and_rewritten_under_its_own_system_prompt(
    talk: Conversation,
) -> None:
    talk.say("Count.")
    answer(talk, State.CUT, "cancelled")
    saved, now = talk.path[-1], AnswerOptions(reasoning=False)
    talk.set_system("Talk like a pirate.")
    chosen = Choice(1, Alternative(99, -0.5, " 2"))
    for turn in (
        turn_of(talk.system, talk.path[:1], saved, now, BY),
        rest_of(talk, saved, now, BY).turn,
        steered(talk, Answered(saved, IDS, RUNS), chosen, now, BY).turn,
    ):
        assert [m.content for m in turn.messages] == ["Be brief.", "Count."]
        assert turn.options.reasoning is True, "the template writes the prompt by it"
    assert another_answer(talk, saved, now, BY).turn.messages[0].content == "Talk like a pirate."


def test_an_answer_asked_under_no_system_prompt_is_explained_under_none() -> None:
    talk = History.in_memory().new("")
    talk.say("Count.")
    answer(talk)
    turn = turn_of("Talk like a pirate.", talk.path[:1], talk.path[-1], AnswerOptions(), BY)
    assert [message.role for message in turn.messages] == ["user"]


@pytest.mark.parametrize("asked", [{}, {"asked": None}, {"asked": {}}, {"asked": {"system": 3}}])
def test_an_answer_of_an_older_history_goes_by_the_system_prompt_of_now(
    talk: Conversation, asked: dict[str, object]
) -> None:
    talk.say("Count.")
    id = talk.begin_answer("demo", 7).id
    talk.finish(id, "One", [11], State.CUT, asked)
    turn = turn_of(talk.system, talk.path[:1], talk.path[-1], AnswerOptions(), BY)
    assert turn.messages[0].content == "Be brief."


def test_replies_of_the_model_that_answers_are_read_by_their_ids(talk: Conversation) -> None:
    talk.say("Count.")
    answer(talk)
    talk.say("On.")
    for by, replies in (
        (BY, (IDS,)),
        (Answerer("other", vocabulary="0f"), ((),)),
        (Answerer(), ((),)),
    ):
        assert first_answer(talk, AnswerOptions(), by).turn.replies == replies
    answer(talk, State.CUT, "cancelled")
    saved, now = talk.path[-1], AnswerOptions()
    chosen = Choice(1, Alternative(99, -0.5, " 2"))
    for turn in (
        another_answer(talk, saved, now, BY).turn,
        turn_of(talk.system, talk.path[:-1], saved, now, BY),
        rest_of(talk, saved, now, BY).turn,
        steered(talk, Answered(saved, IDS, RUNS), chosen, now, BY).turn,
    ):
        assert turn.replies == (IDS,)


def test_replies_stand_beside_the_messages_that_are_read(talk: Conversation) -> None:
    talk.say("Too long.")
    failed = talk.begin_answer("demo", 1)
    talk.finish(failed.id, "", (), State.CUT, {})
    talk.say("Count.")
    talk.begin_answer("other", 1)
    talk.finish(talk.path[-1].id, "One", [1], State.WHOLE, {})
    talk.say("Again.")
    answer(talk)
    talk.say("On.")
    turn = first_answer(talk, AnswerOptions(), BY).turn
    said = [message.content for message in turn.messages if message.role == "assistant"]
    assert (said, turn.replies) == (["One", "One two three"], ((), IDS))


def test_an_answer_is_explained_continued_and_rewritten_as_of_its_own_day(
    talk: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Then(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2020, 1, 31, 23, 59)

    with monkeypatch.context() as patch:
        patch.setattr("edgespec.tui.paths.datetime", Then)
        talk.say("Count.")
        answer(talk, State.CUT, "cancelled")
    saved, now = talk.path[-1], AnswerOptions()
    chosen = Choice(1, Alternative(99, -0.5, " 2"))
    for turn in (
        turn_of(talk.system, talk.path[:1], saved, now, BY),
        rest_of(talk, saved, now, BY).turn,
        steered(talk, Answered(saved, IDS, RUNS), chosen, now, BY).turn,
    ):
        assert turn.when == datetime(2020, 1, 31, 23, 59)
    today = another_answer(talk, saved, now, BY).turn.when
    assert today is not None
    assert today > datetime(2020, 2, 1)


@pytest.mark.parametrize("when", [None, 3, "tomorrow", ["2026-01-31"]])
def test_a_day_that_makes_no_sense_is_not_known(when: object) -> None:
    assert when_of({"asked": {"when": when}}) is None
    assert when_of({"asked": when}) is None
    assert when_of({}) is None


def test_tokens_without_their_texts_are_numbered_all_the_same(talk: Conversation) -> None:
    talk.say("Count.")
    id = talk.begin_answer("demo", 7).id
    talk.write(id, "One two three", IDS)
    assert numbered_runs(talk.path[-1]) == (
        ("One two three", Mark.PLAIN),
        ("", Mark.PLAIN),
        ("", Mark.PLAIN),
    )


def test_before_a_message_stood_what_the_last_answer_above_it_told() -> None:
    talk = History.in_memory().new()
    asked = []
    for stats in ({"prompt_tokens": 20, "completion_tokens": 3}, {"prompt_tokens": "many"}):
        asked.append(talk.say("question").id)
        talk.finish(talk.begin_answer("demo", 7).id, "answer", (1,), State.WHOLE, stats)
    asked.append(talk.say("question").id)
    assert [used_before(talk.path, id) for id in asked] == [0, 23, 0]
