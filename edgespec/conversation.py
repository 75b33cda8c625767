"""From messages to token ids, keeping the ids of replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Finished, Stop
from edgespec.errors import BadInput, TemplateError
from edgespec.text.channels import Channels
from edgespec.text.narrate import Narrator
from edgespec.text.splitting import Splitter
from edgespec.text.template import ChatTemplate, Message, control_check
from edgespec.text.thoughts import without_thought
from edgespec.text.tokenizer import Tokenizer

ROLES = ("system", "user", "assistant", "tool")


def checked_messages(prompt: str | Sequence[Message]) -> list[Message]:
    """A prompt as messages. Raises: BadInput for what no model could answer."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    if not isinstance(messages, Sequence) or not all(isinstance(m, Message) for m in messages):
        raise BadInput("A prompt is a text or a list of Message(role, content).")
    for message in messages:
        _check(message)
    if not messages or not messages[-1].content.strip():
        raise BadInput("The prompt is empty; say something for the model to answer.")
    return list(messages)


def _check(message: Message) -> None:
    if message.role not in ROLES:
        raise BadInput(f"There is no role '{message.role}'; there are: {', '.join(ROLES)}.")
    if not isinstance(message.content, str):
        kind = type(message.content).__name__
        raise BadInput(f"The content of a message is {kind}, not text; give it as one text.")
    try:
        message.content.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"The prompt is no valid Unicode text: {error.reason}.") from error


class PromptEncoder:
    """Renders messages with a model's template and splits them into its tokens.

    Replies keep the ids they were made of: text that is split anew need not match, and would
    throw the cache away. Templates cut out old thoughts by their own marks; where a channel is
    told by other ones, that is done here.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._splitter = Splitter(tokenizer)
        self._cuts_thoughts = Channels(tokenizer).known
        self.template = ChatTemplate(
            tokenizer.template(),
            tokenizer.special_text("bos"),
            tokenizer.special_text("eos"),
            holds_control=control_check(tokenizer),
        )

    def text(self, messages: Sequence[Message], extra: Mapping[str, object]) -> str:
        """The whole conversation and the generation prompt, as one text."""
        return self.template.render(self._history(messages), extra=extra)

    def encode(self, messages: Sequence[Message], extra: Mapping[str, object]) -> Tokens:
        """The whole conversation and the generation prompt, int32 [n]."""
        ids = self._splitter.ids(self.template.segments(self._history(messages), extra=extra))
        bos = self.tokenizer.bos
        if bos is not None and ids[:1] != [bos]:
            ids = [bos, *ids]
        return np.array(ids, dtype=np.int32)

    def continued(
        self, spoken: Spoken, user: Message, extra: Mapping[str, object]
    ) -> Tokens | None:
        """The ids so far and the next user turn; None where the whole must be encoded anew."""
        if self._cuts_thoughts and any(_answered(m) != m for m in (*spoken.before, spoken.reply)):
            return None
        segments = self.template.continuation(spoken.before, spoken.reply, user, extra=extra)
        if segments is None:
            return None
        following, ids = self._splitter.ids(segments, behind_text=True), spoken.ids
        if len(ids) and int(ids[-1]) in self.tokenizer.end_tokens:
            ids = ids[:-1]  # the template writes the end of the turn itself
        return np.concatenate([ids, np.array(following, dtype=np.int32)])

    def told(self, ids: Sequence[int]) -> str:
        """The whole text of an answer of these tokens."""
        narrator = Narrator(self.tokenizer)
        return "".join([*narrator.begun(ids), narrator.finish(Finished(Stop.END)).text])

    def _history(self, messages: Sequence[Message]) -> Sequence[Message]:
        return [_answered(message) for message in messages] if self._cuts_thoughts else messages


def _answered(message: Message) -> Message:
    """What stays of a message once it is history."""
    if message.role != "assistant":
        return message
    return replace(message, content=without_thought(message.content))


class Spoken:
    """A conversation that ended with a reply, and the ids of all of it."""

    def __init__(self, before: Collection[Message], reply: Message, ids: Tokens) -> None:
        self.before, self.reply, self.ids = tuple(before), reply, ids


class Memory:
    """The latest conversations that ended with a reply, so that each can go on with its ids.

    Branches of one conversation are conversations of their own; so is one whose prompt the
    template writes otherwise, as on another day or where the model is to think.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._spoken: dict[tuple[str, tuple[Message, ...]], Spoken] = {}

    def keep(self, spoken: Spoken, prompt: str) -> None:
        """prompt: the text that was replied to."""
        key = prompt, (*spoken.before, spoken.reply)
        self._spoken.pop(key, None)
        self._spoken[key] = spoken
        if len(self._spoken) > self._most:
            del self._spoken[next(iter(self._spoken))]

    def find(self, messages: Sequence[Message], prompt: str) -> Spoken | None:
        """What was spoken in just these messages, the last of them a reply to this text."""
        return self._spoken.get((prompt, tuple(messages)))

    def clear(self) -> None:
        self._spoken.clear()


@dataclass(frozen=True, slots=True)
class Reading:
    """How a conversation is read for one answer: replies that are remembered keep their ids.

    extra: variables for the template.
    """

    encoder: PromptEncoder
    memory: Memory
    extra: Mapping[str, object]

    def ids(self, messages: Sequence[Message]) -> Tokens:
        """The whole conversation and the generation prompt, int32 [n]."""
        spoken = self.known(messages[:-1])
        ids = None if spoken is None else self.encoder.continued(spoken, messages[-1], self.extra)
        return self.encoder.encode(messages, self.extra) if ids is None else ids

    def known(self, messages: Sequence[Message]) -> Spoken | None:
        """What was spoken in just these messages, the last of them a reply to what is read so
        now."""
        if not messages or messages[-1].role != "assistant":
            return None
        try:
            prompt = self.encoder.text(messages[:-1], self.extra)
        except TemplateError:
            return None  # the whole conversation will say why
        return self.memory.find(messages, prompt)

    def holds(self, messages: Sequence[Message], ids: Sequence[int]) -> bool:
        """Whether the last of these messages is remembered as made of these ids."""
        spoken = self.known(messages)
        return spoken is not None and spoken.ids[-len(ids) :].tolist() == list(ids)

    def learn(self, messages: Sequence[Message], ids: Sequence[int]) -> None:
        """Remember which ids the last of these messages was made of, if they say just that: a stop
        string may have cut its text."""
        *before, reply = messages
        if self.encoder.told(ids) == reply.content:
            whole = np.concatenate([self.ids(before), np.array(ids, dtype=np.int32)])
            self.memory.keep(Spoken(before, reply, whole), self.encoder.text(before, self.extra))
