"""Loading a model and asking it: what an app calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import fields, replace
from time import perf_counter
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from edgespec.answering import Answer, Asked
from edgespec.conversation import PromptEncoder, Spoken, checked_messages
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.stats import Stats
from edgespec.demo import best_format
from edgespec.errors import BadInput, EdgespecError
from edgespec.loading import Loaded, Report, open_pair
from edgespec.models.choices import as_chosen, not_used
from edgespec.models.pairs import Pair, resolve
from edgespec.options import (
    AnswerOptions,
    AnswerSettings,
    LoadOptions,
    LoadSettings,
    ModelInfo,
    Reply,
    Speculation,
)
from edgespec.text.template import Message

__all__ = [
    "AnswerOptions",
    "Chat",
    "LoadOptions",
    "Message",
    "Model",
    "ModelInfo",
    "Reply",
    "Speculation",
    "load",
]

Prompt = str | Sequence[Message]
Options = TypeVar("Options", LoadOptions, Speculation, AnswerOptions)
_SAYS_HOW = {"proposer", "draft_tokens", "always_draft"}
_ALIASES = {"draft_model": "draft", "num_draft_tokens": "draft_tokens"}


def load(
    pair: str | None = None,
    *,
    options: LoadOptions | None = None,
    speculation: Speculation | None = None,
    report: Callable[[str], None] = lambda _line: None,
    tuned: bool | None = None,
    **settings: Unpack[LoadSettings],
) -> Model:
    """Open a pair: its name, a folder or a file, or target=FILE and perhaps draft=FILE.

    settings: fields of LoadOptions and Speculation. report: gets one line for each step. tuned:
    whether to guess as `edgespec tune` chose for this target; None = where no draft is named and
    nothing says how to guess.
    Raises: NotFound, BadInput, ModelFileError, IncompatiblePair, OutOfMemory, BackendMissing.
    """
    given: dict[str, Any] = {_ALIASES.get(name, name): v for name, v in settings.items()}
    if given.pop("prompt_lookup", False):
        given["proposer"] = "ngram"
    for name in ("target", "draft"):
        if given.get(name) is not None and not str(given[name]).strip():
            raise BadInput(f"{name} is empty; name a file, or leave it out.")
    target, draft = given.pop("target", None), given.pop("draft", None)
    chosen = resolve(pair, target, draft)
    if tuned is None:
        tuned = speculation is None and not _SAYS_HOW & given.keys()
    options = _with(options or LoadOptions(), given)
    speculation = _with(speculation or Speculation(), given)
    if given:
        raise BadInput(f"load() knows no setting '{next(iter(given))}'.")
    if tuned and draft is None:
        return _as_tuned(chosen, options, speculation, report)
    return _opened(chosen, options, speculation, report)


def _opened(pair: Pair, options: LoadOptions, speculation: Speculation, report: Report) -> Model:
    if speculation.proposer in ("none", "ngram"):
        pair = replace(pair, draft=None)
    return Model(open_pair(best_format(pair, options, report), options, report), speculation)


def _as_tuned(pair: Pair, options: LoadOptions, speculation: Speculation, report: Report) -> Model:
    """The pair as `edgespec tune` chose, or else as it is, with a note of why."""
    found, choice = as_chosen(pair)
    if choice is None:
        return _opened(found, options, speculation, report)
    proposer, tokens = choice.proposer, choice.draft_tokens
    tuned = replace(speculation, proposer=proposer, draft_tokens=tokens)
    if found.draft is None:
        return _opened(found, options, tuned, report)
    try:
        opened = open_pair(best_format(found, options, report), options, report)
    except EdgespecError as error:
        own = None if pair.draft == found.draft else pair.draft
        return _opened(not_used(replace(pair, draft=own), error), options, speculation, report)
    return Model(opened, tuned if opened.drafter is not None else speculation)


class Model:
    """A loaded pair. Safe to use from several threads: answers queue."""

    def __init__(self, loaded: Loaded, speculation: Speculation) -> None:
        self._loaded = loaded
        self._encoder = PromptEncoder(loaded.models[0].tokenizer)
        self._busy, self._in_use = threading.Lock(), threading.Lock()
        self._busy_thread: int | None = None
        self._cancelled = threading.Event()
        self._closed = False
        self.speculation = speculation
        self.info = _info(loaded, self._encoder.template.note)
        loaded.proposer(speculation)  # says now what would be wrong later

    def stream(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Iterator[Event]:
        """Answer a prompt or a conversation, as events.

        Raises: BadInput at once for a prompt that is empty or does not fit.
        """
        return self._answer(prompt, self._asked(_answer_options(options, settings)))

    def generate(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Reply:
        """Answer a prompt or a conversation, whole."""
        asked = self._asked(_answer_options(options, settings))
        return self._reply(self._answer(prompt, asked), asked)

    async def astream(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> AsyncIterator[Event]:
        """stream() for asyncio; the model runs in a thread, and stops when the caller does."""
        self._must_be_free()
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event | BaseException | None]()
        stopped = threading.Event()

        def pump() -> None:
            end: BaseException | None = None
            try:
                for event in self.stream(prompt, options, **settings):
                    loop.call_soon_threadsafe(queue.put_nowait, event)
                    if stopped.is_set():
                        break
            except BaseException as error:  # handed to the caller, whatever it is
                end = error
            loop.call_soon_threadsafe(queue.put_nowait, end)

        running = loop.run_in_executor(None, pump)
        try:
            while (item := await queue.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            stopped.set()
            await running

    def chat(
        self,
        system: str = "",
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Chat:
        """Begin a conversation."""
        return Chat(self, system, _answer_options(options, settings))

    def count_tokens(self, text: str) -> int:
        self._must_be_open()
        return len(self._encoder.tokenizer.encode(text, special=False))

    @property
    def plain_tokens_per_second(self) -> float:
        """Plain decoding speed as measured with this model on this machine."""
        return 1.0 / self._loaded.target.cost.seconds(1)

    @property
    def loaded(self) -> Loaded:
        """What it is made of, for measurements between answers."""
        return self._loaded

    def forget(self) -> None:
        """Drop all text that target and drafter still hold; for measurements."""
        with self._busy:
            self._loaded.forget()

    def cancel(self) -> None:
        """End the running answer after its current round; from any thread."""
        self._cancelled.set()

    def close(self) -> None:
        """Free the weights, after the current round of a running answer; the model is of no use
        afterwards."""
        with self._in_use:
            if not self._closed:
                self._closed = True
                for model in self._loaded.models:
                    model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _asked(self, options: AnswerOptions) -> Asked:
        self._must_be_open()
        return Asked.of(options, self.speculation, self._loaded.header.sampler)

    def _answer(self, prompt: Prompt, asked: Asked) -> Iterator[Event]:
        messages = checked_messages(prompt)
        tokens = self._encoder.encode(messages, asked.template_extra)
        return self._events(Answer(self._loaded, self._encoder.tokenizer, asked, tokens))

    def _events(self, answer: Answer) -> Iterator[Event]:
        """The answer's events, one answer at a time, with an end when it is cancelled."""
        self._must_be_free()
        with self._busy:
            self._busy_thread = threading.get_ident()
            self._cancelled.clear()
            events = answer.events()
            try:
                while (event := self._next(events)) is not None:
                    yield event
                    if self._cancelled.is_set() and not isinstance(event, Finished):
                        yield answer.cut_short()
                        return
            finally:
                self._busy_thread = None
                events.close()

    def _next(self, events: Iterator[Event]) -> Event | None:
        with self._in_use:  # close() must not free what a pass is reading
            self._must_be_open()
            return next(events, None)

    def _must_be_free(self) -> None:
        """A thread that waited for its own answer to end would wait for ever."""
        if self._busy_thread == threading.get_ident():
            raise BadInput("An answer of this model is still running; read it to its end first.")

    def _must_be_open(self) -> None:
        if self._closed:
            raise BadInput("This model was closed; load it again.")

    def _reply(self, events: Iterator[Event], asked: Asked) -> Reply:
        stats = self._fresh_stats()
        text, ids, why = [], [], Stop.CANCELLED
        for event in events:
            stats = stats.after(event, perf_counter())
            match event:
                case Round():
                    text.append(event.text)
                    ids += [token.token for token in event.tokens]
                case Finished():
                    text.append(event.text)
                    why = event.why
                case PromptRead():
                    pass
        stats = replace(stats, calibrated_plain_speed=self.plain_tokens_per_second)
        return Reply("".join(text), tuple(ids), why, asked.seed, self.info, stats)

    def _fresh_stats(self) -> Stats:
        return Stats(perf_counter(), calibrated_plain_speed=self.plain_tokens_per_second)


class Chat:
    """A conversation: remembers what was said, and keeps the ids of replies."""

    def __init__(self, model: Model, system: str, options: AnswerOptions) -> None:
        self._model, self.system, self.options = model, system, options
        self.messages: list[Message] = []
        self._spoken: Spoken | None = None

    @property
    def context_used(self) -> int:
        """Tokens of the conversation so far."""
        return 0 if self._spoken is None else len(self._spoken.ids)

    def stream(self, text: str) -> Iterator[Event]:
        """Say something and get the answer as events; a cancelled answer is remembered as far
        as it came."""
        return self._say(text, self._model._asked(self.options))

    def send(self, text: str) -> Reply:
        """Say something and get the whole answer."""
        asked = self._model._asked(self.options)
        return self._model._reply(self._say(text, asked), asked)

    def reset(self) -> None:
        """Forget everything that was said."""
        self.messages, self._spoken = [], None

    def _say(self, text: str, asked: Asked) -> Iterator[Event]:
        (user,) = checked_messages(text)
        before = [*self._opening(), *self.messages, user]
        encoder = self._model._encoder
        tokens = None
        if self._spoken is not None and self._spoken.before == tuple(before[:-2]):
            tokens = encoder.continued(self._spoken, user, asked.template_extra)
        if tokens is None:
            tokens = encoder.encode(before, asked.template_extra)
        answer = Answer(self._model._loaded, encoder.tokenizer, asked, tokens)
        return self._remembering(self._model._events(answer), answer, before)

    def _opening(self) -> list[Message]:
        return [Message("system", self.system)] if self.system else []

    def _remembering(
        self, events: Iterator[Event], answer: Answer, before: list[Message]
    ) -> Iterator[Event]:
        said: list[str] = []
        try:
            for event in events:
                if isinstance(event, Round | Finished):
                    said.append(event.text)
                yield event
        finally:
            if answer.ids:
                reply = Message("assistant", "".join(said))
                self.messages += [before[-1], reply]
                self._spoken = Spoken(before, reply, answer.all_ids())


def _with(options: Options, given: dict[str, Any]) -> Options:
    """`options` with those of `given` that it knows, which are taken out of `given`."""
    names = {field.name for field in fields(options)}
    known = {name: given.pop(name) for name in list(given) if name in names}
    return replace(options, **known)


def _answer_options(options: AnswerOptions | None, settings: AnswerSettings) -> AnswerOptions:
    given: dict[str, Any] = dict(settings)
    if isinstance(given.get("stop"), str):
        given["stop"] = (given["stop"],)
    elif isinstance(given.get("stop"), list):
        given["stop"] = tuple(given["stop"])
    options = _with(options or AnswerOptions(), given)
    sampler = {field.name for field in fields(Sampling)}
    for name in given:
        if name not in sampler:
            raise BadInput(f"An answer knows no setting '{name}'.")
    return replace(options, overrides={**options.overrides, **given})


def _info(loaded: Loaded, template_note: str) -> ModelInfo:
    pair = loaded.pair
    return ModelInfo(
        pair=pair.name,
        target=pair.target.name,
        draft=pair.draft.name if pair.draft else None,
        backend=loaded.backend,
        device=loaded.models[0].device,
        context=loaded.target.session.caps.context,
        exactness=loaded.exactness,
        notes=(*loaded.notes, *([template_note] if template_note else [])),
        memory=loaded.memory,
    )
