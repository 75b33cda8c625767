"""Taking turns: every arm answers every prompt in every run, in an order that rotates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from edgespec.bench.arms import Answered, Arm
from edgespec.errors import EdgespecError

if TYPE_CHECKING:
    from edgespec.bench.prompts import Prompt

_WARM_UP_TOKENS = 8
REFERENCE = "none"  # whose ids the others are compared with


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked, how often, and how long answers may be.

    yardstick: the arm that speed-ups are ratios to. within_s: seconds after which no more is
    measured; None = no limit.
    """

    prompts: tuple[Prompt, ...]
    runs: int = 3
    tokens: int = 128
    yardstick: str = REFERENCE
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One answer: of which arm, to which turn of which prompt, in which run."""

    run: int
    prompt: str
    category: str
    turn: int
    arm: str
    answer: Answered

    @property
    def place(self) -> tuple[int, str, int]:
        """What answers of different arms have in common."""
        return self.run, self.prompt, self.turn


@dataclass(frozen=True, slots=True)
class Comparison:
    """An answer beside that of `none`. parted_at: first token that differs; None = the same.

    margin: of the target's two best scores there; None where it was not measured.
    """

    record: Record
    parted_at: int | None = None
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class RunLoad:
    """The machine's load average around one run; None where the system does not tell."""

    run: int
    before: float | None
    after: float | None


@dataclass(slots=True)
class Outcome:
    """Everything that was measured. cut: why it is less than was planned; empty if it is not."""

    plan: Plan
    arms: list[str]
    records: list[Record] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    loads: list[RunLoad] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cut: str = ""
    interrupted: bool = False

    def beside_yardstick(self) -> bool:
        """Whether anything but the yardstick was measured."""
        return any(record.arm != self.plan.yardstick for record in self.records)


class Scorer(Protocol):
    """Tells how sure the target is at one place of an answer."""

    def after(
        self, prompt: Prompt, replies: Sequence[tuple[str, Sequence[int]]], ids: Sequence[int]
    ) -> float: ...


@dataclass(frozen=True, slots=True)
class Helpers:
    """What the runner needs of the world. progress: gets answers done, all answers, a line.

    margins: None where margins of scores say nothing, as with a sampler that draws.
    """

    progress: Callable[[int, int, str], None] = lambda _done, _all, _line: None
    margins: Scorer | None = None
    load: Callable[[], float | None] = lambda: None
    clock: Callable[[], float] = perf_counter


class _TimeIsUp(Exception):
    """The plan's time is over."""


class Runner:
    """Measures a plan. Ctrl+C ends it early; what was measured stays."""

    def __init__(self, arms: Sequence[Arm], plan: Plan, helpers: Helpers | None = None) -> None:
        self._arms, self._plan, self._helpers = list(arms), plan, helpers or Helpers()
        self._outcome = Outcome(plan, [arm.name for arm in arms])
        self._all = plan.runs * len(plan.prompts) * len(arms)
        self._begins = _begins(plan.prompts)
        self._done = 0
        limit = plan.within_s
        self._ends_s = None if limit is None else self._helpers.clock() + limit

    def run(self) -> Outcome:
        """Raises: EdgespecError when the yardstick cannot answer."""
        outcome = self._outcome
        try:
            self._warm_up()
            for run in range(self._plan.runs):
                self._one_run(run)
        except KeyboardInterrupt:
            outcome.cut, outcome.interrupted = "stopped early", True
        except _TimeIsUp:
            outcome.cut = "its time was up"
        return outcome

    def _warm_up(self) -> None:
        """The first answer of a program is slower than all that follow."""
        prompt = self._plan.prompts[0]
        for arm in list(self._arms):
            self._helpers.progress(0, self._all, f"warming up {arm.name}")
            self._answers(arm, prompt, min(_WARM_UP_TOKENS, self._plan.tokens))

    def _one_run(self, run: int) -> None:
        before = self._helpers.load()
        try:
            for prompt, begins in zip(self._plan.prompts, self._begins, strict=True):
                self._one_prompt(run, run + begins, prompt)
        finally:
            self._outcome.loads.append(RunLoad(run, before, self._helpers.load()))

    def _one_prompt(self, run: int, turn: int, prompt: Prompt) -> None:
        first = turn % len(self._arms)
        records = dict[str, list[Record]]()
        for arm in [*self._arms[first:], *self._arms[:first]]:
            line = f"run {run + 1} of {self._plan.runs}, {prompt.id}, {arm.name}"
            self._helpers.progress(self._done, self._all, line)
            answers = self._answers(arm, prompt, self._plan.tokens)
            records[arm.name] = [
                Record(run, prompt.id, prompt.category, number, arm.name, answer)
                for number, answer in enumerate(answers)
            ]
            self._outcome.records += records[arm.name]
            self._done += 1
        self._compare(prompt, records)
        self._helpers.progress(self._done, self._all, f"run {run + 1}, {prompt.id} done")

    def _answers(self, arm: Arm, prompt: Prompt, tokens: int) -> list[Answered]:
        """All turns of one prompt; an arm that fails takes no further part."""
        if self._time_is_up():
            raise _TimeIsUp
        try:
            answers = list(arm.answers(prompt, tokens, self._time_is_up))
        except EdgespecError as error:
            if arm.name in (self._plan.yardstick, REFERENCE):
                raise
            self._arms.remove(arm)
            self._outcome.notes.append(f"{arm.name} takes no further part: {error}")
            return []
        if len(answers) < len(prompt.turns):
            raise _TimeIsUp
        return answers

    def _time_is_up(self) -> bool:
        return self._ends_s is not None and self._helpers.clock() >= self._ends_s

    def _compare(self, prompt: Prompt, records: dict[str, list[Record]]) -> None:
        """Each arm's answers with those of `none`, up to the first turn that differs: behind it
        the conversations are not the same."""
        plain = [record.answer for record in records.get(REFERENCE, ())]
        for name, told in records.items():
            if name == REFERENCE or not plain:
                continue
            for record in told:
                parted = _parted(plain[record.turn], record.answer)
                margin = self._margin(prompt, plain, record, parted)
                self._outcome.comparisons.append(Comparison(record, parted, margin))
                if parted is not None:
                    break

    def _margin(
        self, prompt: Prompt, plain: Sequence[Answered], record: Record, parted: int | None
    ) -> float | None:
        ids = plain[record.turn].ids
        if parted is None or self._helpers.margins is None:
            return None
        if ids is None or record.answer.ids is None:
            return None
        replies = [(answer.text, answer.ids or ()) for answer in plain[: record.turn]]
        return self._helpers.margins.after(prompt, replies, ids[:parted])


def _begins(prompts: Sequence[Prompt]) -> list[int]:
    """For each prompt the number of the arm that begins, counted on beyond the last arm.

    Within a category it is the next one each time, in whatever order the categories come.
    """
    categories = dict.fromkeys(prompt.category for prompt in prompts)
    following = {category: count(number) for number, category in enumerate(categories)}
    return [next(following[prompt.category]) for prompt in prompts]


def _parted(plain: Answered, other: Answered) -> int | None:
    """Where two answers part, in tokens, or in characters where one has no ids."""
    if plain.ids is not None and other.ids is not None:
        return _first_difference(plain.ids, other.ids)
    return _first_difference(plain.text, other.text)


def _first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    if one == other:
        return None
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
