"""One answer: settings made definite, tokens in, events with text out."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.loop import Decoding, speculate
from edgespec.decoding.noise import reply_key
from edgespec.decoding.request import Reply as ReplyKey
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput
from edgespec.loading import Loaded
from edgespec.options import AnswerOptions, Speculation
from edgespec.proposers.nothing import Nothing
from edgespec.text.narrate import Narrator
from edgespec.text.stops import StopStrings
from edgespec.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Asked:
    """Settings of one answer with every choice made, the seed included."""

    options: AnswerOptions
    speculation: Speculation
    sampling: Sampling

    @classmethod
    def of(
        cls, options: AnswerOptions, speculation: Speculation, advice: Mapping[str, float | int]
    ) -> Asked:
        """advice: what the model's makers recommend, used where the caller names no sampler."""
        sampling = options.sampling or _sampling(Sampling(), advice)
        sampling = _sampling(sampling, options.overrides)
        if sampling.seed is None:
            sampling = replace(sampling, seed=secrets.randbits(32))
        made = replace(options, sampling=sampling, overrides={})
        return cls(made, speculation, sampling)

    @property
    def seed(self) -> int:
        assert self.sampling.seed is not None
        return self.sampling.seed

    @property
    def template_extra(self) -> dict[str, object]:
        thinking = self.options.reasoning
        return {} if thinking is None else {"enable_thinking": thinking}


class Answer:
    """One run of the loop over a loaded pair, told in text.

    ids: the reply's token ids so far.
    """

    def __init__(self, loaded: Loaded, tokenizer: Tokenizer, asked: Asked, prompt: Tokens) -> None:
        options = asked.options
        self._prompt, self.ids = prompt, list[int]()
        self._narrator = Narrator(tokenizer, options.stop)
        room = loaded.target.session.caps.context - len(prompt)
        request = Request(
            prompt=prompt,
            sampling=asked.sampling,
            # one more than there is room for, so that the context is what ends the answer
            max_tokens=max(1, room + 1) if options.max_tokens is None else options.max_tokens,
            end_tokens=tokenizer.end_tokens,
            stops=StopStrings(tokenizer, options.stop),
            prediction=tokenizer.encode(options.prediction, special=False),
            reply=ReplyKey(reply_key(prompt), branch=options.branch),
            rule=RuleName(asked.speculation.rule),
        )
        session, proposer = loaded.target.session, loaded.proposer(asked.speculation)
        Decoding(session, request, Nothing())  # a prompt that does not fit is said at once
        # the proposer may be at work for another answer until this one's turn comes
        self._start = partial(speculate, session, request, proposer)

    def events(self) -> Generator[Event]:
        for event in self._start():
            match event:
                case Round():
                    self.ids += [token.token for token in event.tokens]
                    yield self._narrator.round(event)
                case Finished():
                    yield self._narrator.finish(event)
                case PromptRead():
                    yield event

    def cut_short(self) -> Finished:
        """The end of an answer that was cancelled."""
        return self._narrator.finish(Finished(Stop.CANCELLED))

    def all_ids(self) -> Tokens:
        """Prompt and reply, int32 [n]."""
        return np.concatenate([self._prompt, np.array(self.ids, dtype=np.int32)])


def _sampling(sampling: Sampling, changes: Mapping[str, Any]) -> Sampling:
    try:
        return replace(sampling, **changes)
    except TypeError as error:
        raise BadInput(f"Not a number where the sampler needs one: {error}.") from error
