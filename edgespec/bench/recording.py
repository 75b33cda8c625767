"""How answers come to be recorded: said plainly by the target, or taken from a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np

from edgespec.api import Model
from edgespec.backends import SessionOptions
from edgespec.bench.conversing import Conversation
from edgespec.bench.prompts import Prompt
from edgespec.bench.recorded import Recorded, score
from edgespec.conversation import PromptEncoder
from edgespec.decoding.accept import Coupled
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.noise import Noise
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.loading import as_drafter
from edgespec.models.compat import check_vocabularies
from edgespec.models.model_header import header_of
from edgespec.options import AnswerOptions, LoadOptions
from edgespec.planning.model_source import DraftCost
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.recycling import SUCCESSORS
from edgespec.text.detokenize import Detokenizer
from edgespec.text.template import Message

_READ_TOKENS = 256  # of a text whose reading is timed
_GREEDY = Coupled(Sampling(0.0), Noise(0, 0))


def record(model: Model, prompt: Prompt, max_tokens: int, system: str = "") -> Iterator[Recorded]:
    """One plain, greedy answer for each turn of a prompt.

    Raises: BadInput for a prompt that does not fit.
    """
    tokenizer = model.loaded.models[0].tokenizer
    conversation = Conversation(tokenizer, system, AnswerOptions())
    for turn, said in enumerate(prompt.turns, 1):
        asked = conversation.asked(said)
        request = Request(
            asked,
            Sampling(0.0, seed=0),
            max_tokens,
            tokenizer.end_tokens,
            alternatives=SUCCESSORS,
        )
        told = [
            token
            for event in speculate(model.loaded.target.session, request, Nothing())
            if isinstance(event, Round)
            for token in event.tokens
        ]
        ids = [token.token for token in told]
        near = [[best.token for best in token.alternatives] for token in told]
        scores = [[best.logprob for best in token.alternatives] for token in told]
        name = prompt.id if len(prompt.turns) == 1 else f"{prompt.id}/{turn}"
        yield Recorded(
            name,
            prompt.category,
            asked,
            np.array(ids, np.int32),
            near=np.array(near, np.int32),
            scores=np.array(scores, np.float32),
        )
        detokenizer = Detokenizer(tokenizer)
        text = "".join([*map(detokenizer.feed, ids), detokenizer.flush()])
        conversation.replied(text, ids)


def from_conversations(
    model: Model,
    conversations: Iterable[Sequence[Message]],
    most: int,
    note: Callable[[str], object],
) -> list[Recorded]:
    """The first `most` answers of these conversations, as the model's template writes them.

    An answer is cut where the context ends; one whose prompt does not fit is left out. note: is
    told in a line how many that were, and which context would hold them.
    """
    context, records = model.info.context, list[Recorded]()
    too_long: list[int] = []
    left_out = 0
    for answer in _answers(model, conversations):
        if len(records) == most:
            break
        begun, tokens = len(answer.prompt), len(answer.prompt) + len(answer.reply)
        if tokens > context:
            too_long.append(tokens)
        if begun < context:
            records.append(replace(answer, reply=answer.reply[: context - begun]))
        else:
            left_out += 1
    if too_long:
        note(
            f"{_counted(len(too_long))} not fit whole into the context of {context} tokens:"
            f" {left_out} left out, {len(too_long) - left_out} cut; --context"
            f" {max(too_long)} would hold them"
        )
    return records


def _counted(answers: int) -> str:
    return "1 answer does" if answers == 1 else f"{answers} answers do"


def _answers(model: Model, conversations: Iterable[Sequence[Message]]) -> Iterator[Recorded]:
    """Every answer that says something, whole."""
    tokenizer = model.loaded.models[0].tokenizer
    encoder = PromptEncoder(tokenizer)
    for number, messages in enumerate(conversations, 1):
        for place, message in enumerate(messages):
            if message.role != "assistant" or not place:
                continue
            reply = tokenizer.encode(message.content, special=False)
            if reply:
                prompt, ids = encoder.encode(messages[:place], {}), np.array(reply, np.int32)
                yield Recorded(f"{number}/{place}", "conversation", prompt, ids)


class Drafter:
    """The draft model of a loaded pair, in a session of its own.

    vocab: ids that it shares with the target.
    """

    def __init__(self, model: Model, options: LoadOptions) -> None:
        pair, drafter = model.loaded.pair, model.loaded.drafter
        assert pair.draft is not None
        assert drafter is not None
        header = header_of(pair.draft)
        context = min(model.info.context, header.context_length or model.info.context)
        settings = SessionOptions(
            context, options.threads, flash_attention=options.flash_attention, lazy=True
        )
        self._guess_s = drafter.guess_s
        self._vocab = check_vocabularies(model.loaded.header, header).shared
        session, contexts = model.loaded.models[1].session(settings), (context, model.info.context)
        self._session = as_drafter(session, contexts, header.id_table, self._vocab)

    def guessed(self, record: Recorded) -> Recorded:
        """The answer with this draft model's guesses."""
        return score(record, self._session, self._vocab, _GREEDY)

    def cost(self, records: Sequence[Recorded]) -> DraftCost:
        """What a guess costs here, and reading a token of these answers."""
        room = min(_READ_TOKENS, self._session.caps.context // 2)
        text = np.concatenate([[*r.prompt, *r.reply] for r in records]).astype(np.int32)[:room]
        best = float("inf")
        for _ in range(2):
            self._session.reset()
            started = perf_counter()
            for _ in self._session.prefill(text):
                pass
            best = min(best, perf_counter() - started)
        return DraftCost(self._guess_s, best / len(text))
