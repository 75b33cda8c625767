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
from edgespec.chatting import Chat
from edgespec.conversation import checked_messages
from edgespec.decoding.events import Event
from edgespec.decoding.sampling import Sampling
from edgespec.demo import best_format
from edgespec.desk import Desk
from edgespec.errors import BadInput, EdgespecError
from edgespec.loading import Loaded, Report, no_draft_model, open_pair
from edgespec.measuring import chosen_on
from edgespec.models.choices import WITHOUT_DRAFT_MODEL, as_chosen, not_used
from edgespec.models.id_table import vocabulary_digest
from edgespec.models.installed import mark_used
from edgespec.models.pairs import Pair, names_a_pair, resolve
from edgespec.options import (
    AnswerOptions,
    AnswerSettings,
    Explained,
    LoadOptions,
    LoadSettings,
    ModelInfo,
    Reply,
    Speculation,
    Turn,
)
from edgespec.text.template import Message

__all__ = [
    "AnswerOptions",
    "Chat",
    "Explained",
    "LoadOptions",
    "Message",
    "Model",
    "ModelInfo",
    "Reply",
    "Speculation",
    "Turn",
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
    That a pair was loaded is noted for the next time nothing is named.
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
    opened = _as_tuned if tuned and draft is None else _opened
    model = opened(chosen, options, speculation, report)
    if target is None and names_a_pair(pair):
        mark_used(chosen.name)
    return model


def _opened(pair: Pair, options: LoadOptions, speculation: Speculation, report: Report) -> Model:
    if speculation.proposer in WITHOUT_DRAFT_MODEL:
        pair = replace(pair, draft=None)
    if speculation.proposer == "draft" and pair.draft is None:
        raise no_draft_model(pair)  # before it is loaded
    return _model(open_pair(best_format(pair, options, report), options, report), speculation)


def _model(loaded: Loaded, speculation: Speculation) -> Model:
    """`loaded` as a model, or closed where it cannot be guessed at so."""
    try:
        return Model(loaded, speculation)
    except BaseException:
        loaded.close()
        raise


def _as_tuned(pair: Pair, options: LoadOptions, speculation: Speculation, report: Report) -> Model:
    """The pair as `edgespec tune` chose, or else as it is, with a note of why."""
    found, choice = as_chosen(pair, lambda target: chosen_on(target, options))
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
    return _model(opened, tuned if opened.drafter is not None else speculation)


class Model:
    """A loaded pair. Safe to use from several threads: answers queue."""

    def __init__(self, loaded: Loaded, speculation: Speculation) -> None:
        self._desk = Desk(loaded, speculation)

    @property
    def info(self) -> ModelInfo:
        """What was loaded, and how exact its text is as it is guessed at now."""
        return self._desk.info

    @property
    def vocabulary(self) -> str:
        """Digest of the target's vocabulary: to models that share it, token ids mean the same.

        One and the same for all whose files carry none.
        """
        return vocabulary_digest(self._desk.loaded.header.tokens)

    @property
    def speculation(self) -> Speculation:
        """How answers are guessed at; a change reaches a running answer with its next round.

        Setting it raises BadInput for what this pair cannot do.
        """
        return self._desk.speculation

    @speculation.setter
    def speculation(self, wished: Speculation) -> None:
        self._desk.speculation = wished

    def stream(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Iterator[Event]:
        """Answer a prompt or a conversation, as events.

        Raises: BadInput at once for a prompt that is empty or does not fit.
        """
        asked = self._desk.asked(_answer_options(options, settings))
        return self._desk.events(self._answer(prompt, asked))

    def generate(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Reply:
        """Answer a prompt or a conversation, whole."""
        started_s = perf_counter()
        asked = self._desk.asked(_answer_options(options, settings))
        events = self._desk.events(self._answer(prompt, asked))
        return self._desk.reply(events, asked, started_s)

    async def astream(
        self,
        prompt: Prompt,
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> AsyncIterator[Event]:
        """stream() for asyncio; the model runs in a thread, and stops when the caller does."""
        loop, queue = asyncio.get_running_loop(), asyncio.Queue[Event | BaseException | None]()
        asked_in, begun = threading.get_ident(), threading.Event()

        def asked() -> Answer:
            return self._answer(prompt, self._desk.asked(_answer_options(options, settings)))

        answer = await loop.run_in_executor(None, asked)

        def pump() -> None:
            begun.set()
            end: BaseException | None = None
            try:
                for event in self._desk.events(answer, asked_in):
                    loop.call_soon_threadsafe(queue.put_nowait, event)
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
            answer.cancelled = True
            if begun.is_set():
                await running
            else:
                running.cancel()  # its thread may be one that waits, too

    def chat(
        self,
        system: str = "",
        options: AnswerOptions | None = None,
        **settings: Unpack[AnswerSettings],
    ) -> Chat:
        """Begin a conversation."""
        return Chat(self._desk, system, _answer_options(options, settings))

    def count_tokens(self, text: str) -> int:
        with self._desk.vocabulary() as encoder:
            return len(encoder.tokenizer.encode(text, special=False))

    @property
    def plain_tokens_per_second(self) -> float:
        """Plain decoding speed as measured with this model on this machine."""
        return self._desk.plain_tokens_per_second

    @property
    def loaded(self) -> Loaded:
        """What it is made of, for measurements between answers."""
        return self._desk.loaded

    def forget(self) -> None:
        """Drop all text that target and drafter still hold; for measurements."""
        self._desk.between_answers(self.loaded.forget)

    def cancel(self) -> None:
        """End the running answer after its current round; from any thread.

        Where none runs, those that were asked for and have not begun end before their first.
        """
        self._desk.cancel()

    def close(self) -> None:
        """Free the weights, after the current round of a running answer; the model is of no use
        afterwards."""
        self._desk.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _answer(self, prompt: Prompt, asked: Asked) -> Answer:
        messages = checked_messages(prompt)
        with self._desk.vocabulary() as encoder:
            tokens = encoder.encode(messages, asked.template_extra)
        return self._desk.answer(asked, tokens)


def _with(options: Options, given: dict[str, Any]) -> Options:
    """`options` with those of `given` that it knows, which are taken out of `given`."""
    names = {field.name for field in fields(options)}
    known = {name: given.pop(name) for name in list(given) if name in names}
    return replace(options, **known)


def _answer_options(options: AnswerOptions | None, settings: AnswerSettings) -> AnswerOptions:
    given: dict[str, Any] = dict(settings)
    if "stop" in given and given["stop"] is None:
        given["stop"] = ()
    elif isinstance(given.get("stop"), str):
        given["stop"] = (given["stop"],)
    elif isinstance(given.get("stop"), list):
        given["stop"] = tuple(given["stop"])
    options = _with(options or AnswerOptions(), given)
    sampler = {field.name for field in fields(Sampling)}
    for name in given:
        if name not in sampler:
            raise BadInput(f"An answer knows no setting '{name}'.")
    return replace(options, overrides={**options.overrides, **given})
