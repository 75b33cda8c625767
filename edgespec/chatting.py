"""A conversation with a model: what was said, and the ids of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from time import perf_counter

from edgespec.answering import Answer, Asked, Standing
from edgespec.conversation import Memory, Reading, Spoken, checked_messages
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
        return self._remembering(turn, *self._begun(turn, asked))

    def explain(self, turn: Turn, ids: Sequence[int], at: int) -> Explained:
        """What the target thought of ids[at], where `ids` is a whole answer to `turn`.

        Takes one pass where neither this token nor one shortly before it was asked for. Tells as
        many alternatives as the turn's options say, or five.
        """
        asked = self._desk.asked(turn.options, turn.speculation)
        prompt, _ = self._read(turn, asked)
        place = Place(prompt, ids, at)
        most = turn.options.alternatives or _ALTERNATIVES
        session = self._desk.loaded.target.session
        return self._desk.between_answers(lambda: self._explainer.explain(session, place, most))

    def stream(self, text: str) -> Iterator[Event]:
        """Say something and get the answer as events."""
        return self._spoken(*self._said(text))

    def send(self, text: str) -> Reply:
        """Say something and get the whole answer."""
        started_s = perf_counter()
        turn, asked = self._said(text)
        return self._desk.reply(self._spoken(turn, asked), asked, started_s)

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
        asked, messages = self._desk.asked(self.options), (*opening, *self.messages, user)
        return Turn(messages, options=asked.options, when=datetime.now()), asked

    def _spoken(self, turn: Turn, asked: Asked) -> Iterator[Event]:
        """The events of an answer that becomes the end of `messages`."""
        answer, prompt = self._begun(turn, asked)
        return self._speaking(replace(turn, options=asked.options), answer, prompt)

    def _begun(self, turn: Turn, asked: Asked) -> tuple[Answer, str]:
        """An answer that waits for its turn, and the text that it answers."""
        ids, prompt = self._read(turn, asked)
        return self._desk.answer(asked, ids, Standing(turn.begun, turn.expected)), prompt

    def _read(self, turn: Turn, asked: Asked) -> tuple[Tokens, str]:
        """A conversation as ids, with those of its replies where they are known, and as text."""
        messages, when = checked_messages(turn.messages), turn.when or datetime.now()
        extra = {**asked.template_extra, "strftime_now": when.strftime}
        with self._desk.vocabulary() as encoder:
            reading = Reading(encoder, self._memory, extra)
            self._learn(reading, messages, turn.replies)
            return reading.ids(messages), encoder.text(messages, extra)

    def _learn(
        self, reading: Reading, messages: list[Message], replies: Sequence[Sequence[int]]
    ) -> None:
        """Take over from the app which ids replies were made of."""
        caps = self._desk.loaded.target.session.caps
        if sum(map(len, replies)) >= caps.context:
            return  # it would be refused in the end
        ends = [at + 1 for at, message in enumerate(messages) if message.role == "assistant"]
        told = [(messages[:end], ids) for end, ids in zip(ends, replies, strict=False)]
        told = [(said, ids) for said, ids in told if ids and len(said) > 1]
        held = (at for at in range(len(told), 0, -1) if reading.holds(*told[at - 1]))
        for said, ids in told[next(held, 0) :]:
            if fault := Standing(ids).fault(caps.vocab):
                raise BadInput(f"A reply of this conversation is not of this model: {fault}.")
            reading.learn(said, ids)

    def _speaking(self, turn: Turn, answer: Answer, prompt: str) -> Iterator[Event]:
        try:
            yield from self._remembering(turn, answer, prompt)
        finally:
            if answer.ids:
                said = turn.messages[1 if turn.messages[0].role == "system" else 0 :]
                self.messages = [*said, Message("assistant", answer.text)]
                self._latest = replace(turn, begun=(*turn.begun, *answer.ids))

    def _remembering(self, turn: Turn, answer: Answer, prompt: str) -> Iterator[Event]:
        try:
            yield from self._desk.events(answer)
        finally:
            if answer.ids:
                ids = answer.all_ids()
                if answer.whole:  # else what was said is split into ids anew, without the stop
                    reply = Message("assistant", answer.text)
                    self._memory.keep(Spoken(turn.messages, reply, ids), prompt)
                self._context_used = len(ids)

    def _must_have_answered(self) -> Turn:
        if self._latest is None:
            raise BadInput("There is no answer to go on with; say something first.")
        return self._latest
