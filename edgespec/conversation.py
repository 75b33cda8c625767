"""From messages to token ids, keeping the ids of replies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.errors import BadInput
from edgespec.text.channels import Channels
from edgespec.text.template import ChatTemplate, Message, Segment, control_check
from edgespec.text.thoughts import without_thought
from edgespec.text.tokenizer import Tokenizer

ROLES = ("system", "user", "assistant", "tool")


def checked_messages(prompt: str | Sequence[Message]) -> list[Message]:
    """A prompt as messages. Raises: BadInput for what no model could answer."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    if not isinstance(messages, Sequence) or not all(isinstance(m, Message) for m in messages):
        raise BadInput("A prompt is a text or a list of Message(role, content).")
    if not messages or not messages[-1].content.strip():
        raise BadInput("The prompt is empty; say something for the model to answer.")
    for message in messages:
        if message.role not in ROLES:
            raise BadInput(f"There is no role '{message.role}'; there are: {', '.join(ROLES)}.")
        try:
            message.content.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"The prompt is no valid Unicode text: {error.reason}.") from error
    return list(messages)


class PromptEncoder:
    """Renders messages with a model's template and splits them into its tokens.

    Replies keep the ids they were made of: text that is split anew need not match, and would
    throw the cache away. Templates cut out old thoughts by their own marks; where a channel is
    told by other ones, that is done here.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._cuts_thoughts = Channels(tokenizer).known
        self.template = ChatTemplate(
            tokenizer.template(),
            tokenizer.special_text("bos"),
            tokenizer.special_text("eos"),
            holds_control=control_check(tokenizer),
        )

    def encode(self, messages: Sequence[Message], extra: Mapping[str, object]) -> Tokens:
        """The whole conversation and the generation prompt, int32 [n]."""
        if self._cuts_thoughts:
            messages = [_answered(message) for message in messages]
        ids = self._ids(self.template.segments(messages, extra=extra))
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
        following, ids = self._ids(segments), spoken.ids
        if len(ids) and int(ids[-1]) in self.tokenizer.end_tokens:
            ids = ids[:-1]  # the template writes the end of the turn itself
        return np.concatenate([ids, np.array(following, dtype=np.int32)])

    def _ids(self, segments: Sequence[Segment]) -> list[int]:
        ids: list[int] = []
        for segment in segments:
            ids += self.tokenizer.encode(segment.text, special=segment.special)
        return ids


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

    Branches of one conversation are conversations of their own.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._spoken: dict[tuple[Message, ...], Spoken] = {}

    def keep(self, spoken: Spoken) -> None:
        key = (*spoken.before, spoken.reply)
        self._spoken.pop(key, None)
        self._spoken[key] = spoken
        if len(self._spoken) > self._most:
            del self._spoken[next(iter(self._spoken))]

    def find(self, messages: Sequence[Message]) -> Spoken | None:
        """What was spoken in just these messages, the last of them a reply."""
        return self._spoken.get(tuple(messages))

    def clear(self) -> None:
        self._spoken.clear()
