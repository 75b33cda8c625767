"""Arms that answer from a table, on a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from edgespec.bench.arms import Answered
from edgespec.bench.prompts import Prompt

CHAT = Prompt("chat-1", "chat", ("Hello",))
CODE = Prompt("code-1", "code", ("def f",))
TALK = Prompt("talk-1", "chat", ("Hello", "And then?"))


@dataclass
class Clock:
    """Seconds that pass when somebody says so."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeArm:
    """Answers each turn at one speed; `ids` are those of every answer.

    seconds: what an answer takes. fails: raised in place of the first answer after warming up.
    """

    name: str
    clock: Clock = field(default_factory=Clock)
    speed: float | None = 10.0
    ids: tuple[int, ...] | None = (1, 2, 3)
    seconds: float = 1.0
    fails: BaseException | None = None
    asked: list[tuple[str, int]] = field(default_factory=list)

    def answers(
        self, prompt: Prompt, tokens: int, stopping: Callable[[], bool]
    ) -> Iterator[Answered]:
        self.asked.append((prompt.id, tokens))
        if self.fails is not None and len(self.asked) > 1:
            raise self.fails
        for _ in prompt.turns:
            self.clock.now += self.seconds
            if stopping():
                return
            yield answered(self.speed, self.ids)


def answered(speed: float | None, ids: tuple[int, ...] | None = (1, 2, 3)) -> Answered:
    return Answered("text", 3, ids, 0.5, speed, 1.0, (0.1, 0.1))


@dataclass
class FakeMargins:
    """Every place has the same margin; keeps what it was asked."""

    margin: float = 0.25
    asked: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)

    def after(
        self, prompt: Prompt, replies: Sequence[tuple[str, Sequence[int]]], ids: Sequence[int]
    ) -> float:
        self.asked.append((prompt.id, len(replies), tuple(ids)))
        return self.margin
