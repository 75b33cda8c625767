"""Chats keep what was said, as text and as ids."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo

import pytest
from api_trials import Load
from tiny_models import CHATML, TinyModels

from edgespec.api import AnswerOptions, Chat, Message, Model, Speculation
from edgespec.decoding.events import Finished, PromptRead, Round
from edgespec.decoding.sampling import Sampling

OPTIONS = AnswerOptions(Sampling(0.9, seed=3), max_tokens=24)


@pytest.fixture
def chat(pair: Model) -> Chat:
    return pair.chat("Answer briefly.", OPTIONS)


def _held(chat: Chat) -> tuple[int, ...]:
    """The ids of all that was said, as the next prompt will begin."""
    said = [Message("system", chat.system), *chat.messages]
    spoken = chat._memory.find(said, chat._desk.encoder.text(said[:-1], {}))
    assert spoken is not None
    return tuple(spoken.ids.tolist())


def test_a_turn_is_remembered(chat: Chat) -> None:
    reply = chat.send("Hello")
    assert chat.messages == [Message("user", "Hello"), Message("assistant", reply.text)]
    assert chat.context_used == reply.stats.prompt_tokens + len(reply.token_ids)


@pytest.mark.parametrize("proposer", ["none", "ngram", "draft", "auto"])
def test_the_next_turn_reads_only_what_is_new(pair: Model, chat: Chat, proposer: str) -> None:
    pair.speculation = Speculation(proposer)
    first = chat.send("Hello")
    second = chat.send("And then?")
    held = first.stats.prompt_tokens + len(first.token_ids) - 1
    assert second.stats.reused_tokens == held
    assert second.stats.prompt_tokens > held
    third = chat.send("And after that?")
    assert third.stats.reused_tokens == second.stats.prompt_tokens + len(second.token_ids) - 1


def test_the_ids_of_a_reply_are_in_the_next_prompt_as_they_were_said(chat: Chat) -> None:
    """Its text, split anew, would be other ids."""
    differs = 0
    for turn in range(3):
        before = chat.context_used
        reply = chat.send(f"Turn {turn}")
        ids = _held(chat)
        assert ids[-len(reply.token_ids) :] == reply.token_ids
        assert len(ids) > before
        tokenizer = chat._desk.encoder.tokenizer
        differs += tuple(tokenizer.encode(reply.text, special=False)) != reply.token_ids
    all_ids = _held(chat)
    chat.send("Last")
    assert _held(chat)[: len(all_ids)] == all_ids
    assert differs, "this text is one where the difference shows"


def test_what_a_stop_string_cut_off_is_not_in_the_next_prompt(pair: Model) -> None:
    whole = pair.chat("Answer briefly.", OPTIONS).send("Hello").text
    options = replace(OPTIONS, stop=(whole[len(whole) // 2],))
    chat = pair.chat("Answer briefly.", options)
    reply = chat.send("Hello")
    assert reply.text == whole[: whole.index(options.stop[0])]
    following = chat.send("And then?")
    asked = [Message("system", "Answer briefly."), *chat.messages[:3]]
    assert following.stats.prompt_tokens == len(chat._desk.encoder.encode(asked, {}))
    assert pair.generate(asked, options).token_ids == following.token_ids


def test_the_same_seed_tells_the_same_conversation_whoever_drafts(pair: Model) -> None:
    told = []
    for proposer in ("none", "draft", "ngram", "auto"):
        pair.speculation = Speculation(proposer)
        chat = pair.chat("Answer briefly.", OPTIONS)
        told.append([chat.send(text).token_ids for text in ("Hello", "And then?", "Why?")])
    assert told == [told[0]] * 4


def test_one_seed_does_not_say_the_same_twice(chat: Chat) -> None:
    assert chat.send("Hello").token_ids != chat.send("Hello").token_ids


def test_a_turn_as_events_is_remembered_too(chat: Chat) -> None:
    events = list(chat.stream("Hello"))
    said = "".join(e.text for e in events if isinstance(e, Round | Finished))
    assert isinstance(events[0], PromptRead)
    assert chat.messages == [Message("user", "Hello"), Message("assistant", said)]


def test_a_cut_reply_is_kept_as_far_as_it_came(pair: Model, chat: Chat) -> None:
    whole = pair.chat("Answer briefly.", OPTIONS).send("Hello")
    ids = list[int]()
    for event in chat.stream("Hello"):
        if isinstance(event, Round):
            ids += [t.token for t in event.tokens]
            if len(ids) >= 8:
                break
    assert len(chat.messages) == 2
    assert whole.text.startswith(chat.messages[1].content)
    assert tuple(ids) == whole.token_ids[: len(ids)]
    assert _held(chat)[-len(ids) :] == tuple(ids)
    following = chat.send("Go on")
    assert following.stats.reused_tokens >= whole.stats.prompt_tokens + len(ids) - 1


def test_a_cancelled_reply_is_kept_as_well(pair: Model, chat: Chat) -> None:
    for event in chat.stream("Hello"):
        if isinstance(event, Round):
            pair.cancel()
    assert [message.role for message in chat.messages] == ["user", "assistant"]
    assert chat.context_used > 0


def test_a_turn_that_was_given_up_before_its_first_token_was_never_said(
    pair: Model, chat: Chat
) -> None:
    events = chat.stream("Hello")
    next(events)
    pair.cancel()
    list(events)
    assert chat.messages == []
    assert chat.send("Hello").text


def test_a_history_that_was_cut_back_goes_on_with_the_ids_of_what_is_left(chat: Chat) -> None:
    chat.send("Hello")
    second = chat.send("And then?")
    del chat.messages[2:]
    assert chat.send("And then?").token_ids == second.token_ids
    assert len(chat.messages) == 4


def test_history_that_was_edited_is_read_anew(pair: Model, chat: Chat) -> None:
    chat.send("Hello")
    chat.messages[1] = Message("assistant", "Something else.")
    edited = chat.send("And then?")
    fresh = pair.chat("Answer briefly.", OPTIONS)
    fresh.messages = list(chat.messages[:2])
    assert fresh.send("And then?").stats.prompt_tokens == edited.stats.prompt_tokens
    assert len(chat.messages) == 4


def test_another_way_to_think_is_heard_in_a_running_conversation(
    opened: Load, tiny_models: TinyModels
) -> None:
    template = "{{ '/think' if enable_thinking else '/no_think' }}\n" + CHATML
    model = opened(str(tiny_models(layers=2, template=template)))
    chat = model.chat("", replace(OPTIONS, reasoning=False))
    chat.send("Hello")
    chat.send("And then?")
    chat.options = replace(OPTIONS, reasoning=True)
    fresh = model.chat("", chat.options)
    fresh.messages = list(chat.messages)
    heard, anew = chat.send("Why?"), fresh.send("Why?")
    assert heard.stats.prompt_tokens == anew.stats.prompt_tokens
    assert heard.token_ids == anew.token_ids


def test_a_way_to_think_that_the_template_does_not_tell_takes_nothing_from_the_next_turn(
    chat: Chat,
) -> None:
    first = chat.send("Hello")
    chat.options = replace(OPTIONS, reasoning=True)
    second = chat.send("And then?")
    assert second.stats.reused_tokens == first.stats.prompt_tokens + len(first.token_ids) - 1


def test_another_day_is_heard_in_a_running_conversation(
    opened: Load, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = "{{ strftime_now('%d %B %Y') }}\n" + CHATML
    model = opened(str(tiny_models(layers=2, template=template)))

    class Clock(datetime):
        day = 1

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2030, 1, cls.day)

    monkeypatch.setattr("edgespec.chatting.datetime", Clock)
    chat = model.chat("", OPTIONS)
    chat.send("Hello")
    Clock.day = 2
    fresh = model.chat("", OPTIONS)
    fresh.messages = list(chat.messages)
    assert chat.send("Why?").token_ids == fresh.send("Why?").token_ids


def test_a_cut_answer_goes_on_as_of_the_day_it_began(opened: Load, tiny_models: TinyModels) -> None:
    template = "{{ strftime_now('%f') }}\n" + CHATML
    model = opened(str(tiny_models(layers=2, template=template)))
    chat = model.chat("", replace(OPTIONS, max_tokens=8))
    cut = chat.send("Hello")
    rest = next(event for event in chat.resume() if isinstance(event, PromptRead))
    held = cut.stats.prompt_tokens + len(cut.token_ids)
    assert (rest.total, rest.reused) == (held, held - 1)


def test_another_system_prompt_is_heard(chat: Chat) -> None:
    first = chat.send("Hello")
    chat.system = "Answer at length, please."
    second = chat.send("And then?")
    assert second.stats.reused_tokens < first.stats.prompt_tokens


def test_reset_forgets_everything(chat: Chat) -> None:
    first = chat.send("Hello")
    chat.send("And then?")
    chat.reset()
    assert (chat.messages, chat.context_used) == ([], 0)
    assert chat.send("Hello").token_ids == first.token_ids


def test_two_chats_of_one_model_do_not_mix(pair: Model) -> None:
    alone = [pair.chat(system, OPTIONS) for system in ("", "Be kind.")]
    said = [[chat.send(t).token_ids for t in ("Hello", "Why?")] for chat in alone]
    a, b = pair.chat("", OPTIONS), pair.chat("Be kind.", OPTIONS)
    mixed = [chat.send(t).token_ids for t in ("Hello", "Why?") for chat in (a, b)]
    assert [mixed[0::2], mixed[1::2]] == said
