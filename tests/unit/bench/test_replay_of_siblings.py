"""A replayed draft model branches as the real one does: where trees are let and rows are cheap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from recordings import cheap, usual

from edgespec.bench.recorded import Recorded, score
from edgespec.bench.replay import (
    AutoArm,
    Cost,
    FixedArm,
    Machine,
    RecordedBranching,
    Replayed,
    Replayer,
    Scripted,
    replay,
)
from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.events import Round
from edgespec.decoding.loop import speculate
from edgespec.decoding.proposer import Budget, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.decoding.session import Session
from edgespec.planning.model_source import DraftCost
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.growing import GrowingTree
from edgespec.proposers.model_tree import OTHERS, Branching
from edgespec.proposers.nothing import Nothing
from edgespec.testing import TableSession

V, NOISE, TOKENS, SEEDS = 8, 1.5, 200, range(4)
HOURS = 36000.0  # so that what a replay itself takes is nothing beside a pass
GREEDY, WARM = Sampling(0.0, seed=0), Sampling(0.8, seed=0)
MODEL = DraftCost(guess_s=0.03 * cheap(1) * HOURS, read_s=0.0)
LET, CHAINS = AutoArm(trees=True), AutoArm(trees=False)


def asked(sampling: Sampling, tokens: int = TOKENS) -> Request:
    return Request(np.array([1, 2, 3], np.int32), sampling, tokens).seeded()


def rounds(session: Session, request: Request, proposer: Proposer) -> list[Round]:
    told = [e for e in speculate(session, request, proposer) if isinstance(e, Round)]
    assert not [round_.note for round_ in told if round_.note]
    return told


def drafter(seed: int) -> TableSession:
    return TableSession(V, seed, noise=NOISE)


def said(seed: int, sampling: Sampling = WARM) -> Recorded:
    """What a table says, with the guesses of a noisy copy of it."""
    request = asked(sampling)
    plain = rounds(TableSession(V, seed), request, Nothing())
    reply = np.array([token.token for round_ in plain for token in round_.tokens], np.int32)
    answer = Recorded(f"{seed}", "test", request.prompt, reply)
    return score(answer, drafter(seed), V, request.rule_for(0))


class EverySibling(Nothing):
    """A fixed number of a model's guesses, and whatever it notes beside them."""

    name, most = "draft", 4

    def __init__(self, model: SmallModel) -> None:
        self._model = model

    def begin(self, request: Request) -> None:
        self._model.begin(request)

    def propose(self, state: State, budget: Budget) -> Draft:
        most = min(self.most, budget.nodes // (1 + OTHERS))
        draft, tree = self._model.propose(state, UpTo(most)), GrowingTree()
        if not draft:
            return EMPTY
        for node, token in enumerate(draft.tokens):
            tree.add(node - 1, token, self._model.confidences[node])
        for node, others in enumerate(self._model.others):
            for other in others:
                tree.add(node - 1, other.token, other.confidence)
        return tree.draft(len(tree), self.name)


@pytest.mark.parametrize("sampling", [GREEDY, WARM], ids=["greedy", "warm"])
def test_each_round_accepts_what_the_real_model_and_its_siblings_would_have_had_accepted(
    sampling: Sampling,
) -> None:
    siblings = 0
    for seed in SEEDS:
        answer, model = said(seed, sampling), RecordedBranching(DraftCost(0.0, 0.0))
        machine = Machine([*answer.prompt.tolist(), *answer.reply.tolist()], cheap)
        model.put(machine, answer)
        replayed = rounds(Scripted(machine), asked(GREEDY), EverySibling(model))
        branching = Branching(drafter(seed), V)
        real = rounds(TableSession(V, seed), asked(sampling), EverySibling(branching))
        assert [r.tokens for r in replayed] == [r.tokens for r in real]
        assert sum(len(r.tokens) for r in real) == TOKENS
        siblings += sum(
            guess.accepted and guess.parent != n - 1
            for r in real
            for n, guess in enumerate(r.guesses)
        )
    assert siblings > 20


def total(answers: Sequence[Recorded], cost: Cost, arm: AutoArm) -> Replayed:
    """All answers in a row, as one."""
    replayer = Replayer(arm, lambda rows: HOURS * cost(rows), MODEL)
    told = [replayer.replay(answer) for answer in answers]
    return Replayed(*(sum(getattr(t, name) for t in told) for name in Replayed.__match_args__))


def first_choices(answers: Sequence[Recorded]) -> list[Recorded]:
    """As recordings were before anything was noted beside a guess."""
    return [replace(answer, noted=None, shares=None) for answer in answers]


def test_on_cheap_rows_siblings_make_a_replay_faster_than_its_chain() -> None:
    answers = [said(seed) for seed in SEEDS]
    trees, chains = total(answers, cheap, LET), total(first_choices(answers), cheap, LET)
    assert chains.accepted > 100
    assert trees.accepted > 1.05 * chains.accepted
    assert trees.seconds < 0.97 * chains.seconds


@pytest.mark.parametrize(("cost", "arm"), [(usual, LET), (cheap, CHAINS)], ids=["dear", "exact"])
def test_where_rows_are_dear_or_trees_are_not_let_a_replay_is_that_of_chains(
    cost: Cost, arm: AutoArm
) -> None:
    answers = [said(seed) for seed in SEEDS]
    told = total(answers, cost, arm)
    assert told.accepted > 100
    assert told == total(first_choices(answers), cost, CHAINS)


def test_a_fixed_number_of_guesses_is_a_chain_also_where_siblings_are_known() -> None:
    answer, arm = said(0), FixedArm(("draft",), 4)
    trees, chains = (replay(one, arm, cheap, MODEL) for one in (answer, *first_choices([answer])))
    assert trees == chains
