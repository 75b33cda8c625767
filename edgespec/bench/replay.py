"""Recorded answers said again on a machine made of numbers: what would this way of guessing cost?

The real loop, planner and n-gram index run; only the target's text and the draft model's guesses
are known before, and the clock moves by what passes and guesses cost, and by what it really takes
to guess trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from edgespec.bench.recorded import NO_GUESS, Recorded
from edgespec.decoding.accept import Guessed
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.events import Event, Round
from edgespec.decoding.history import common_prefix
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import MOST_ROWS, Caps
from edgespec.decoding.stats import Stats
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.measure import WIDTHS
from edgespec.planning.model_source import DraftCost
from edgespec.planning.planner import Auto
from edgespec.planning.tree_source import Charged
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import RIDES_ALONG, DraftTiming, SmallModel

Cost = Callable[[int], float]  # seconds of a target's pass of so many rows, however long its text
AnyCost = Cost | CostCurve
_EVERY_WIDTH = range(1, MOST_ROWS + 1)
_MEASURED = (*WIDTHS, MOST_ROWS)  # when a model is loaded
_ANY_ID = 2**31 - 1


def curve_of(cost: AnyCost, widths: Iterable[int] = _EVERY_WIDTH) -> CostCurve:
    """A curve that is the caller's to move. widths: at which a cost that is none is looked up."""
    if not isinstance(cost, CostCurve):
        return CostCurve({rows: cost(rows) for rows in widths})
    own = deepcopy(cost)
    own.at(own.context)
    return own


def plain_seconds(recorded: Recorded, cost: CostCurve) -> float:
    """What an answer takes without guesses, from its first token on."""
    seconds, begun = 0.0, len(recorded.prompt)
    for place in range(1, len(recorded.reply)):
        cost.at(begun + place)
        seconds += cost.seconds(1)
    return seconds


@dataclass(slots=True)
class Machine:
    """The text the target will say, prompt included, and a clock that costs move.

    rows: the target's scores of what stands at a place of the text, where they are known.
    really_s: further seconds that were spent since it was last asked. at: is told how many tokens
    of text the next pass stands behind.
    """

    text: Sequence[int]
    cost: Cost
    now: float = 0.0
    rows: Callable[[int], Row] | None = None
    really_s: Callable[[], float] = lambda: 0.0
    at: Callable[[int], None] = lambda _: None

    def clock(self) -> float:
        self.now += self.really_s()
        return self.now


@dataclass(frozen=True, slots=True)
class Says:
    """Scores whose best token is the known one. places: in the text, that the rows score."""

    machine: Machine
    places: dict[int, int]

    def top(self, node: int) -> int:
        return self.machine.text[self.places[node]]

    def logits(self, node: int) -> Row:
        assert self.machine.rows is not None, "greedy text needs no scores"
        return self.machine.rows(self.places[node])


class Scripted:
    """A session whose target says the machine's text."""

    def __init__(self, machine: Machine, vocab: int = _ANY_ID) -> None:
        self.caps = Caps(vocab, context=_ANY_ID, tree=True)
        self._machine, self._at = machine, 0

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        self._at = len(tokens)
        yield 0

    def held(self, tokens: Tokens) -> int:
        return 0

    def verify(self, draft: Draft) -> Says:
        self._machine.at(self._at)
        self._machine.now += self._machine.cost(len(draft) + 1)
        depths = [0, *draft.depths()]
        places = {node: self._at + depths[node - ROOT] for node in range(ROOT, len(draft))}
        return Says(self._machine, places)

    def extend(self, grown: Draft) -> Says:
        return self.verify(grown)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self._at += len(path) + 1

    def reset(self) -> None:
        self._at = 0


class RecordedModel(SmallModel):
    """A draft model whose guesses are known. After its first wrong guess it says what it would
    have said to the true text, since nothing behind a wrong guess is accepted."""

    def __init__(self, cost: DraftCost) -> None:
        self._machine, self._recorded = Machine((), lambda _: 0.0), _NOTHING
        super().__init__(Scripted(self._machine), _ANY_ID)
        self._cost, self._read = cost, _NOTHING.prompt

    @property
    def note(self) -> str:
        """Nothing: where it rests that is no fault of the replay."""
        return ""

    @property
    def plan(self) -> str:
        return f"draft model ×{self.timing.guesses}"  # noqa: RUF001

    def put(self, machine: Machine, recorded: Recorded) -> None:
        """The answer that is said next, on whose clock guesses count."""
        self._machine, self._recorded = machine, recorded

    def forget(self) -> None:
        self._read = _NOTHING.prompt

    def unread(self, tokens: Tokens) -> int:
        return len(tokens) - common_prefix(self._read, tokens[:-1])

    def room(self, state: State) -> int:
        guesses = self._recorded.guesses
        if guesses is None or self._watchdog.parked:
            return 0
        ahead = guesses[len(state.tokens) - len(self._recorded.prompt) :]
        silent = np.flatnonzero(ahead == NO_GUESS)
        return int(silent[0]) if len(silent) else len(ahead)

    def propose(self, state: State, budget: Budget) -> Draft:
        most = min(budget.nodes, self.room(state))
        if most < 1:
            return EMPTY
        started_s, place = self._machine.now, len(state.tokens) - len(self._recorded.prompt)
        unread = max(0, self.unread(state.tokens) - RIDES_ALONG)
        self._machine.now += unread * self._cost.read_s
        guesses = self.guesses = list[int]()
        others: list[list[Guessed]] = []
        self.confidences = []
        while len(guesses) < most and budget.another(self.confidences):
            self._machine.now += self._cost.guess_s
            guess, *instead = self._said(place + len(guesses))
            guesses.append(guess.token)
            others.append(instead)
            self.confidences.append(guess.confidence)
        self.others = others
        right = self._right(place, guesses)
        self._read = np.concatenate([state.tokens, self._recorded.reply[place : place + right]])
        first_s = unread * self._cost.read_s + self._cost.guess_s
        self.timing = DraftTiming(len(guesses), unread, first_s, self._machine.now - started_s)
        return Draft.chain(guesses, self.name) if guesses else EMPTY

    def _said(self, place: int) -> list[Guessed]:
        """The guess for a place of the reply, and what is noted beside it."""
        guesses, confidences = self._recorded.guesses, self._recorded.confidences
        assert guesses is not None
        assert confidences is not None
        return [Guessed(int(guesses[place]), float(confidences[place]))]

    def _right(self, place: int, guesses: Sequence[int]) -> int:
        """How many guesses are right, so that the text to come has been read as far as them."""
        reply = self._recorded.reply[place : place + len(guesses)].tolist()
        wrong = (n for n, (g, t) in enumerate(zip(guesses, reply, strict=False)) if g != t)
        return next(wrong, len(guesses))


class RecordedBranching(RecordedModel):
    """The same, with what else the model held likely where that was kept."""

    def _said(self, place: int) -> list[Guessed]:
        noted, shares = self._recorded.noted, self._recorded.shares
        if noted is None or shares is None:
            return super()._said(place)
        said = zip(noted[place].tolist(), shares[place].tolist(), strict=True)
        return [Guessed(token, share) for token, share in said if token != NO_GUESS]


_NOTHING = Recorded("", "", np.empty(0, np.int32), np.empty(0, np.int32))


class Arm(Protocol):
    """A way of guessing. name: as `edgespec bench` calls it."""

    @property
    def name(self) -> str: ...

    @property
    def needs_model(self) -> bool: ...

    def proposer(self, luck: Luck) -> Proposer: ...


def proposer_name(sources: Sequence[str]) -> str:
    """What `--proposer` calls these sources."""
    return "auto" if len(sources) > 1 else sources[0]


@dataclass(frozen=True, slots=True)
class FixedArm:
    """Always so many guesses, by the first of these that has any: `ngram`, `draft`, `recycling`,
    `tree`."""

    sources: tuple[str, ...]
    guesses: int

    @property
    def name(self) -> str:
        return f"{proposer_name(self.sources)}:{self.guesses}"

    @property
    def needs_model(self) -> bool:
        return "draft" in self.sources

    def proposer(self, luck: Luck) -> Proposer:
        fixed = Fixed(luck.fixed(proposer_name(self.sources)), self.guesses)
        return Charged(fixed) if {"recycling", "tree"} & {*self.sources} else fixed


@dataclass(frozen=True, slots=True)
class AutoArm:
    """The planner with what `--proposer` calls so; `auto` has a draft model where there is one.

    trees: whether it may draft them where nobody asked for trees.
    """

    name: str = "auto"
    trees: bool = False

    @property
    def needs_model(self) -> bool:
        return self.name == "draft"

    def proposer(self, luck: Luck) -> Proposer:
        return Auto(luck.sources(self.name, trees=self.trees), luck.cost)


@dataclass(frozen=True, slots=True)
class Replayed:
    """What an answer cost, from its first token on; plain_seconds: the same without guesses."""

    seconds: float
    plain_seconds: float
    rounds: int
    drafted: int
    tested: int
    accepted: int

    @property
    def speedup(self) -> float:
        return self.plain_seconds / self.seconds if self.seconds else 1.0


class Replayer:
    """An arm on a machine made of numbers; what it learned stays from answer to answer, as in a
    model that stays loaded."""

    def __init__(self, arm: Arm, cost: AnyCost, drafter: DraftCost | None = None) -> None:
        self._cost = curve_of(cost)
        self._models: list[RecordedModel] = []
        ready = None
        if drafter is not None:
            chain, branching = self._models = [RecordedModel(drafter), RecordedBranching(drafter)]
            # trees of its own are not recorded: they ask what follows many guesses
            ready = Drafter(chain, drafter, chain, branching)
        luck = Luck.of(curve_of(cost, _MEASURED), ready)
        self._proposer = arm.proposer(luck)
        self._charged = [s.proposer for s in (luck.text, luck.recycling, luck.tree)]
        if isinstance(self._proposer, Charged):
            self._charged.append(self._proposer)
        self._took_s = 0.0

    def replay(self, recorded: Recorded) -> Replayed:
        """Say one answer."""
        text = [*recorded.prompt.tolist(), *recorded.reply.tolist()]
        self._really_s()  # what the end of the last answer took
        cost, rows = self._cost, _rows(recorded)
        machine = Machine(text, cost.seconds, rows=rows, really_s=self._really_s, at=cost.at)
        for model in self._models:
            model.put(machine, recorded)
        request = Request(recorded.prompt, Sampling(0.0, seed=0), len(recorded.reply))
        events = speculate(Scripted(machine), request, self._proposer, machine.clock)
        return _figures(events, machine, plain_seconds(recorded, cost))

    def _really_s(self) -> float:
        """Seconds that guessing trees took since it was last asked."""
        before, self._took_s = self._took_s, sum(one.took_s for one in self._charged)
        return self._took_s - before


def _rows(recorded: Recorded) -> Callable[[int], Row] | None:
    """The scores that were kept, by place in the text; those of other tokens are far below."""
    near, scores, begun = recorded.near, recorded.scores, len(recorded.prompt)
    if near is None or scores is None:
        return None
    vocab = 1 + max(int(ids.max()) for ids in (near, recorded.prompt, recorded.reply))
    low = np.linspace(-1000.0, -900.0, vocab, dtype=np.float32)

    def row(place: int) -> Row:
        scored = low.copy()
        scored[near[place - begun]] = scores[place - begun]
        return scored

    return row


def replay(
    recorded: Recorded, arm: Arm, cost: AnyCost, drafter: DraftCost | None = None
) -> Replayed:
    """Say one answer, by an arm that knows nothing of others."""
    return Replayer(arm, cost, drafter).replay(recorded)


def _figures(events: Iterator[Event], machine: Machine, plain_s: float) -> Replayed:
    stats = Stats(machine.now)
    for event in events:
        stats = stats.after(event, machine.now)
        if isinstance(event, Round) and event.note:
            raise AssertionError(event.note)  # a replay has no faults of its own to survive
    assert stats.first_s is not None
    assert stats.last_s is not None
    return Replayed(
        seconds=stats.last_s - stats.first_s,
        plain_seconds=plain_s,
        rounds=stats.rounds,
        drafted=stats.drafted,
        tested=stats.tested,
        accepted=stats.accepted,
    )
