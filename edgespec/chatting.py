"""A conversation with a model: what was said, and the ids of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from edgespec.answering import Answer, Asked, Standing
from edgespec.conversation import Memory, Spoken, checked_messages
from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Event
from edgespec.desk import Desk
from edgespec.errors import BadInput
from edgespec.explaining import Explainer, Place
from edgespec.options import AnswerOptions, Explained, Reply, Turn
from edgespec.text.endings import end_names
from edgespec.text.template import Message

_ALTERNATIVES = 5  # told by explain() where a turn does not say how many


class Chat:
    """A conversation: remembers what was said, and keeps the ids of replies.

    An app that keeps its conversations itself, with branches, uses answer() and explain() alone.
    """

    def __init__(self, desk: Desk, system: str, options: AnswerOptions) -> None:
        self._desk, self.system, self.options = desk, system, options
        self.messages: list[Message] = []
        self._memory = Memory()
        with desk.vocabulary() as encoder:
            self._explainer = Explainer(encoder.tokenizer)
        self._latest: Turn | None = None  # of `messages`, with the ids of its whole answer
        self._context_used = 0

    @property
    def context_used(self) -> int:
        """Tokens of the latest answer and of what it answers."""
        return self._context_used

    @property
    def end_names(self) -> dict[int, str]:
        """The tokens that end an answer, which have no text, with their names; "" = unknown."""
        with self._desk.vocabulary() as encoder:
            return end_names(encoder.tokenizer)

    def answer(self, turn: Turn) -> Iterator[Event]:
        """Answer a turn, as events; a cancelled answer is remembered as far as it came.

        The texts follow on those of the tokens that stand, which the first event tells; what a
        cut answer said with Finished, such as half a character, is then said anew. An answer
        whose tokens already end it ends at once.
        Raises: BadInput at once for a turn that is empty or does not fit.
        """
        asked = self._desk.asked(turn.options, turn.speculation)
        return self._remembering(*self._begun(turn, asked))

    def explain(self, turn: Turn, ids: Sequence[int], at: int) -> Explained:
        """What the target thought of ids[at], where `ids` is a whole answer to `turn`.

        Takes one pass where neither this token nor one shortly before it was asked for. Tells as
        many alternatives as the turn's options say, or five.
        """
        asked = self._desk.asked(turn.options, turn.speculation)
        prompt = self._prompt(turn, asked)
        place = Place(prompt, ids, at)
        most = turn.options.alternatives or _ALTERNATIVES
        session = self._desk.loaded.target.session
        return self._desk.between_answers(lambda: self._explainer.explain(session, place, most))

    def stream(self, text: str) -> Iterator[Event]:
        """Say something and get the answer as events."""
        return self._spoken(*self._said(text))

    def send(self, text: str) -> Reply:
        """Say something and get the whole answer."""
        turn, asked = self._said(text)
        return self._desk.reply(self._spoken(turn, asked), asked)

    def regenerate(self) -> Iterator[Event]:
        """Another answer to what was said last, which takes the place of the one before."""
        latest = self._must_have_answered()
        options = replace(latest.options, branch=latest.options.branch + 1)
        turn = replace(latest, begun=(), expected=(), options=options)
        return self._spoken(turn, self._desk.asked(options, turn.speculation))

    def resume(self) -> Iterator[Event]:
        """Go on with the latest answer where it was cut; max_tokens counts from there."""
        turn = self._must_have_answered()
        return self._spoken(turn, self._desk.asked(turn.options, turn.speculation))

    def reset(self) -> None:
        """Forget everything that was said."""
        self.messages, self._latest, self._context_used = [], None, 0
        self._memory.clear()

    def _said(self, text: str) -> tuple[Turn, Asked]:
        (user,) = checked_messages(text)
        opening = [Message("system", self.system)] if self.system else []
        asked = self._desk.asked(self.options)
        return Turn((*opening, *self.messages, user), options=asked.options), asked

    def _spoken(self, turn: Turn, asked: Asked) -> Iterator[Event]:
        """The events of an answer that becomes the end of `messages`."""
        answer, messages = self._begun(turn, asked)
        return self._speaking(replace(turn, options=asked.options), answer, messages)

    def _begun(self, turn: Turn, asked: Asked) -> tuple[Answer, list[Message]]:
        standing = Standing(turn.begun, turn.expected)
        answer = self._desk.answer(asked, self._prompt(turn, asked), standing)
        return answer, list(turn.messages)

    def _prompt(self, turn: Turn, asked: Asked) -> Tokens:
        """The ids of a conversation, with those of its replies where they are known."""
        messages = checked_messages(turn.messages)
        ends = [at + 1 for at, message in enumerate(messages) if message.role == "assistant"]
        known = [end for end in ends if self._memory.find(messages[:end])]
        context = self._desk.loaded.target.session.caps.context
        if sum(map(len, turn.replies)) < context:  # more would be refused in the end
            for end, ids in zip(ends, turn.replies, strict=False):
                if ids and end > max(known, default=1):
                    self._recall(messages[:end], ids, asked)
        return self._encoded(messages, asked)

    def _recall(self, messages: list[Message], ids: Sequence[int], asked: Asked) -> None:
        """Take over from the app which ids the last of these messages was made of."""
        vocab = self._desk.loaded.target.session.caps.vocab
        if fault := Standing(ids).fault(vocab):
            raise BadInput(f"A reply of this conversation is not of this model: {fault}.")
        *before, reply = messages
        prompt = self._encoded(before, asked)
        whole = np.concatenate([prompt, np.array(ids, dtype=np.int32)])
        self._memory.keep(Spoken(before, reply, whole))

    def _encoded(self, messages: list[Message], asked: Asked) -> Tokens:
        """Ids up to and including the generation prompt, int32 [n]."""
        extra, tokens = asked.template_extra, None
        with self._desk.vocabulary() as encoder:
            if spoken := self._memory.find(messages[:-1]):
                tokens = encoder.continued(spoken, messages[-1], extra)
            return encoder.encode(messages, extra) if tokens is None else tokens

    def _speaking(self, turn: Turn, answer: Answer, messages: list[Message]) -> Iterator[Event]:
        try:
            yield from self._remembering(answer, messages)
        finally:
            if answer.ids:
                opening = 1 if messages[0].role == "system" else 0
                self.messages = [*messages[opening:], Message("assistant", answer.text)]
                self._latest = replace(turn, begun=(*turn.begun, *answer.ids))

    def _remembering(self, answer: Answer, messages: list[Message]) -> Iterator[Event]:
        try:
            yield from self._desk.events(answer)
        finally:
            if answer.ids:
                ids = answer.all_ids()
                if answer.whole:  # else what was said is split into ids anew, without the stop
                    self._memory.keep(Spoken(messages, Message("assistant", answer.text), ids))
                self._context_used = len(ids)

    def _must_have_answered(self) -> Turn:
        if self._latest is None:
            raise BadInput("There is no answer to go on with; say something first.")
        return self._latest
