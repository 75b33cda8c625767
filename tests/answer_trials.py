"""What tests of a backend share: whole answers, drafters on trial, and an excuse for near ties."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.events import Event, Finished, PromptRead, Round, Stop
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Session
from edgespec.proposers.nothing import Nothing
from edgespec.testing import read

PLAIN = Nothing()
VOCABULARY = 384  # of the tiny models
NEAR_TIE = 1e-4  # a change of scores below which rounding may decide between two tokens


@dataclass
class Told:
    """A whole answer."""

    tokens: list[int] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)
    reused: int = 0
    why: Stop | None = None

    @property
    def drafted(self) -> int:
        return sum(len(round_.guesses) for round_ in self.rounds)

    @property
    def accepted(self) -> int:
        return sum(round_.accepted for round_ in self.rounds)

    @property
    def notes(self) -> list[str]:
        return [round_.note for round_ in self.rounds if round_.note]


def still() -> float:
    """A clock that stands, so that nothing measured changes a plan."""
    return 0.0


def answer(target: Session, request: Request, proposer: Proposer = PLAIN) -> Told:
    return heard(speculate(target, request, proposer, clock=still))


def heard(events: Iterable[Event]) -> Told:
    """Listen to the end."""
    told = Told()
    for event in events:
        match event:
            case PromptRead():
                told.reused = event.reused
            case Round():
                told.rounds.append(event)
                told.tokens += [token.token for token in event.tokens]
            case Finished():
                told.why = event.why
    return told


def ask(prompt: Sequence[int], sampling: Sampling, max_tokens: int = 20) -> Request:
    return Request(np.array(prompt, dtype=np.int32), sampling, max_tokens)


def sampler(temperature: float, seed: int, *, penalised: bool = False) -> Sampling:
    """Every other seed with the usual filters, the others without."""
    filters = {"top_k": 40, "top_p": 0.95, "min_p": 0.02} if seed % 2 else OFF
    sampling = Sampling(temperature, seed=seed, **filters)
    if not penalised:
        return sampling
    return replace(
        sampling,
        repeat_penalty=1.2,
        presence_penalty=0.5,
        frequency_penalty=0.3,
        penalty_window=32,
        logit_bias={7: 2.0, 9: -3.0},
    )


OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


def words(seed: int, length: int = 24) -> list[int]:
    """A prompt that repeats itself in part, so that an n-gram has something to find."""
    half = np.random.default_rng(seed).integers(0, 256, length // 2).tolist()
    return [*half, *half]


def with_prediction(request: Request, truth: Sequence[int]) -> Request:
    """`request` with a prediction that is wrong at every eighth token."""
    wrong = [(t + 1) % 256 if n % 8 == 7 else t for n, t in enumerate(truth)]
    return replace(request, prediction=wrong)


class Oracle:
    """The next token as the target would choose it, from a session that only reads."""

    def __init__(self, target: Session) -> None:
        self._session = target

    def row(self, tokens: Sequence[int]) -> Row:
        read(self._session, tokens)
        return self._session.verify(EMPTY).logits(ROOT).copy()


class Chains(Nothing):
    """The truth for a while, then dice: acceptance anywhere between none and all."""

    name, plan = "chain", "right until the dice say otherwise"

    def __init__(
        self, truth: Sequence[int], length: int, seed: int, vocab: int = VOCABULARY
    ) -> None:
        self.truth, self.length, self.vocab = truth, length, vocab
        self.rng = np.random.default_rng(seed)

    def propose(self, state: State, budget: Budget) -> Draft:
        length = min(self.length, budget.nodes)
        right = int(self.rng.integers(0, length + 1))
        dice = self.rng.integers(0, self.vocab, length).tolist()
        guesses = list(self.truth[state.index : state.index + length])[:right]
        return Draft.chain([*guesses, *dice[len(guesses) :]], self.name)


class Trees(Nothing):
    """Trees of at most 64 nodes and depth 8 with the truth somewhere in them, for a while."""

    name, plan, deepest = "tree", "the truth among dice", 8

    def __init__(
        self, truth: Sequence[int], nodes: int, seed: int, vocab: int = VOCABULARY
    ) -> None:
        self.truth, self.nodes, self.vocab = truth, nodes, vocab
        self.rng = np.random.default_rng(seed)
        self.widest = self.deepest_made = 0

    def propose(self, state: State, budget: Budget) -> Draft:
        n = min(self.nodes, budget.nodes)
        if not n:
            return EMPTY
        tokens, parents, depths = list[int](), list[int](), list[int]()
        line, right = ROOT, int(self.rng.integers(0, self.deepest + 1))
        for node in range(n):
            parent = int(self.rng.integers(ROOT, node))
            while parent != ROOT and depths[parent] >= self.deepest:
                parent = parents[parent]
            token = int(self.rng.integers(0, self.vocab))
            depth = self._depth(line, depths) + 1
            if depth <= right and self.rng.random() < 0.6:
                truth = self.truth[state.index + depth - 1 : state.index + depth]
                if truth:
                    parent, token, line = line, truth[0], node
            tokens.append(token)
            parents.append(parent)
            depths.append(self._depth(parent, depths) + 1)
        self.widest, self.deepest_made = max(self.widest, n), max(self.deepest_made, *depths)
        return Draft(tokens, parents, (self.name,) * n, (None,) * n)

    @staticmethod
    def _depth(node: int, depths: Sequence[int]) -> int:
        return 0 if node == ROOT else depths[node]


def never_vacuous(runs: Mapping[str, Sequence[Told]]) -> None:
    """Every drafter was right and was wrong, and none failed."""
    for name, told in runs.items():
        drafted, accepted = sum(t.drafted for t in told), sum(t.accepted for t in told)
        assert 0 < accepted < drafted, (name, accepted, drafted)
        assert not [note for t in told for note in t.notes], name


def change_that_decides(request: Request, prefix: Sequence[int], row: Row, other: int) -> float:
    """By how much the score of `other` must rise for the target to choose it after `prefix`."""
    request = request.seeded()
    assert request.reply is not None
    index = len(prefix) - len(request.prompt)
    rule = request.rule_for(0)
    low, high = 0.0, 64.0
    for _ in range(40):
        middle = (low + high) / 2
        changed = row.copy()
        changed[other] += middle
        low, high = (
            (low, middle)
            if rule.guess(changed, prefix, index).token == other
            else (
                middle,
                high,
            )
        )
    return high


def assert_same_text(fast: Told, plain: Told, request: Request, oracle: Oracle) -> bool:
    """Whether the ids are the same; where they are not, a near tie must be the reason."""
    if fast.tokens == plain.tokens:
        assert fast.why == plain.why
        return True
    at = next(n for n, (a, b) in enumerate(zip(fast.tokens, plain.tokens, strict=False)) if a != b)
    prefix = [*request.prompt.tolist(), *plain.tokens[:at]]
    margin = change_that_decides(request, prefix, oracle.row(prefix), fast.tokens[at])
    assert margin < NEAR_TIE, (
        f"texts part at token {at} ({plain.tokens[at]} and {fast.tokens[at]}), where a score would"
        f" have to change by {margin:.3g}"
    )
    return False


Make = Callable[[int, int, Sequence[int]], Proposer]
