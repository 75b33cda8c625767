"""What the tests of decoding share: drafters to put on trial, and a way to hear a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from answer_trials import PLAIN, Told, heard

from edgespec.decoding.accept import Rule
from edgespec.decoding.draft import EMPTY, ROOT, Draft, Support
from edgespec.decoding.events import Event, Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

V = 6
PROMPT = (1, 2, 3, 1, 2)


def unfiltered(temperature: float = 1.0, seed: int | None = 0) -> Sampling:
    """Temperature alone: no token is dropped, none is penalised."""
    return Sampling(temperature, top_k=0, top_p=1.0, min_p=0.0, seed=seed)


def ask(sampling: Sampling, max_tokens: int = 24, prompt: Sequence[int] = PROMPT) -> Request:
    return Request(np.array(prompt, dtype=np.int32), sampling, max_tokens)


@dataclass(frozen=True)
class Judged(Request):
    """A request that is judged by a rule of the test's own."""

    make: Callable[[Request, int], Rule] | None = None

    def rule_for(self, round_number: int, *, trees: bool = True) -> Rule:  # type: ignore[override]
        assert self.make is not None
        return self.make(self, round_number)


def events_of(session: TableSession, request: Request, proposer: Proposer) -> Iterator[Event]:
    """The events of an answer; after each round the session must hold exactly what was told."""
    committed = [int(token) for token in request.prompt]
    for event in speculate(session, request, proposer):
        if isinstance(event, Round):
            committed += [token.token for token in event.tokens]
            assert [*session.cache, session.pending] == committed
        yield event


def answer(session: TableSession, request: Request, proposer: Proposer = PLAIN) -> Told:
    return heard(events_of(session, request, proposer))


class Copy(Nothing):
    """Guesses a chain from a copy of the target's table, the way the rule says."""

    name, plan = "copy", "a chain of a fixed length"

    def __init__(self, table: TableSession, length: int) -> None:
        self.table, self.length = table, length

    def propose(self, state: State, budget: Budget) -> Draft:
        history, q = state.tokens.tolist(), list[Support | None]()
        start = len(history)
        while len(q) < min(self.length, budget.nodes):
            row = self.table.row(history)
            guessed = state.rule.guess(row, history, state.index + len(q))
            history.append(self.changed(guessed.token))
            q.append(guessed.q)
        return Draft.chain(history[start:], self.name, q)

    def changed(self, token: int) -> int:
        return token


class Wrong(Copy):
    """Knows the truth and says something else."""

    name = "wrong"

    def changed(self, token: int) -> int:
        return (token + 1) % self.table.caps.vocab


class RandomTree(Nothing):
    """A tree of any shape; half of its tokens are sensible guesses, half are dice."""

    name, plan = "tree", "a tree of any shape"

    def __init__(self, table: TableSession, nodes: int, seed: int = 0) -> None:
        self.table, self.nodes = table, nodes
        self.rng = np.random.default_rng(seed)

    def propose(self, state: State, budget: Budget) -> Draft:
        tokens, parents, depths = list[int](), list[int](), list[int]()
        committed = state.tokens.tolist()
        lines = {ROOT: committed}
        for node in range(min(self.nodes, budget.nodes)):
            parent = int(self.rng.integers(max(ROOT, node - 4), node))
            depth = 0 if parent == ROOT else depths[parent] + 1
            line = lines[parent]
            token = int(self.rng.integers(self.table.caps.vocab))
            if self.rng.random() < 0.5:
                row = self.table.row(line)
                token = state.rule.guess(row, line, state.index + depth).token
            tokens.append(token)
            parents.append(parent)
            depths.append(depth)
            lines[node] = [*line, token]
        n = len(tokens)
        return Draft(tokens, parents, (self.name,) * n, (None,) * n) if n else EMPTY


class Fixed(Nothing):
    """Makes the drafts it was given, one a round, cut to what fits; then nothing."""

    name, plan = "fixed", "as written"

    def __init__(self, *drafts: Draft) -> None:
        self.drafts = list(drafts)

    def propose(self, state: State, budget: Budget) -> Draft:
        return self.drafts.pop(0).cut(budget.nodes) if self.drafts else EMPTY


class Script(Nothing):
    """Guesses a text that was written down before: the whole answer, right or wrong."""

    name, plan = "script", "what was written down"

    def __init__(self, reply: Sequence[int], length: int) -> None:
        self.reply, self.length = list(reply), length

    def propose(self, state: State, budget: Budget) -> Draft:
        length = min(self.length, budget.nodes)
        return Draft.chain(self.reply[state.index : state.index + length], self.name)
