"""What tests of proposers share: a place to propose at, and a proposer that remembers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from edgespec.decoding.accept import Accepted, Rule
from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Reply, Request, RuleName
from edgespec.decoding.sampling import Sampling
from edgespec.testing import TableScores

GREEDY = Sampling(0.0, seed=0)
WARM = Sampling(1.0, top_k=0, top_p=1.0, min_p=0.0, seed=0)


def asked(
    prompt: Sequence[int],
    prediction: Sequence[int] = (),
    sampling: Sampling = GREEDY,
    rule: RuleName = RuleName.COUPLED,
) -> Request:
    tokens = np.array(prompt, dtype=np.int32)
    reply = Reply(key=1)
    return Request(tokens, sampling, 100, prediction=prediction, reply=reply, rule=rule)


def rule_of(sampling: Sampling = GREEDY, rule: RuleName = RuleName.COUPLED) -> Rule:
    return asked([0], sampling=sampling, rule=rule).rule_for(1)


def at(tokens: Sequence[int], index: int = 0, rule: Rule | None = None) -> State:
    return State(np.array(tokens, dtype=np.int32), index, rule or rule_of())


def outcome(draft: Draft = EMPTY, accepted: Accepted | None = None) -> Outcome:
    return Outcome(draft, accepted or Accepted((), 0), TableScores({}), 0.0, 0.0)


class Remembers:
    """Makes the drafts it was given, and remembers what it was asked."""

    note = ""

    def __init__(self, name: str, *drafts: Sequence[int]) -> None:
        self.name, self.plan = name, f"plan of {name}"
        self.drafts = list(drafts)
        self.budgets: list[Budget] = []
        self.heard: list[str] = []

    def begin(self, request: Request) -> None:
        self.heard.append("begin")

    def propose(self, state: State, budget: Budget) -> Draft:
        self.budgets.append(budget)
        return Draft.chain(self.drafts.pop(0), self.name) if self.drafts else EMPTY

    def observe(self, outcome: Outcome) -> None:
        self.heard.append("observe")

    def end(self) -> None:
        self.heard.append("end")
