"""One answer: settings made definite, tokens in, events with text out."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.loop import Decoding, speculate
from edgespec.decoding.noise import reply_key
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Reply as ReplyKey
from edgespec.decoding.request import Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput
from edgespec.loading import Loaded
from edgespec.options import AnswerOptions, Speculation
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.switching import Switching
from edgespec.text.narrate import Narrator
from edgespec.text.stops import StopStrings
from edgespec.text.thoughts import opens_thought
from edgespec.text.tokenizer import Tokenizer

_CONTEXT_OF_EXPECTED = 32  # tokens before what is expected, by which an n-gram finds its place
_END_OF_PROMPT = 16  # tokens that the mark of a thought and a few line ends take at most


@dataclass(frozen=True, slots=True)
class Asked:
    """Settings of one answer with every choice made, the seed included.

    wished: how to guess from the next round on; None = as `speculation` says, to the end.
    """

    options: AnswerOptions
    speculation: Speculation
    sampling: Sampling
    wished: Callable[[], Speculation] | None = None

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


@dataclass(frozen=True, slots=True)
class Standing:
    """What of an answer stands already, and what probably follows: ids, as in Turn."""

    begun: Sequence[int] = ()
    expected: Sequence[int] = ()

    def fault(self, vocab: int) -> str | None:
        """Why these are no ids of a model with this vocabulary, or None."""
        for token in (*self.begun, *self.expected):
            if not 0 <= token < vocab:
                return f"token {token} is outside the vocabulary of {vocab}"
        return None


NOTHING = Standing()


class Answer:
    """One run of the loop over a loaded pair, told in text.

    ids: the reply's token ids so far, without those that stood already. begun: the texts of
    those. cancelled: whether it is to end after its current round, or before its first.
    """

    def __init__(
        self,
        loaded: Loaded,
        tokenizer: Tokenizer,
        asked: Asked,
        prompt: Tokens,
        standing: Standing = NOTHING,
    ) -> None:
        options, session = asked.options, loaded.target.session
        if fault := standing.fault(session.caps.vocab):
            raise BadInput(f"An answer cannot go on from these ids: {fault}.")
        begun = np.array(standing.begun, dtype=np.int32)
        self._given, self.ids, self.cancelled = np.concatenate([prompt, begun]), list[int](), False
        self._narrator = Narrator(tokenizer, options.stop)
        self.begun = self._narrator.begun(standing.begun)
        self._thinking = opens_thought(_end_of(prompt, tokenizer))
        self._said = [*self.begun]
        stops = StopStrings(tokenizer, options.stop)
        self._over = stops.first_stop(standing.begun) is not None or (
            len(begun) > 0 and int(begun[-1]) in tokenizer.end_tokens
        )
        prediction = tokenizer.encode(options.prediction, special=False)
        room = session.caps.context - len(self._given)
        request = Request(
            prompt=self._given,
            sampling=asked.sampling,
            # one more than there is room for, so that the context is what ends the answer
            max_tokens=max(1, room + 1) if options.max_tokens is None else options.max_tokens,
            end_tokens=tokenizer.end_tokens,
            stops=stops,
            prediction=[*prediction, *self._placed(standing.expected)],
            reply=ReplyKey(reply_key(prompt), start=len(begun), branch=options.branch),
            rule=RuleName(asked.speculation.rule),
            alternatives=options.alternatives,
        )
        Decoding(session, request, Nothing())  # a prompt that does not fit is said at once
        _proposer(loaded, asked)  # says now what would be wrong later
        # the proposer may be at work for another answer until this one's turn comes
        self._start = partial(_speculating, loaded, asked, request)

    def events(self) -> Generator[Event]:
        if self._over:
            yield PromptRead(0, len(self._given), 0, 0.0, self.begun, self._thinking)
            yield self._finish(Stop.END)
            return
        begun = self.begun
        for event in self._start():
            match event:
                case Round():
                    self.ids += [token.token for token in event.tokens]
                    told = self._narrator.round(event)
                    self._said.append(told.text)
                    yield told
                case Finished():
                    yield self._finish(event.why)
                case PromptRead():
                    yield replace(event, begun=begun, thinking=self._thinking)
                    begun = ()

    def cut_short(self) -> Finished:
        """The end of an answer that was cancelled."""
        return self._finish(Stop.CANCELLED)

    def all_ids(self) -> Tokens:
        """Prompt and reply, int32 [n]."""
        return np.concatenate([self._given, np.array(self.ids, dtype=np.int32)])

    @property
    def whole(self) -> bool:
        """Whether the text says all that the ids say; a stop string is left out of it."""
        return not self._narrator.stopped

    @property
    def text(self) -> str:
        """The whole reply so far, with what stood already."""
        return "".join(self._said)

    def _finish(self, why: Stop) -> Finished:
        finished = self._narrator.finish(Finished(why))
        self._said.append(finished.text)
        return finished

    def _placed(self, expected: Sequence[int]) -> list[int]:
        """Ids that are expected, behind the text that they are expected after."""
        return [*self._given[-_CONTEXT_OF_EXPECTED:].tolist(), *expected] if expected else []


class _AsWished:
    """The proposer of the settings that are wished for now."""

    def __init__(self, loaded: Loaded, wished: Callable[[], Speculation]) -> None:
        self._loaded, self._wished = loaded, wished
        self._speculation = wished()
        self._proposer = loaded.proposer(self._speculation)

    def __call__(self) -> Proposer:
        if (wished := self._wished()) != self._speculation:
            self._speculation, self._proposer = wished, self._loaded.proposer(wished)
        return self._proposer


def _end_of(prompt: Tokens, tokenizer: Tokenizer) -> str:
    """The text behind the last control token: what the template wrote, not what a user did."""
    pieces = [tokenizer.piece(int(token)) for token in prompt[-_END_OF_PROMPT:]]
    last = max((at for at, piece in enumerate(pieces) if not piece), default=0)
    return b"".join(pieces[last:]).decode("utf-8", errors="replace")


def _speculating(loaded: Loaded, asked: Asked, request: Request) -> Iterator[Event]:
    loaded.target.cost.at(len(request.prompt))  # whether trees pay hangs on it
    return speculate(loaded.target.session, request, _proposer(loaded, asked))


def _proposer(loaded: Loaded, asked: Asked) -> Proposer:
    if asked.wished is None:
        return loaded.proposer(asked.speculation)
    return Switching(_AsWished(loaded, asked.wished), loaded.target.session.caps)


def _sampling(sampling: Sampling, changes: Mapping[str, Any]) -> Sampling:
    try:
        return replace(sampling, **changes)
    except TypeError as error:
        raise BadInput(f"Not a number where the sampler needs one: {error}.") from error
