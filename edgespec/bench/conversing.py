"""A conversation's token ids, as a chat makes them, and the scores somewhere in an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgespec.api import Model
from edgespec.conversation import PromptEncoder, Spoken
from edgespec.decoding.draft import EMPTY, ROOT, Tokens
from edgespec.options import AnswerOptions
from edgespec.text.template import Message
from edgespec.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from edgespec.bench.prompts import Prompt


class Conversation:
    """The ids of a conversation, turn by turn; a reply keeps the ids it was made of."""

    def __init__(self, tokenizer: Tokenizer, system: str, options: AnswerOptions) -> None:
        self._encoder = PromptEncoder(tokenizer)
        thinking = options.reasoning
        self._extra: dict[str, object] = {} if thinking is None else {"enable_thinking": thinking}
        self._messages = [Message("system", system)] if system else []
        self._spoken: Spoken | None = None
        self._ids: Tokens = np.empty(0, dtype=np.int32)

    def asked(self, text: str) -> Tokens:
        """Everything up to the answer, int32 [n]."""
        user = Message("user", text)
        self._messages.append(user)
        ids = None
        if self._spoken is not None:
            ids = self._encoder.continued(self._spoken, user, self._extra)
        self._ids = self._encoder.encode(self._messages, self._extra) if ids is None else ids
        return self._ids

    def replied(self, text: str, ids: Sequence[int]) -> None:
        reply = Message("assistant", text)
        whole = np.concatenate([self._ids, np.array(ids, dtype=np.int32)])
        self._spoken = Spoken(self._messages, reply, whole)
        self._messages.append(reply)


class Margins:
    """How sure the target is at one place of an answer: its best score minus the next."""

    def __init__(self, model: Model, system: str, options: AnswerOptions) -> None:
        self._model, self._system, self._options = model, system, options
        self._known: dict[bytes, float] = {}

    def after(
        self, prompt: Prompt, replies: Sequence[tuple[str, Sequence[int]]], ids: Sequence[int]
    ) -> float:
        """The margin behind `ids`, the beginning of the reply to the turn after `replies`."""
        tokenizer = self._model.loaded.models[0].tokenizer
        conversation = Conversation(tokenizer, self._system, self._options)
        for said, (text, reply) in zip(prompt.turns, replies, strict=False):
            conversation.asked(said)
            conversation.replied(text, reply)
        asked = conversation.asked(prompt.turns[len(replies)])
        tokens = np.concatenate([asked, np.array(ids, dtype=np.int32)])
        key = tokens.tobytes()
        if key not in self._known:
            self._known[key] = self._measured(tokens)
        return self._known[key]

    def _measured(self, tokens: Tokens) -> float:
        session = self._model.loaded.target.session
        for _ in session.prefill(tokens):
            pass
        second, first = np.partition(session.verify(EMPTY).logits(ROOT), -2)[-2:]
        self._model.forget()  # takes the pass back that is not committed
        return float(first) - float(second)
