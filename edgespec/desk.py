"""One loaded pair, and the answers that wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from time import monotonic, perf_counter
from typing import TypeVar
from weakref import WeakSet

from edgespec.answering import NOTHING, Answer, Asked, Standing
from edgespec.conversation import PromptEncoder
from edgespec.decoding.draft import Tokens
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.request import RuleName
from edgespec.decoding.stats import Stats
from edgespec.errors import BadInput
from edgespec.loading import Loaded
from edgespec.models.identity import label_of
from edgespec.options import AnswerOptions, ModelInfo, Reply, Speculation

Found = TypeVar("Found")
_LOOKS_EVERY_S = 0.05
_READ_ON_WITHIN_S = 2.0


class Desk:
    """Makes one answer at a time; the others wait."""

    def __init__(self, loaded: Loaded, speculation: Speculation) -> None:
        self.loaded = loaded
        self.encoder = PromptEncoder(loaded.models[0].tokenizer)
        template_note = self.encoder.template.note
        self._infos = {rule: _info(loaded, rule, template_note) for rule in RuleName}
        self._busy, self._in_use = threading.Lock(), threading.Lock()
        # apart from _in_use, since what only splits a text need not wait for a pass
        self._looked_up = threading.Lock()
        self._queueing = threading.RLock()  # a signal handler may cancel while it is held
        self._read_in: int | None = None  # the thread that read the running answer last
        self._reads = 0
        self._running: Answer | None = None
        self._waiting: WeakSet[Answer] = WeakSet()
        self._closed = False
        self.speculation = speculation

    @property
    def info(self) -> ModelInfo:
        """What was loaded, and how exact its text is as it is guessed at now."""
        return self._infos[RuleName(self._speculation.rule)]

    @property
    def speculation(self) -> Speculation:
        """How answers are guessed at, the running one from its next round on.

        Setting it raises BadInput for what this pair cannot do.
        """
        return self._speculation

    @speculation.setter
    def speculation(self, wished: Speculation) -> None:
        self.loaded.proposer(wished)  # says now what would be wrong later
        self._speculation = wished

    @property
    def plain_tokens_per_second(self) -> float:
        return 1.0 / self.loaded.target.cost.seconds(1)

    def asked(self, options: AnswerOptions, speculation: Speculation | None = None) -> Asked:
        """Settings made definite. speculation: None = what is set here, whenever it changes."""
        self.must_be_open()
        advice = self.loaded.header.sampler
        if speculation is not None:
            return Asked.of(options, speculation, advice)
        asked = Asked.of(options, self._speculation, advice)
        return replace(asked, wished=lambda: self._speculation)

    def answer(self, asked: Asked, prompt: Tokens, standing: Standing = NOTHING) -> Answer:
        """An answer that waits for its turn, which comes when its events are read."""
        with self.vocabulary() as encoder:
            answer = Answer(self.loaded, encoder.tokenizer, asked, prompt, standing)
        with self._queueing:
            self._waiting.add(answer)
        return answer

    def events(self, answer: Answer, asked_in: int | None = None) -> Iterator[Event]:
        """The answer's events, one answer at a time, with an end when it is cancelled.

        asked_in: the thread that waits for them; None = the one that reads the first.
        """
        if not self._takes(asked_in or threading.get_ident(), lambda: answer.cancelled):
            yield answer.cut_short()
            return
        try:
            yield from self._read(answer)
        finally:
            self._read_in = None
            self._busy.release()

    def _read(self, answer: Answer) -> Iterator[Event]:
        with self._queueing:
            self._waiting.discard(answer)
            self._running = answer
        with closing(answer.events()) as events:
            try:
                while not answer.cancelled:
                    event = self._next(events)
                    if event is None:
                        return
                    yield event
                    if isinstance(event, Finished):
                        return
                yield answer.cut_short()
            finally:
                with self._queueing:
                    self._running = None

    def between_answers(self, work: Callable[[], Found]) -> Found:
        """Do something with the session while no answer uses it."""
        self._takes(threading.get_ident(), lambda: False)
        try:
            with self._in_use:
                self.must_be_open()
                return work()
        finally:
            self._busy.release()

    def cancel(self) -> None:
        """End the running answer after its current round; where none runs, those that were asked
        for and have not begun."""
        with self._queueing:
            for answer in [self._running] if self._running is not None else [*self._waiting]:
                answer.cancelled = True

    def close(self) -> None:
        """Free the weights, after the current round of a running answer."""
        with self._in_use, self._looked_up:
            if not self._closed:
                self._closed = True
                self.loaded.close()

    def reply(self, events: Iterator[Event], asked: Asked, started_s: float) -> Reply:
        """Read an answer to its end. started_s: when it was asked for, by perf_counter()."""
        stats = Stats(started_s, calibrated_plain_speed=self.plain_tokens_per_second)
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
        # observed rounds have made the curve better known by now
        stats = replace(stats, calibrated_plain_speed=self.plain_tokens_per_second)
        info = self._infos[RuleName(asked.speculation.rule)]
        return Reply("".join(text), tuple(ids), why, asked.seed, info, stats)

    @contextmanager
    def vocabulary(self) -> Iterator[PromptEncoder]:
        """What splits texts into tokens; close() waits until it is done with.

        Raises: BadInput when the model is closed.
        """
        with self._looked_up:
            self.must_be_open()
            yield self.encoder

    def must_be_open(self) -> None:
        if self._closed:
            raise BadInput("This model was closed; load it again.")

    def _takes(self, asked_in: int, given_up: Callable[[], bool]) -> bool:
        """Wait until no answer runs, and begin; False where that was given up meanwhile.

        A thread that waited for its own answer to end would wait for ever. But who read it last
        need not be who reads on, as where each event is read in any thread of a pool: it is a
        mistake only once nobody has read on for a while.
        """
        reads, since_s = -1, 0.0
        while not self._busy.acquire(timeout=_LOOKS_EVERY_S):
            if given_up():
                return False
            if self._read_in != asked_in or self._in_use.locked() or self._reads != reads:
                reads, since_s = self._reads, monotonic()
            elif monotonic() - since_s > _READ_ON_WITHIN_S:
                raise BadInput(
                    "An answer of this model is still running; read it to its end first."
                )
        return True

    def _next(self, events: Iterator[Event]) -> Event | None:
        self._read_in, self._reads = threading.get_ident(), self._reads + 1
        with self._in_use:  # close() must not free what a pass is reading
            self.must_be_open()
            return next(events, None)


def _info(loaded: Loaded, rule: RuleName, template_note: str) -> ModelInfo:
    pair = loaded.pair
    return ModelInfo(
        pair=pair.name,
        target=label_of(pair.target),
        draft=label_of(pair.draft) if pair.draft else None,
        backend=loaded.backend,
        device=loaded.models[0].device,
        context=loaded.target.session.caps.context,
        exactness=loaded.exactness_under(rule),
        notes=(*loaded.notes, *([template_note] if template_note else [])),
        memory=loaded.memory,
        inexact_with=loaded.inexact_with if rule is RuleName.COUPLED else (),
    )
