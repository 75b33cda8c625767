"""The one thread in which models are loaded and answer, and the queues around it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from edgespec.decoding.events import Event
from edgespec.errors import BadInput, Cancelled, EdgespecError
from edgespec.history import History

if TYPE_CHECKING:
    from edgespec.api import AnswerOptions, Chat, Model, ModelInfo, Speculation
    from edgespec.options import Explained, Turn

# opens a model; receives the callback for its one-line progress notes
Load = Callable[[Callable[[str], None]], "Model"]

_WAITING_EVENTS = 4096


@dataclass(frozen=True, slots=True)
class ChatSetup:
    """What a chat needs to begin.

    history: where its conversations are kept. named: how another model is opened, by its name; it
    raises what is wrong with the name. reopen: go on with the latest conversation.
    """

    load: Load
    system: str
    options: AnswerOptions
    title: str
    history: History = field(default_factory=History.in_memory)
    named: Callable[[str], Load] | None = None
    reopen: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """A note from loading."""

    text: str


@dataclass(frozen=True, slots=True)
class Ready:
    """A model is loaded; what was asked for from now on goes to it.

    load: number of the load that it came of; 0 = the first. ends: the tokens that end an answer,
    with their names, "" where unknown. vocabulary: digest of the target's.
    """

    load: int
    info: ModelInfo
    plain_tokens_per_second: float | None
    speculation: Speculation
    ends: Mapping[int, str]
    vocabulary: str


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
class Explanation:
    """What explain(tag, …) found; `error` says in one line why there is nothing, if so."""

    tag: int
    explained: Explained | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Counted:
    """How many tokens the text of count(tag, …) has."""

    tag: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Uncounted:
    """The text of count(tag, …) cannot be counted; `error` says why in one line.

    most: tokens that it has not more than.
    """

    tag: str
    most: int
    error: str


@dataclass(frozen=True, slots=True)
class LoadFailed:
    """A model could not be loaded, and `error` says why in one line; Ready of another follows.

    goes_back: it is the one before; else the one that was chosen meanwhile.
    """

    error: str
    goes_back: bool = True


@dataclass(frozen=True, slots=True)
class Crashed:
    """Loading failed, or something broke that nobody planned for: the chat cannot go on."""

    error: Exception


Said = Progress | Ready | Heard | Ended | Explanation | Counted | Uncounted | LoadFailed | Crashed


@dataclass(frozen=True, slots=True)
class _Ask:
    answer: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class _Explain:
    tag: int
    turn: Turn
    ids: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class _Count:
    """Texts wait to be counted."""


@dataclass(frozen=True, slots=True)
class _Load:
    """speculation: how the model guessed when it was closed; None = as it comes."""

    number: int
    load: Load
    speculation: Speculation | None = None


@dataclass(frozen=True, slots=True)
class _Quit:
    pass


_Wish = _Ask | _Explain | _Count | _Load | _Quit


class Engine:
    """Runs models in a thread of their own. All methods are for the user interface's thread.

    Decoding never waits for the screen: what it says is queued until `drain` fetches it. Should
    the screen stand still for thousands of rounds, decoding waits, since dropping would lose text.
    """

    def __init__(self, setup: ChatSetup) -> None:
        self._setup = setup
        self._wishes: queue.SimpleQueue[_Wish] = queue.SimpleQueue()
        self._uncounted: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        self._said: queue.Queue[Said] = queue.Queue(_WAITING_EVENTS)
        self._model: Model | None = None
        self.latest_load = 0  # the number of the load that was wanted last
        self._asked = 0
        self._cancelled = 0  # answers up to this number are to end
        self._closing = threading.Event()
        # a daemon, because a library that hangs while it loads must not keep the shell waiting
        self._thread = threading.Thread(target=self._run, name="edgespec-engine", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, answer: int, turn: Turn) -> None:
        """Answer; answers are numbered upwards. Heard, again and again, and one Ended follow."""
        self._asked = answer
        self._wishes.put(_Ask(answer, turn))

    def cancel(self) -> None:
        """End the running answer after its current round, and all that wait before they begin."""
        self._cancelled = self._asked
        if (model := self._model) is not None:
            model.cancel()

    def set_speculation(self, speculation: Speculation) -> None:
        """How to guess from now on, in a running answer too.

        Raises: BadInput for what this model cannot do, and while none is loaded.
        """
        if (model := self._model) is None:
            raise BadInput("No model is loaded yet; wait until it is, then change how it guesses.")
        model.speculation = speculation

    def explain(self, tag: int, turn: Turn, ids: Sequence[int], at: int) -> None:
        """What the target thought of ids[at], of the answer `ids` to `turn`, once no answer runs.

        An Explanation with this tag follows.
        """
        self._wishes.put(_Explain(tag, turn, tuple(ids), at))

    def count(self, tag: str, text: str) -> None:
        """Count the tokens of a text; Counted or Uncounted with this tag follows, in a running
        answer too."""
        self._uncounted.put((tag, text))
        self._wishes.put(_Count())

    def load(self, load: Load) -> None:
        """Close the model and load another; Ready follows, of the model before, guessing as it
        did, where the other could not be loaded.

        Loads are numbered upwards. Of those that wait, each is made ready in turn: only the Ready
        with the number `latest_load` is of the model that stays.
        """
        self.cancel()
        self.latest_load += 1
        self._wishes.put(_Load(self.latest_load, load))

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
        wanted: _Load | None = _Load(0, self._setup.load)
        works: _Load | None = None
        try:
            while wanted is not None:
                try:
                    model = wanted.load(self._report)
                except EdgespecError as error:
                    chosen = self._chosen_meanwhile()
                    if (works is None and chosen is None) or self._closing.is_set():
                        raise
                    # the words alone: its traceback may hold what was loaded until then
                    self._say(LoadFailed(str(error), goes_back=chosen is None))
                    if chosen is None and works is not None:
                        chosen, works = replace(works, number=wanted.number), None
                    wanted = chosen
                    continue
                works, wanted = self._lend(model, wanted)
                del model  # the next one may need its memory
        except Cancelled as error:
            if not self._closing.is_set():
                self._say(Crashed(error))
        except Exception as error:  # a thread has no caller: run_chat raises it in its place
            self._say(Crashed(error))

    def _chosen_meanwhile(self) -> _Load | None:
        """The next model that was chosen while one loaded; without a model, nothing else that
        waits before it can be done."""
        while not self._wishes.empty():
            if isinstance(wish := self._wishes.get(), _Load):
                return wish
        return None

    def _report(self, text: str) -> None:
        if self._closing.is_set():
            raise Cancelled("loading was stopped because the chat was closed; start it again")
        self._say(Progress(text))

    def _lend(self, model: Model, load: _Load) -> tuple[_Load, _Load | None]:
        """Serve with a model until it is to be closed.

        Returns how it is loaded as it is now, and what is wanted after it.
        """
        with model:
            self._model = model
            try:
                wanted = self._serve(model, load)
            finally:
                self._model = None
            return replace(load, speculation=model.speculation), wanted

    def _serve(self, model: Model, load: _Load) -> _Load | None:
        if load.speculation is not None:
            # refused where it came back with less, as without a draft model for want of memory
            with suppress(BadInput):
                model.speculation = load.speculation
        chat = model.chat(self._setup.system, self._setup.options)
        speed, ends = model.plain_tokens_per_second, chat.end_names
        self._say(Ready(load.number, model.info, speed, model.speculation, ends, model.vocabulary))
        while not self._closing.is_set():
            match self._wishes.get():
                case _Ask(answer, turn):
                    self._answer(model, chat, answer, turn)
                case _Explain() as wish:
                    self._explain(chat, wish)
                case _Count():
                    self._count_waiting(model)
                case _Load() as other:
                    return other
                case _Quit():
                    return None
        return None

    def _answer(self, model: Model, chat: Chat, answer: int, turn: Turn) -> None:
        failure = ""
        try:
            events = chat.answer(turn)
            if answer <= self._cancelled:
                model.cancel()  # the call for it came before there was anything to cancel
            for event in events:
                self._say(Heard(answer, event, time.perf_counter()))
                self._count_waiting(model)
        except EdgespecError as error:
            failure = str(error)
        self._say(Ended(answer, chat.context_used, failure))

    def _explain(self, chat: Chat, wish: _Explain) -> None:
        try:
            explained = chat.explain(wish.turn, wish.ids, wish.at)
        except EdgespecError as error:
            self._say(Explanation(wish.tag, None, str(error)))
        else:
            self._say(Explanation(wish.tag, explained))

    def _count_waiting(self, model: Model) -> None:
        while not self._uncounted.empty():
            tag, text = self._uncounted.get()
            # half of a surrogate pair, as some terminals paste it, is no text for a tokenizer
            whole = text.encode(errors="replace")
            try:
                counted = Counted(tag, model.count_tokens(whole.decode()))
            except EdgespecError as error:
                self._say(Uncounted(tag, len(whole), str(error)))  # a token has a byte at least
            else:
                self._say(counted)

    def _say(self, said: Said) -> None:
        while not self._closing.is_set():
            try:
                self._said.put(said, timeout=0.1)
            except queue.Full:
                continue
            return
