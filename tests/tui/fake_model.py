"""A scripted model with the shape of the real one: no weights, any speed, any fault."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import log

from edgespec.decoding.events import (
    Alternative,
    Committed,
    Event,
    Finished,
    Guess,
    Kind,
    PromptRead,
    Round,
    Stop,
)
from edgespec.errors import BadInput, EdgespecError
from edgespec.options import AnswerOptions, Explained, Speculation, Turn
from edgespec.tui.app import ChatSetup, run_chat


@dataclass(frozen=True)
class FakeInfo:
    pair: str = "demo"
    target: str = "SmolLM2-135M"
    draft: str | None = "SmolLM2-7M"
    backend: str = "llamacpp"
    device: str = "cpu"
    context: int = 4096
    exactness: str = "bit-exact at every draft length"
    inexact_with: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    memory: str = ""


def guessed(
    *texts: str,
    accepted: int,
    plan: str = "draft \N{MULTIPLICATION SIGN}4",
    source: str = "draft",
) -> Round:
    """A round that guessed a chain, of which `accepted` were right; the last text is the target's
    own: `guessed(" a", " b", " c", accepted=1)` says " a c" and turns " b" down."""
    *chain, own = texts
    kind = Kind.BONUS if accepted == len(chain) else Kind.CORRECTION
    tokens = [Committed(n, Kind.ACCEPTED, source, t) for n, t in enumerate(chain[:accepted])]
    guesses = [
        Guess(n, n - 1, source, tested=n <= accepted, accepted=n < accepted, text=t)
        for n, t in enumerate(chain)
    ]
    own_token = Committed(99, kind, text=own)
    return Round(0, (*tokens, own_token), tuple(guesses), 0.001, 0.004, 0.006, plan)


def plain(text: str, plan: str = "", note: str = "") -> Round:
    return Round(0, (Committed(1, Kind.PLAIN, text=text),), (), 0.0, 0.004, 0.005, plan, note)


def timed(event: Round, seconds: float) -> Round:
    """The round as one that takes so long, with the same shares for drafting and verifying."""
    by = seconds / event.round_s
    draft_s, verify_s = event.draft_s * by, event.verify_s * by
    return replace(event, draft_s=draft_s, verify_s=verify_s, round_s=seconds)


def considered(event: Round, *others: str) -> Round:
    """The round as it is told where alternatives are asked for: each token was half certain, and
    `others` share the rest; each guess was made with 80 % confidence."""
    half = log(0.5)
    tokens = tuple(
        replace(token, logprob=half, alternatives=_five(token, others)) for token in event.tokens
    )
    guesses = tuple(replace(guess, probability=0.8) for guess in event.guesses)
    return replace(event, tokens=tokens, guesses=guesses)


def _five(token: Committed, others: Sequence[str]) -> tuple[Alternative, ...]:
    texts = others or (" one", " two", " three", " four")
    each = log(0.5 / len(texts))
    rest = (Alternative(900 + n, each - 0.01 * n, text) for n, text in enumerate(texts))
    return (Alternative(token.token, log(0.5), token.text), *rest)


SHORT: tuple[Event | EdgespecError, ...] = (
    PromptRead(0, 20, 0, 0.0),
    PromptRead(20, 20, 0, 0.1),
    plain("Sorting"),
    guessed(" means", " giving", " things", " items", accepted=2),
    guessed(" a", " fixed", " order", ".", accepted=3),
    guessed("\n\n", "First", "Take", accepted=1),
    Finished(Stop.END),
)


@dataclass
class FakeChat:
    """Speaks as scripted, whatever it is asked."""

    model: FakeModel
    context_used: int = 0

    @property
    def end_names(self) -> dict[int, str]:
        return self.model.end_names

    def answer(self, turn: Turn) -> Iterator[Event]:
        self.model.asked.append(turn.messages[-1].content)
        self.model.turns.append(turn)
        return self._speak(turn, self._queued())

    def explain(self, turn: Turn, ids: Sequence[int], at: int) -> Explained:
        self.model.explained.append((turn, tuple(ids), at))
        if not 0 <= at < len(ids):
            raise BadInput(f"There is no token {at} in an answer of {len(ids)} tokens.")
        token = Committed(ids[at], Kind.PLAIN, text=f" token{ids[at]}")
        return Explained(at, ids[at], log(0.5), _five(token, ()))

    def _queued(self) -> threading.Event:
        cancelled = threading.Event()
        self.model.answers.append(cancelled)
        return cancelled

    def _speak(self, turn: Turn, cancelled: threading.Event) -> Iterator[Event]:
        script = self.model.scripts[min(len(self.model.asked), len(self.model.scripts)) - 1]
        said = self._standing(turn.begun)
        told = PromptRead(0, self._prompt_tokens(turn), 0, 0.0, tuple(one.text for one in said))
        index, tokens = len(turn.begun), told.total
        if said and not isinstance(script[0], PromptRead):
            yield told
        if len(said) == index:
            self.model.said.append(said)
        for step in script:
            if isinstance(step, Exception):
                raise step
            if cancelled.wait(self.model.pace_s):
                yield Finished(Stop.CANCELLED)
                return
            if isinstance(step, PromptRead):
                yield step if step.begun else replace(step, begun=told.begun)
                told, tokens = replace(told, begun=()), step.total
            elif isinstance(step, Round):
                event = considered(step) if turn.options.alternatives > 0 else step
                yield replace(event, index=index)
                said += event.tokens
                index, tokens = index + len(event.tokens), tokens + len(event.tokens)
                self.context_used = tokens
            else:
                yield step

    def _prompt_tokens(self, turn: Turn) -> int:
        messages = sum(self.model.count_tokens(message.content) for message in turn.messages)
        return messages + len(turn.begun)

    def _standing(self, ids: Sequence[int]) -> list[Committed]:
        """These tokens as they were said, the last of them perhaps chosen instead of another one;
        none where nothing like that was said."""
        for said in reversed(self.model.said):
            *before, last = [Committed(0, Kind.PLAIN), *said[: len(ids)]]
            if len(before) != len(ids) or [one.token for one in before[1:]] != [*ids[:-1]]:
                continue
            for other in (last, *last.alternatives, *_five(last, ())):
                if ids and other.token == ids[-1]:
                    return [*before[1:], Committed(other.token, Kind.PLAIN, text=other.text)]
        return []


@dataclass
class FakeModel:
    """Answers with one script after the other, the last one again and again.

    lacks: names of proposers that it has not. asked: what users said; turns, explained: what was
    asked of the chat, whole. said: its answers, token by token.
    """

    scripts: tuple[tuple[Event | EdgespecError, ...], ...] = (SHORT,)
    pace_s: float = 0.0
    lacks: tuple[str, ...] = ()
    info: FakeInfo = field(default_factory=FakeInfo)
    speculation: Speculation = field(default_factory=Speculation)
    plain_tokens_per_second: float | None = 23.0
    asked: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    explained: list[tuple[Turn, tuple[int, ...], int]] = field(default_factory=list)
    answers: list[threading.Event] = field(default_factory=list)
    said: list[list[Committed]] = field(default_factory=list)
    closed: bool = False
    system: str = ""
    vocabulary: str = "0123456789abcdef"
    end_names: dict[int, str] = field(default_factory=dict)

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, Speculation) and value.proposer in self.lacks:
            raise BadInput(f"'{self.info.pair}' has no draft model; name one with --draft FILE.")
        super().__setattr__(name, value)

    def __enter__(self) -> FakeModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def chat(self, system: str, options: object) -> FakeChat:
        self.system = system
        return FakeChat(self)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def cancel(self) -> None:
        """The answer that was asked for last ends, begun or not."""
        for answer in self.answers[-1:]:
            answer.set()


def endless() -> tuple[Event, ...]:
    return (PromptRead(20, 20, 0, 0.1), *(plain(f" word{n}") for n in range(20_000)))


def setup_for(
    model: FakeModel, *, notes: tuple[str, ...] = ("loading weights",), title: str = "demo"
) -> ChatSetup:
    def load(report: Callable[[str], None]) -> FakeModel:
        for note in notes:
            report(note)
        return model

    return ChatSetup(load, "", AnswerOptions(), title)  # type: ignore[arg-type]


def main() -> None:
    """A chat by hand: `python -m tests.tui.fake_model [seconds per round]`."""
    pace_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.0
    run_chat(setup_for(FakeModel(scripts=(SHORT, endless()), pace_s=pace_s)))


if __name__ == "__main__":
    main()
