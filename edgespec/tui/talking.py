"""The flow of answers: from a wish to the engine, and what it says into view and history.

One direction: nothing here reads the view, and the history is read only to show it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, assert_never

from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.stats import Stats
from edgespec.text.sanitize import clean
from edgespec.tui.ghosts import rejected
from edgespec.tui.kept import Run, kept_options, kept_runs
from edgespec.tui.paths import block_of, label_of
from edgespec.tui.status import Drafting
from edgespec.tui.transcript import Mark, Voice
from edgespec.tui.wishes import Wish, numbered_runs

if TYPE_CHECKING:
    from edgespec.history import Conversation, Saved
    from edgespec.tui.engine import Engine
    from edgespec.tui.inspector import Inspector
    from edgespec.tui.token_view import TokenView

FAILED: Final = "error"  # a reason to end that only the history knows
_SAVED_EVERY_S: Final = 1.0
_READING: Final = "reading the prompt"
_STOPPING: Final = "stopping"


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers: a pair's name, its plain speed where that was measured, and the digest of its
    target's vocabulary."""

    name: str = ""
    plain_tokens_per_second: float | None = None
    vocabulary: str = ""


@dataclass(slots=True)
class Answering:
    """An answer that is being made. key: its message's id in the history."""

    number: int
    key: int
    wish: Wish
    stats: Stats
    runs: list[Run]
    ids: list[int]
    drafting: Drafting = field(default_factory=Drafting)
    why: Stop = Stop.CANCELLED
    failed: bool = False
    thinking: bool = False  # the prompt opened a thought
    saved_s: float = 0.0
    saved: int = 0

    @property
    def content(self) -> str:
        return "".join(text for text, _ in self.runs)

    def say_anew(self, texts: Sequence[str]) -> bool:
        """Take what the model says of the tokens that stood when it began, and whether that was
        known otherwise: half a character, or text that a stop string might have cut, is told with
        the token that makes it whole."""
        runs = [(text, mark) for text, (_, mark) in zip(texts, self.runs, strict=False)]
        if len(runs) < len(self.ids) or runs == self.runs:
            return False
        self.runs = runs
        return True

    def add_rest(self, text: str) -> None:
        """Text that appeared at the end belongs to the last token."""
        if self.runs:
            last, mark = self.runs[-1]
            self.runs[-1] = (last + text, mark)
        else:
            self.runs.append((text, Mark.PLAIN))

    def figures(self) -> dict[str, Any]:
        """What is kept of it besides its text; of one that was continued, the figures are of what
        it was asked for last, and brought a token."""
        end: dict[str, Any] = {
            "finish_reason": FAILED if self.failed else self.why.value,
            "tokens": kept_runs(self.runs),
        }
        if self.thinking:
            end["thinking"] = True
        if self.wish.into is not None and not self.stats.completion_tokens:
            return end
        first, last = self.stats.first_s, self.stats.last_s
        return {
            **self.stats.as_dict(),
            "decode_s": None if first is None or last is None else last - first,
            **end,
            "asked": kept_options(self.wish.turn),
        }


class Talking:
    """The conversation that is open, and the answer that is being made in it."""

    def __init__(
        self, engine: Engine, view: TokenView, inspector: Inspector, conversation: Conversation
    ) -> None:
        self._engine, self._view, self._inspector = engine, view, inspector
        self.conversation = conversation
        self.answerer = Answerer()
        self.now: Answering | None = None
        self.stats: Stats | None = None
        self.drafting = Drafting()
        self.phase = ""
        self._known_used = 0
        self._number = 0
        self._faults: list[str] = []
        self._faults_told: set[str] = set()

    @property
    def busy(self) -> bool:
        return self.now is not None

    @property
    def context_used(self) -> int:
        """Tokens of the conversation as far as it was read and written."""
        stats = self.stats
        if self.now is not None and stats is not None and stats.prompt_tokens:
            return stats.prompt_tokens + stats.completion_tokens
        return self._known_used

    def next_number(self) -> int:
        """The number of the next thing that is asked of the engine."""
        self._number += 1
        return self._number

    # a conversation

    def open(self, conversation: Conversation) -> None:
        """Show another conversation, leaving the one that was open."""
        self.leave()
        self.conversation = conversation
        self.stats, self.drafting, self._known_used = None, Drafting(), 0
        self._inspector.clear()
        self.show()

    def count_used(self, tokens: int) -> None:
        """What the conversation takes, about, where no answer has told it."""
        if not self.busy:
            self._known_used = tokens

    def show(self) -> None:
        """The conversation as it is kept; an answer that is being made stays open."""
        blocks = [block_of(saved, self.conversation) for saved in self.conversation.path]
        if self.now is not None and blocks and blocks[-1].key == self.now.key:
            now = self.now
            runs, thinking = tuple(now.runs), now.thinking or blocks[-1].thinking
            open_end = replace(blocks[-1], runs=runs, label="", whole=False, thinking=thinking)
            blocks[-1] = open_end
        self._view.following = True
        self._view.show(blocks)

    def runs_of(self, key: int) -> Sequence[Run]:
        """The tokens of an answer on the path, by their number."""
        if self.now is not None and self.now.key == key:
            return self.now.runs
        path = self.conversation.path
        return next((numbered_runs(saved) for saved in path if saved.id == key), ())

    # an answer

    def start(self, wish: Wish) -> None:
        """Begin an answer."""
        talk, by = self.conversation, self.answerer
        if wish.into is None:
            branch, beside = wish.turn.options.branch, wish.beside
            key = talk.begin_answer(
                by.name, wish.seed, branch, beside=beside, vocabulary=by.vocabulary
            ).id
        else:
            key = wish.into
        plain = by.plain_tokens_per_second
        self.stats = Stats(time.perf_counter(), calibrated_plain_speed=plain)
        self.drafting = Drafting()
        runs, begun = list(wish.runs), list(wish.turn.begun)
        self.now = Answering(self.next_number(), key, wish, self.stats, runs, begun)
        self.now.saved_s = time.monotonic()
        self.phase = _READING
        if runs or wish.beside is not None:
            self.show()
        else:
            self._view.following = True
            self._view.begin(Voice.ANSWER, key)
        self._inspector.follow(key)
        self._engine.ask(self.now.number, wish.turn)

    def hear(self, number: int, event: Event, at_s: float) -> None:
        """Fold an event in; those of an answer that was left are not heard."""
        now = self.now
        if now is None or now.number != number:
            return
        self.stats = now.stats = now.stats.after(event, at_s)
        match event:
            case PromptRead():
                self._hear_reading(now, event)
            case Round():
                self._hear_round(now, event)
            case Finished(why, text):
                now.why = why
                if text:
                    now.add_rest(text)
                    self._view.extend(text)
            case _:
                assert_never(event)

    def _hear_reading(self, now: Answering, event: PromptRead) -> None:
        now.thinking = now.thinking or event.thinking
        if now.say_anew(event.begun):
            self.show()
        elif event.thinking:
            self._view.think()
        if self.phase != _STOPPING:
            share = f" {event.read / event.total:.0%}" if event.total else ""
            self.phase = f"{_READING}{share}"

    def _hear_round(self, now: Answering, event: Round) -> None:
        for token in event.tokens:
            mark = Mark(token.kind.value)
            now.ids.append(token.token)
            now.runs.append((token.text, mark))
            self._view.append(token.text, mark)
        if ghost := rejected(event):
            self._view.haunt(ghost, time.perf_counter())
        self._inspector.rounds.add(now.key, event)
        self.drafting = now.drafting = now.drafting.after(event)
        if self.phase.startswith(_READING):
            self.phase = ""
        if event.note and event.note not in self._faults_told:
            self._faults_told.add(event.note)
            self._faults.append(event.note)

    def save(self, now_s: float) -> None:
        """Keep what came since the last second; now_s: of time.monotonic()."""
        now = self.now
        if now is None or now_s - now.saved_s < _SAVED_EVERY_S or len(now.ids) == now.saved:
            return
        now.saved_s, now.saved = now_s, len(now.ids)
        self.conversation.write(now.key, now.content, now.ids)

    def ended(self, number: int, context_used: int, error: str) -> bool:
        """An answer is over; error: why, if it failed.

        Whether it told what the conversation takes; where no token came, context_used is that of
        an earlier answer.
        """
        now = self.now
        if now is None or now.number != number:
            return True
        wrote, now.failed = now.stats.completion_tokens > 0, bool(error)
        if wrote:
            self._known_used = context_used
        self._finish(now)
        if error:
            self._view.say(Voice.ERROR, clean(error, one_line=True))
        for fault in self._faults:
            self._view.say(Voice.NOTE, clean(fault, one_line=True))
        self._faults.clear()
        return wrote

    def stopping(self) -> None:
        """The engine was told to stop; it will once its round is over."""
        if self.now is not None:
            self.phase = _STOPPING

    def leave(self) -> None:
        """Stop listening: what came of a running answer is kept, the rest is not waited for."""
        if self.now is not None:
            self._engine.cancel()
            self._finish(self.now)

    def put_away(self) -> None:
        """As leave(), where there is no screen any more."""
        if self.now is not None:
            self._engine.cancel()
            self._keep(self.now)

    def _finish(self, now: Answering) -> None:
        saved = self._keep(now)
        self._view.end(now.key)
        self._view.label(now.key, label_of(saved, self.conversation.siblings(now.key)))

    def _keep(self, now: Answering) -> Saved:
        from edgespec.history import State

        state = State.WHOLE if now.why is Stop.END else State.CUT
        self.now, self.phase = None, ""
        return self.conversation.finish(now.key, now.content, now.ids, state, now.figures())
