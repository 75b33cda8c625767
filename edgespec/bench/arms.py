"""What is compared: ways to answer the same prompt, which look alike to whoever measures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from edgespec.answering import Asked
from edgespec.api import Model
from edgespec.backends import OffersPlainLoop, PlainLoop, SessionOptions
from edgespec.bench.conversing import Conversation
from edgespec.bench.second_cache import no_room
from edgespec.decoding.events import Event, Finished, PromptRead, Round
from edgespec.decoding.stats import Stats
from edgespec.errors import BadInput, EdgespecError, OutOfMemory
from edgespec.models.shown import shown
from edgespec.options import AnswerOptions, Speculation
from edgespec.text.detokenize import Detokenizer
from edgespec.text.sanitize import Sanitizer
from edgespec.text.template import Message

if TYPE_CHECKING:
    from edgespec.bench.prompts import Prompt

PLAIN_LOOP = "plain-loop"
_WITHOUT_DRAFTER = ("none", "ngram:8", "auto", PLAIN_LOOP)
_WITH_DRAFTER = ("none", "ngram:8", "draft:2", "draft:4", "draft:6", "auto", PLAIN_LOOP)
_FORM = re.compile(r"none|(?:auto|ngram|draft|recycling|tree)(?::[1-9][0-9]{0,3})?")
_FORMS = (
    f"none, {PLAIN_LOOP}; auto, ngram, draft, recycling and tree with or without a length, as in"
    " draft:4"
)
# ended by a mark with space behind it, by a mark that needs none, or by an empty line; only tried
# where a line starts, so that a long line without an end costs no more than its length
_SENTENCE = re.compile(
    r"^[^\S\n]*\S[^\n]*?(?:[.!?…][\"'”’)\]]*\s|[。！？]|\n\s*?\n)",  # noqa: RUF001
    re.MULTILINE,
)
_LAST_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]]*\s*$")  # noqa: RUF001

Stopping = Callable[[], bool]
"""Whether time is up; asked at every token."""


@dataclass(frozen=True, slots=True)
class Answered:
    """One answer and what was measured of it; None is what cannot be told.

    gaps_s: seconds between arrivals; the tokens of one round arrive together. widths: rows of a
    verify pass, and how many passes had them. ids: None where only text is known.
    """

    text: str
    tokens: int
    ids: tuple[int, ...] | None
    first_token_s: float | None
    tokens_per_second: float | None
    first_sentence_s: float | None = None
    gaps_s: tuple[float, ...] = ()
    stats: Stats | None = None
    widths: tuple[tuple[int, int], ...] = ()
    faults: tuple[str, ...] = ()


class Arm(Protocol):
    """A way to answer."""

    @property
    def name(self) -> str: ...

    def answers(self, prompt: Prompt, tokens: int, stopping: Stopping) -> Iterator[Answered]:
        """One answer for each turn, in one conversation that starts from nothing.

        Ends early, without the answer that was under way, once `stopping()` says so.
        """
        ...


class PeerAnswer(Protocol):
    """What another program's answer came to."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> int: ...
    @property
    def seconds_to_first_token(self) -> float | None: ...
    @property
    def tokens_per_second(self) -> float | None: ...


class Peer(Protocol):
    """Another program that answers on this machine."""

    @property
    def name(self) -> str: ...

    def answer(self, messages: Sequence[Message], max_tokens: int) -> PeerAnswer: ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What holds for every local arm. session: as the target's own was opened."""

    options: AnswerOptions
    session: SessionOptions
    system: str = ""
    rule: str = "coupled"


@dataclass(slots=True)
class Arrivals:
    """When the parts of one answer came, seconds since it was asked for.

    Nothing is looked for while they come, since that would slow the answer that is timed.
    """

    started_s: float = field(default_factory=perf_counter)
    at_s: list[float] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)  # one for each arrival, and what came behind

    def take(self, text: str, now: float) -> None:
        """Tokens that arrived together at `now`; a character may still miss some of its bytes."""
        self.at_s.append(now - self.started_s)
        self._parts.append(text)

    def end(self, text: str = "") -> None:
        """The answer is over; `text` was held back until now."""
        self._parts.append(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def first_sentence_s(self) -> float | None:
        """When the first sentence was there as a whole; for an answer that is over."""
        text = self.text
        if found := _SENTENCE.search(text):
            read = accumulate(map(len, self._parts))
            came = (at for at, end in zip(self.at_s, read, strict=False) if end >= found.end())
            return next(came, self._last_s)
        return self._last_s if _LAST_SENTENCE.search(text) else None

    @property
    def gaps_s(self) -> tuple[float, ...]:
        return tuple(b - a for a, b in zip(self.at_s, self.at_s[1:], strict=False))

    @property
    def _last_s(self) -> float | None:
        return self.at_s[-1] if self.at_s else None


class LocalArm:
    """edgespec's own loop with one kind of guessing."""

    def __init__(self, name: str, model: Model, setup: Setup) -> None:
        self.name = name
        self._model, self._setup = model, setup
        self._speculation = speculation(name, setup.rule)
        if self._speculation.proposer == "draft" and model.info.draft is None:
            raise BadInput(
                f"The arm '{name}' needs a draft model and this pair has no draft model; name one"
                " with --draft FILE, or leave the arm out of --arms."
            )
        model.loaded.proposer(self._speculation)  # says now what would be wrong later

    def answers(self, prompt: Prompt, tokens: int, stopping: Stopping) -> Iterator[Answered]:
        self._model.forget()
        self._model.speculation = self._speculation
        options = replace(self._setup.options, max_tokens=tokens)
        chat = self._model.chat(self._setup.system, options)
        for said in prompt.turns:
            told = _Told()
            for event in chat.stream(said):
                told.take(event, perf_counter())
                if stopping():
                    return
            yield told.answered()


class PlainLoopArm:
    """The library's own loop; edgespec only splits the prompt into tokens."""

    name = PLAIN_LOOP

    def __init__(self, loop: PlainLoop, model: Model, setup: Setup) -> None:
        self._loop, self._setup = loop, setup
        self._tokenizer = model.loaded.models[0].tokenizer

    def answers(self, prompt: Prompt, tokens: int, stopping: Stopping) -> Iterator[Answered]:
        self._loop.forget()
        conversation = Conversation(self._tokenizer, self._setup.system, self._setup.options)
        for said in prompt.turns:
            asked = conversation.asked(said)
            arrivals, ids, at = Arrivals(), list[int](), list[float]()
            for token in self._loop.answer(asked, tokens, self._tokenizer.end_tokens):
                at.append(perf_counter())
                ids.append(token)
                if stopping():
                    return
            # text is made afterwards, so that the loop's time is the library's alone
            detokenizer, sanitizer = Detokenizer(self._tokenizer), Sanitizer()
            for token, when in zip(ids, at, strict=True):
                ended = token in self._tokenizer.end_tokens
                text = "" if ended else detokenizer.feed(token)
                arrivals.take(sanitizer.feed(text), when)
            arrivals.end(sanitizer.feed(detokenizer.flush()) + sanitizer.flush())
            conversation.replied(arrivals.text, ids)
            speed = (len(at) - 1) / (at[-1] - at[0]) if len(at) > 1 and at[-1] > at[0] else None
            yield Answered(
                arrivals.text,
                len(ids),
                tuple(ids),
                arrivals.at_s[0],
                speed,
                arrivals.first_sentence_s,
                arrivals.gaps_s,
            )


class PeerArm:
    """Another program on this machine, as it answers over its own interface."""

    def __init__(self, peer: Peer, system: str = "") -> None:
        self.name = f"peer:{peer.name}"
        self._peer, self._system = peer, system

    def answers(self, prompt: Prompt, tokens: int, stopping: Stopping) -> Iterator[Answered]:
        messages = [Message("system", self._system)] if self._system else []
        for said in prompt.turns:
            if stopping():
                return
            messages.append(Message("user", said))
            answer = self._answer(messages, tokens)
            messages.append(Message("assistant", answer.text))
            yield Answered(
                answer.text,
                answer.tokens,
                None,
                answer.seconds_to_first_token,
                answer.tokens_per_second,
            )

    def _answer(self, messages: Sequence[Message], tokens: int) -> PeerAnswer:
        try:
            return self._peer.answer(messages, tokens)
        except (ArithmeticError, ValueError) as error:  # whatever else it made up
            raise EdgespecError(
                f"{self._peer.name} sent what makes no sense ({shown(error, 160)}); look at its"
                " log."
            ) from error


class _Told:
    """One answer of edgespec's loop, as its events come."""

    def __init__(self) -> None:
        self._arrivals = Arrivals()
        self._stats = Stats(self._arrivals.started_s)
        self._ids, self._faults = list[int](), list[str]()
        self._widths = Counter[int]()

    def take(self, event: Event, now: float) -> None:
        self._stats = self._stats.after(event, now)
        match event:
            case Round():
                self._arrivals.take(event.text, now)
                self._ids += [token.token for token in event.tokens]
                self._widths[len(event.guesses) + 1] += 1
                if event.note:
                    self._faults.append(event.note)
            case Finished():
                self._arrivals.end(event.text)
            case PromptRead():
                pass

    def answered(self) -> Answered:
        arrivals, stats = self._arrivals, self._stats
        return Answered(
            arrivals.text,
            len(self._ids),
            tuple(self._ids),
            stats.time_to_first_token_s,
            stats.tokens_per_second,
            arrivals.first_sentence_s,
            arrivals.gaps_s,
            stats,
            tuple(sorted(self._widths.items())),
            tuple(self._faults),
        )


def speculation(name: str, rule: str = "coupled") -> Speculation:
    """`none`, a proposer, or one with a fixed length: `draft:6`.

    `auto:6` has no planner: always so many guesses of whatever has any.

    Raises: BadInput for a name that is none of these.
    """
    if not _FORM.fullmatch(name):
        raise BadInput(f"There is no arm '{shown(name, 60)}'; there are: {_FORMS}.")
    proposer, _, tokens = name.partition(":")
    return Speculation(proposer, int(tokens) if tokens else None, rule=rule)


def usual_arms(model: Model) -> tuple[str, ...]:
    """The arms that are compared where nobody names any."""
    return _WITH_DRAFTER if model.info.draft else _WITHOUT_DRAFTER


def open_arms(
    names: Sequence[str], model: Model, setup: Setup, peers: Sequence[Peer] = ()
) -> tuple[list[Arm], list[str]]:
    """The arms by their names, then the peers; and notes on those that are left out.

    Raises: BadInput for an arm that cannot be had with this pair.
    """
    arms, notes = list[Arm](), list[str]()
    for name in dict.fromkeys(names):
        if name != PLAIN_LOOP:
            arms.append(LocalArm(name, model, setup))
        elif why := _no_plain_loop(model, setup):
            notes.append(f"{PLAIN_LOOP} is left out: {why}.")
        else:
            target = model.loaded.models[0]
            assert isinstance(target, OffersPlainLoop)
            try:
                arms.append(PlainLoopArm(target.plain_loop(setup.session), model, setup))
            except OutOfMemory as error:  # what a GPU has free is seen when it is taken
                notes.append(f"{PLAIN_LOOP} is left out: {error}")
    arms += [PeerArm(peer, setup.system) for peer in peers]
    return arms, notes


def _no_plain_loop(model: Model, setup: Setup) -> str:
    """Why the library's own loop would not say what this setup asks for, or has no room; empty if
    it can be measured."""
    if not isinstance(model.loaded.models[0], OffersPlainLoop):
        return f"the backend '{model.info.backend}' has no loop of its own here"
    asked = Asked.of(setup.options, Speculation("none"), model.loaded.header.sampler)
    sampling = asked.sampling
    penalties = (sampling.presence_penalty, sampling.frequency_penalty)
    if not sampling.greedy or sampling.repeat_penalty != 1.0 or any(penalties):
        return "it takes the likeliest token, and another sampler is asked for"
    if setup.options.stop:
        return "it knows no stop texts"
    return no_room(model, setup.session)
