"""A conversation that was kept goes on after a restart as if there had been none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from api_trials import Load
from tiny_models import CHATML, TinyModels

from edgespec.api import AnswerOptions, Chat, Model
from edgespec.decoding.events import Finished, PromptRead, Round, Stop
from edgespec.decoding.sampling import Sampling
from edgespec.history import Conversation, History, State
from edgespec.tui.kept import kept_options
from edgespec.tui.talking import Answerer
from edgespec.tui.wishes import Wish, first_answer, rest_of

LENGTH, CUT = 24, 7
TEMPLATES = {
    "plain": CHATML,
    "with the time": "{{ strftime_now('%S %f') }}\n" + CHATML,
    "with the way to think": "{{ '/think' if enable_thinking else '/no_think' }}\n" + CHATML,
}


class Talk:
    """One model and the conversation with it, kept as the chat screen keeps it."""

    def __init__(self, model: Model) -> None:
        self.model, self.chat = model, model.chat()
        self.by = Answerer(model.info.pair, vocabulary=model.vocabulary)
        self.kept: Conversation = History.in_memory().new("Answer briefly.")
        never = dict.fromkeys(model.loaded.models[0].tokenizer.end_tokens, -1e6)
        self.options = AnswerOptions(Sampling(0.8, logit_bias=never), max_tokens=LENGTH)

    def ask(self, text: str, options: AnswerOptions) -> Wish:
        self.kept.say(text)
        return first_answer(self.kept, options, self.by)

    def rest(self) -> Wish:
        options = replace(self.options, max_tokens=LENGTH - CUT, reasoning=None)
        return rest_of(self.kept, self.kept.path[-1], options, self.by)

    def restart(self) -> None:
        self.chat = self.model.chat()

    def answer(self, wish: Wish) -> tuple[int, ...]:
        """Answer and keep the answer; its ids."""
        key = wish.into
        if key is None:
            key = self.kept.begin_answer(self.by.name, wish.seed, vocabulary=self.by.vocabulary).id
        text, ids, why = _heard(self.chat, wish)
        state = State.WHOLE if why is Stop.END else State.CUT
        figures = {"finish_reason": why.value, "asked": kept_options(wish.turn)}
        self.kept.finish(key, text, ids, state, json.loads(json.dumps(figures)))
        return ids


def _heard(chat: Chat, wish: Wish) -> tuple[str, tuple[int, ...], Stop]:
    text, ids, why = "", list(wish.turn.begun), Stop.CANCELLED
    for event in chat.answer(wish.turn):
        match event:
            case PromptRead():
                text += "".join(event.begun)
            case Round():
                text += event.text
                ids += [token.token for token in event.tokens]
            case Finished():
                text, why = text + event.text, event.why
    return text, tuple(ids), why


def _uncut(talk: Talk, wish: Wish) -> tuple[int, ...]:
    options = replace(wish.turn.options, max_tokens=LENGTH)
    return _heard(talk.chat, replace(wish, turn=replace(wish.turn, options=options)))[1]


@pytest.fixture(params=TEMPLATES.values(), ids=TEMPLATES.keys())
def talk(request: pytest.FixtureRequest, opened: Load, tiny_models: TinyModels) -> Talk:
    return Talk(opened(str(tiny_models(layers=2, template=request.param)), context=512))


def _splits_into_others(talk: Talk) -> bool:
    """Whether the text of the first reply, split anew, is other ids than it was made of."""
    tokenizer, reply = talk.model.loaded.models[0].tokenizer, talk.kept.path[1]
    return tuple(tokenizer.encode(reply.content, special=False)) != reply.ids


@pytest.mark.parametrize("asked_behind_it", [False, True])
def test_the_rest_of_an_answer_is_that_of_one_that_was_never_cut(
    talk: Talk, asked_behind_it: bool
) -> None:
    talk.answer(talk.ask("Hello", replace(talk.options, reasoning=False)))
    assert _splits_into_others(talk)
    if asked_behind_it:
        talk.restart()
    wish = talk.ask("And then?", replace(talk.options, max_tokens=CUT, reasoning=True))
    uncut = _uncut(talk, wish)
    assert talk.answer(wish) == uncut[:CUT]
    talk.restart()
    assert talk.answer(talk.rest()) == uncut


def test_a_reply_that_a_stop_string_cut_is_split_anew_before_and_after(talk: Talk) -> None:
    first = talk.ask("Hello", talk.options)
    text, ids, _ = _heard(talk.model.chat(), first)
    stop = next(letter for letter in text[LENGTH // 2 :] if letter.isascii())
    stopping = replace(first.turn, options=replace(first.turn.options, stop=(stop,)))
    talk.answer(replace(first, turn=stopping))
    reply = talk.kept.path[1]
    assert reply.content == text[: text.index(stop)]
    assert reply.ids == ids[: len(reply.ids)]
    wish = talk.ask("And then?", replace(talk.options, max_tokens=CUT))
    uncut = _uncut(talk, wish)
    talk.answer(wish)
    talk.restart()
    assert talk.answer(talk.rest()) == uncut
    anew = replace(wish, turn=replace(wish.turn, replies=()))
    assert _uncut(Talk(talk.model), anew) == uncut
