"""The one thread in which the model is loaded and answers, and the queues around it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgespec.decoding.events import Event
from edgespec.errors import Cancelled, EdgespecError

if TYPE_CHECKING:
    from edgespec.api import AnswerOptions, Chat, Model, ModelInfo

_WAITING_EVENTS = 4096


@dataclass(frozen=True, slots=True)
class ChatSetup:
    """What a chat needs to begin. `load` receives the callback for its one-line progress notes."""

    load: Callable[[Callable[[str], None]], Model]
    system: str
    options: AnswerOptions
    title: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A note from loading."""

    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    """The model is loaded."""

    info: ModelInfo
    plain_tokens_per_second: float | None
    proposer: str
    always_draft: bool


@dataclass(frozen=True, slots=True)
class Heard:
    """An event of answer number `answer`, and when it arrived (seconds of perf_counter)."""

    answer: int
    event: Event
    at_s: float


@dataclass(frozen=True, slots=True)
class Ended:
    """Answer number `answer` is over; `error` says in one line why, if it failed."""

    answer: int
    context_used: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Crashed:
    """Loading failed, or something broke that nobody planned for: the chat cannot go on."""

    error: Exception


Said = Progress | Ready | Heard | Ended | Crashed


@dataclass(frozen=True, slots=True)
class _Ask:
    answer: int
    text: str


@dataclass(frozen=True, slots=True)
class _ShowMode:
    on: bool


@dataclass(frozen=True, slots=True)
class _NewChat:
    pass


@dataclass(frozen=True, slots=True)
class _Quit:
    pass


class Engine:
    """Runs a chat in its own thread. All methods are for the user interface's thread.

    Decoding never waits for the screen: what it says is queued until `drain` fetches it. Should
    the screen stand still for thousands of rounds, decoding waits, since dropping would lose text.
    """

    def __init__(self, setup: ChatSetup) -> None:
        self._setup = setup
        self._wishes: queue.SimpleQueue[_Ask | _ShowMode | _NewChat | _Quit] = queue.SimpleQueue()
        self._said: queue.Queue[Said] = queue.Queue(_WAITING_EVENTS)
        self._model: Model | None = None
        self._asked = 0
        self._cancelled = 0  # answers up to this number are to end
        self._closing = threading.Event()
        # a daemon, because a library that hangs while it loads must not keep the shell waiting
        self._thread = threading.Thread(target=self._run, name="edgespec-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, answer: int, text: str) -> None:
        """Answer a message; answers are numbered upwards."""
        self._asked = answer
        self._wishes.put(_Ask(answer, text))

    def set_show_mode(self, on: bool) -> None:
        """Draft even where it does not pay, from the next answer on."""
        self._wishes.put(_ShowMode(on))

    def new_chat(self) -> None:
        self.cancel()
        self._wishes.put(_NewChat())

    def cancel(self) -> None:
        """End the running answer after its current round."""
        self._cancelled = self._asked
        if self._model is not None:
            self._model.cancel()

    def stop(self, patience_s: float) -> bool:
        """End the thread, a running answer included; whether it ended in time."""
        self._closing.set()
        self.cancel()
        self._wishes.put(_Quit())
        if self._thread.ident is not None:
            self._thread.join(patience_s)
        return not self._thread.is_alive()

    def drain(self) -> Iterator[Said]:
        """What was said since the last call, at most one full queue of it."""
        for _ in range(_WAITING_EVENTS):
            try:
                yield self._said.get_nowait()
            except queue.Empty:
                return

    def _run(self) -> None:
        try:
            with self._setup.load(self._report) as model:
                self._model = model
                self._serve(model)
        except Cancelled as error:
            if not self._closing.is_set():
                self._say(Crashed(error))
        except Exception as error:  # a thread has no caller: run_chat raises it in its place
            self._say(Crashed(error))
        finally:
            self._model = None

    def _report(self, text: str) -> None:
        if self._closing.is_set():
            raise Cancelled("loading was stopped because the chat was closed; start it again")
        self._say(Progress(text))

    def _serve(self, model: Model) -> None:
        chat = model.chat(self._setup.system, self._setup.options)
        speculation = model.speculation
        self._say(
            Ready(
                model.info,
                model.plain_tokens_per_second,
                speculation.proposer,
                speculation.always_draft,
            )
        )
        while not self._closing.is_set():
            match self._wishes.get():
                case _Ask(answer, text):
                    self._answer(model, chat, answer, text)
                case _ShowMode(on):
                    model.speculation = replace(model.speculation, always_draft=on)
                case _NewChat():
                    chat.reset()
                case _Quit():
                    return

    def _answer(self, model: Model, chat: Chat, answer: int, text: str) -> None:
        failure = ""
        try:
            for event in chat.stream(text):
                self._say(Heard(answer, event, time.perf_counter()))
                if answer <= self._cancelled:
                    # again: the first call may have come before the answer had begun
                    model.cancel()
        except EdgespecError as error:
            failure = str(error)
        self._say(Ended(answer, chat.context_used, failure))

    def _say(self, said: Said) -> None:
        while not self._closing.is_set():
            try:
                self._said.put(said, timeout=0.1)
            except queue.Full:
                continue
            return
