"""Answers that go on, are steered anew, made again and explained; and guessing that changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgespec.api import AnswerOptions, Message, Model, Speculation, Turn
from edgespec.decoding.events import Committed, Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput

MESSAGES = (Message("system", "Answer briefly."), Message("user", "Tell me of the other model"))
LENGTH = 48
SPECULATIONS = [
    Speculation("none"),
    Speculation("ngram", draft_tokens=5),
    Speculation("draft", draft_tokens=4),
    Speculation("auto", draft_tokens=8),
    Speculation("auto"),
]


def _tokens(events: Iterable[Event]) -> list[Committed]:
    return [token for event in events if isinstance(event, Round) for token in event.tokens]


def _ids(events: Iterable[Event]) -> tuple[int, ...]:
    return tuple(token.token for token in _tokens(events))


def _text(events: Iterable[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Round | Finished))


def _begun(events: list[Event]) -> tuple[str, ...]:
    """The texts of the tokens that stood already."""
    first, *others = events
    assert isinstance(first, PromptRead)
    assert not any(event.begun for event in others if isinstance(event, PromptRead))
    return first.begun


def _turn(model: Model, temperature: float = 0.8, **options: Any) -> Turn:
    """A turn whose answer has no end of its own."""
    never = dict.fromkeys(model.loaded.models[0].tokenizer.end_tokens, -1e6)
    sampling = Sampling(temperature, seed=3, logit_bias=never)
    return Turn(MESSAGES, options=AnswerOptions(sampling, **{"max_tokens": LENGTH, **options}))


def _up_to(turn: Turn, most: int) -> Turn:
    return replace(turn, options=replace(turn.options, max_tokens=most))


@pytest.mark.parametrize("speculation", SPECULATIONS, ids=str)
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_a_continued_answer_is_the_one_that_was_never_cut(
    pair: Model, temperature: float, speculation: Speculation
) -> None:
    pair.speculation = speculation
    turn = _turn(pair, temperature)
    whole = list(pair.chat().answer(turn))
    assert len(_ids(whole)) == LENGTH
    for cut in (1, 9, 30, 47):
        chat = pair.chat()
        first = list(chat.answer(_up_to(turn, cut)))
        rest = list(chat.answer(replace(_up_to(turn, LENGTH - cut), begun=_ids(first))))
        assert _ids(first) + _ids(rest) == _ids(whole)
        assert len(_begun(rest)) == cut
        assert "".join(_begun(rest)) + _text(rest) == _text(whole)
        assert isinstance(rest[0], PromptRead)
        assert rest[0].reused == rest[0].total - 1, "nothing is read twice"


def test_penalties_and_stops_reach_back_over_a_cut(pair: Model) -> None:
    turn = _turn(pair)
    assert turn.options.sampling is not None
    sampling = replace(turn.options.sampling, repeat_penalty=1.5, penalty_window=30)
    turn = replace(turn, options=replace(turn.options, sampling=sampling))
    whole = list(pair.chat().answer(turn))
    texts = [token.text for token in _tokens(whole)]
    at = next(n for n in range(12, LENGTH - 1) if texts[n].isascii() and texts[n + 1].isascii())
    stop = texts[at] + texts[at + 1]
    stopping = replace(turn, options=replace(turn.options, stop=(stop,)))
    once = list(pair.chat().answer(stopping))
    assert isinstance(once[-1], Finished)
    assert once[-1].why is Stop.END
    for cut in (4, len(_ids(once)) - 1):
        first = list(pair.chat().answer(_up_to(stopping, cut)))
        rest = list(pair.chat().answer(replace(stopping, begun=_ids(first))))
        assert _ids(first) + _ids(rest) == _ids(once)
        assert "".join(_begun(rest)) + _text(rest) == _text(once)


def test_an_answer_that_is_at_its_end_has_nothing_to_go_on_with(pair: Model) -> None:
    (end,) = list(pair.loaded.models[0].tokenizer.end_tokens)[:1]
    turn = _turn(pair)
    ids = _ids(pair.chat().answer(_up_to(turn, 5)))
    chat = pair.chat()
    events = list(chat.answer(replace(turn, begun=(*ids, end))))
    assert [type(event) for event in events] == [PromptRead, Finished]
    assert isinstance(events[-1], Finished)
    assert events[-1].why is Stop.END
    assert len(_begun(events)) == 6


def test_an_answer_that_is_steered_anew_goes_on_from_the_chosen_token(pair: Model) -> None:
    turn = _turn(pair, alternatives=5)
    old = _tokens(pair.chat().answer(turn))
    ids = tuple(token.token for token in old)
    at = 10
    chosen = next(a.token for a in old[at].alternatives if a.token != ids[at])
    begun = (*ids[:at], chosen)
    told = []
    for speculation in SPECULATIONS:
        for expected in ((), ids[at + 1 :]):
            pair.speculation = speculation
            steered = replace(_up_to(turn, 30), begun=begun, expected=expected)
            told.append(_ids(pair.chat().answer(steered)))
    assert told == [told[0]] * len(told)
    assert len(told[0]) == 30


def test_what_is_expected_is_guessed(pair: Model) -> None:
    pair.speculation = Speculation("ngram", draft_tokens=8)
    turn = _turn(pair)
    ids = _ids(pair.chat().answer(turn))
    again = replace(_up_to(turn, LENGTH - 10), begun=ids[:10], expected=ids[10:])
    events = list(pair.chat().answer(again))
    assert _ids(events) == ids[10:]
    rounds = [event for event in events if isinstance(event, Round)]
    assert len(rounds) <= 7, "one plain round, and about five of nine tokens"


def test_ids_that_the_model_does_not_have_are_refused_at_once(pair: Model) -> None:
    for wrong in ({"begun": (3, 10**6)}, {"begun": (-1,)}, {"expected": (10**6,)}):
        with pytest.raises(BadInput, match="outside the vocabulary"):
            pair.chat().answer(replace(_turn(pair), **wrong))


def test_a_replay_without_speculation_says_the_same_and_guesses_nothing(pair: Model) -> None:
    pair.speculation = Speculation("draft", draft_tokens=4)
    chat, turn = pair.chat(), _turn(pair)
    drafted = list(chat.answer(turn))
    replayed = list[Event]()
    for event in chat.answer(replace(turn, speculation=Speculation("none"))):
        replayed.append(event)
        pair.speculation = Speculation("draft", draft_tokens=2)  # not for this answer
    assert _ids(replayed) == _ids(drafted)
    assert any(event.guesses for event in drafted if isinstance(event, Round))
    assert not any(event.guesses for event in replayed if isinstance(event, Round))


def test_an_answer_made_again_is_a_branch_of_its_own(pair: Model) -> None:
    turn = _turn(pair)
    chat = pair.chat("Answer briefly.", turn.options)
    first = chat.send(MESSAGES[-1].content)
    assert first.token_ids == _ids(pair.chat().answer(turn))
    again = list(chat.regenerate())
    branch = replace(turn, options=replace(turn.options, branch=1))
    assert _ids(again) == _ids(pair.chat().answer(branch)) != first.token_ids
    assert [message.content for message in chat.messages] == [
        MESSAGES[-1].content,
        _text(again),
    ]
    third = _ids(chat.regenerate())
    assert third not in (first.token_ids, _ids(again))


def test_a_chat_goes_on_with_an_answer_that_was_cut(pair: Model) -> None:
    options = _turn(pair).options
    whole = pair.chat("", options).send("Hello")
    chat = pair.chat("", replace(options, max_tokens=LENGTH // 3))
    cut = chat.send("Hello")
    rest = [_ids(chat.resume()), _ids(chat.resume())]
    assert cut.token_ids + rest[0] + rest[1] == whole.token_ids
    assert [m.content for m in chat.messages] == ["Hello", whole.text]
    assert chat.context_used == whole.stats.prompt_tokens + LENGTH


def test_nothing_was_said_so_there_is_nothing_to_go_on_with(pair: Model) -> None:
    for go_on in (pair.chat().resume, pair.chat().regenerate):
        with pytest.raises(BadInput, match="say something first"):
            go_on()


def test_a_branch_is_read_on_with_the_ids_it_was_made_of(pair: Model) -> None:
    chat, turn = pair.chat(), _turn(pair)
    answers = [
        list(chat.answer(replace(turn, options=replace(turn.options, branch=n)))) for n in range(3)
    ]
    tokenizer = pair.loaded.models[0].tokenizer
    differs = 0
    for events in answers:  # the latest is the last; the first was left two answers ago
        said = (*MESSAGES, Message("assistant", _text(events)), Message("user", "And then?"))
        prompt, _ = chat._read(replace(turn, messages=said), pair._desk.asked(turn.options))
        held = tuple(prompt.tolist())
        ids = _ids(events)
        assert any(held[n : n + LENGTH] == ids for n in range(len(held)))
        differs += tuple(tokenizer.encode(_text(events), special=False)) != ids
    assert differs, "these texts are such that the difference shows"


def test_a_conversation_that_was_kept_elsewhere_goes_on_with_its_ids(pair: Model) -> None:
    chat, turn = pair.chat(), _turn(pair)
    messages, replies, answers = MESSAGES, list[tuple[int, ...]](), list[tuple[int, ...]]()
    for said in ("And then?", "Why?", "Go on"):
        events = list(chat.answer(replace(turn, messages=messages)))
        replies.append(_ids(events))
        messages = (*messages, Message("assistant", _text(events)), Message("user", said))
    reopened = replace(turn, messages=messages, replies=tuple(replies))
    for fresh in (chat, pair.chat()):
        answers.append(_ids(fresh.answer(reopened)))
    assert answers[0] == answers[1]
    unknown = replace(reopened, replies=())
    assert _ids(pair.chat().answer(unknown)) != answers[0], "split anew, they are other ids"
    with pytest.raises(BadInput, match="not of this model"):
        pair.chat().answer(replace(reopened, replies=((10**6,),)))


def test_ids_that_say_something_else_than_the_reply_are_not_read(pair: Model) -> None:
    tokenizer = pair.loaded.models[0].tokenizer
    text = "the other model"
    said = (*MESSAGES, Message("assistant", text), Message("user", "And then?"))
    turn = replace(_turn(pair), messages=said)
    other = tuple(tokenizer.encode(f"{text}. But no.", special=False))
    letters = tuple(t for c in text for t in tokenizer.encode(c, special=False))
    split_anew = _ids(pair.chat().answer(turn))
    assert _ids(pair.chat().answer(replace(turn, replies=(other,)))) == split_anew
    assert letters != tuple(tokenizer.encode(text, special=False))
    assert _ids(pair.chat().answer(replace(turn, replies=(letters,)))) != split_anew


def test_ids_that_the_app_tells_go_before_those_that_are_remembered(pair: Model) -> None:
    """Two branches may say the same in other tokens."""
    tokenizer = pair.loaded.models[0].tokenizer
    chat, turn = pair.chat(), _up_to(_turn(pair), 4)
    text = "the other model"
    said = (*MESSAGES, Message("assistant", text), Message("user", "And then?"))
    turn = replace(turn, messages=said)
    letters = tuple(t for c in text for t in tokenizer.encode(c, special=False))
    whole = tuple(tokenizer.encode(text, special=False))
    asked, heard = pair._desk.asked(turn.options), list[list[int]]()
    for ids in (letters, whole, letters):
        prompt, _ = chat._read(replace(turn, replies=(ids,)), asked)
        heard.append(prompt.tolist())
        fresh, _ = pair.chat()._read(replace(turn, replies=(ids,)), asked)
        assert heard[-1] == fresh.tolist()
    assert heard[0] != heard[1]


def test_only_the_latest_conversations_are_remembered(pair: Model) -> None:
    chat, turn = pair.chat(), _up_to(_turn(pair), 1)
    for n in range(70):
        list(chat.answer(replace(turn, messages=(Message("user", f"number {n}"),))))
    assert len(chat._memory._spoken) == 64


@pytest.mark.parametrize("speculation", SPECULATIONS[:3], ids=str)
def test_a_token_is_explained_as_it_would_have_been_told(
    pair: Model, speculation: Speculation
) -> None:
    pair.speculation = speculation
    told = _tokens(pair.chat().answer(_turn(pair, alternatives=5)))
    chat, turn = pair.chat(), _turn(pair)
    ids = _ids(chat.answer(turn))
    assert ids == tuple(token.token for token in told)
    for at in (30, 31, 0, 47, 12):
        explained, token = chat.explain(turn, ids, at), told[at]
        assert (explained.at, explained.token) == (at, ids[at])
        assert explained.logprob == pytest.approx(token.logprob, abs=1e-4)
        assert [a.token for a in explained.alternatives] == [a.token for a in token.alternatives]
        assert [a.text for a in explained.alternatives] == [a.text for a in token.alternatives]
        assert [a.logprob for a in explained.alternatives] == pytest.approx(
            [a.logprob for a in token.alternatives], abs=1e-4
        )


def test_explaining_leaves_the_conversation_as_it_was(pair: Model) -> None:
    def second(explain: tuple[int, ...]) -> tuple[int, ...]:
        chat, turn = pair.chat(), _turn(pair)
        events = list(chat.answer(turn))
        for at in explain:
            chat.explain(turn, _ids(events), at)
        said = Message("assistant", _text(events))
        following = replace(turn, messages=(*MESSAGES, said, Message("user", "And then?")))
        return _ids(chat.answer(following))

    assert second(()) == second((47,)) == second((0, 20, 3))


def test_tokens_near_an_explained_one_need_no_pass_of_their_own(
    pair: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat, turn = pair.chat(), _turn(pair)
    ids = _ids(chat.answer(turn))
    session = pair.loaded.target.session
    passes, verify = [], session.verify
    monkeypatch.setattr(session, "verify", lambda draft: passes.append(draft) or verify(draft))
    explained = [chat.explain(turn, ids, at) for at in range(5, LENGTH)]
    assert len(passes) == 1
    assert [one.at for one in explained] == [*range(5, LENGTH)]
    other = (*ids[:20], (ids[20] + 1) % 300, *ids[21:])
    chat.explain(turn, other, 30)
    assert len(passes) == 2, "it stands behind other tokens"


def test_a_token_that_is_not_there_is_not_explained(pair: Model) -> None:
    chat, turn = pair.chat(), _turn(pair)
    for ids, at in (((5, 6), 2), ((5, 6), -1), ((), 0)):
        with pytest.raises(BadInput, match=f"no token {at}"):
            chat.explain(turn, ids, at)
    with pytest.raises(BadInput, match="outside the vocabulary"):
        chat.explain(turn, (10**6, 5), 1)
    events = chat.answer(turn)
    next(events)
    with pytest.raises(BadInput, match="still running"):
        chat.explain(turn, (5, 6), 0)
    events.close()  # type: ignore[attr-defined]


def test_log_probabilities_are_those_of_the_model(pair: Model) -> None:
    token = _tokens(pair.chat().answer(_turn(pair, alternatives=20)))[7]
    share = np.exp([other.logprob for other in token.alternatives])
    assert share.sum() < 1
    assert list(share) == sorted(share, reverse=True)
    assert len({other.token for other in token.alternatives}) == 20


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.integers(0, LENGTH), st.sampled_from(SPECULATIONS), max_size=8),
    st.sampled_from([0.0, 0.8]),
)
def test_the_text_is_the_same_whatever_is_switched_when(
    shared_pair: Model, switches: dict[int, Speculation], temperature: float
) -> None:
    shared_pair.speculation = Speculation("none")
    turn = _turn(shared_pair, temperature)
    plain = _ids(shared_pair.chat().answer(turn))
    events = list[Event]()
    for number, event in enumerate(shared_pair.chat().answer(turn)):
        events.append(event)
        shared_pair.speculation = switches.get(number, shared_pair.speculation)
    assert _ids(events) == plain
    assert not any(event.note for event in events if isinstance(event, Round))


def test_a_change_of_guessing_reaches_a_running_answer_with_its_next_round(pair: Model) -> None:
    pair.speculation = Speculation("none")
    guesses = list[int]()
    for event in pair.chat().answer(_turn(pair)):
        if isinstance(event, Round):
            guesses.append(len(event.guesses))
            on = 3 <= len(guesses) < 6
            pair.speculation = Speculation("draft", draft_tokens=4) if on else Speculation("none")
    assert guesses[:8] == [0, 0, 0, 4, 4, 4, 0, 0]


def test_cancelling_an_answer_that_has_not_begun_is_remembered(pair: Model) -> None:
    events = pair.chat().answer(_turn(pair))
    pair.cancel()
    assert list(events) == [Finished(Stop.CANCELLED)]
    assert len(_ids(pair.chat().answer(_turn(pair)))) == LENGTH


def test_cancelling_the_running_answer_leaves_the_one_that_waits(pair: Model) -> None:
    running, waiting = pair.chat().answer(_turn(pair)), pair.chat().answer(_turn(pair))
    next(running)
    pair.cancel()
    assert list(running)[-1] == Finished(Stop.CANCELLED)
    assert len(_ids(waiting)) == LENGTH
