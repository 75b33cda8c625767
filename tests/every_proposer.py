"""Every proposer on trial, on any backend: whoever drafts, the text is the plain text.

A backend lends sessions (`Ground`); runs and claims are here, the same for all backends, and so
are the checks that sessions which are wrong on purpose must fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from answer_trials import (
    Chains,
    Told,
    Trees,
    answer,
    ask,
    never_vacuous,
    sampler,
    with_prediction,
    words,
)

from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import Request
from edgespec.decoding.session import Caps, Session
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.model_source import DraftCost
from edgespec.planning.planner import Auto
from edgespec.proposers.combine import FirstOf, Fixed, Merged
from edgespec.proposers.draft_model import SmallModel
from edgespec.proposers.memory import Memory
from edgespec.proposers.model_tree import Branching, ModelTree
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree
from edgespec.proposers.recycling import Recycling
from edgespec.proposers.switching import Switching
from edgespec.proposers.watchdog import MANY
from edgespec.testing import random_draft, random_path, read

CHAIN, TREE, MOST = 8, 24, 64  # guesses a round
LENGTH = MOST + 6  # so that the first trees are not cut to what is left of the answer
FLAT = {n: 1.0 for n in (1, 2, 4, 8, 16, 32, 64)}  # seconds beside which no guess takes time
SIBLINGS = ("n-gram tree", "model tree", "trimmed tree", "recycling", "memory", "merged", "trees")
Same = Callable[[Told, Told, Request], bool]


@dataclass(frozen=True)
class Ground:
    """What a backend lends: new sessions each time.

    target: the model that answers. copy: a noisy copy of it. trimmed: a noisy copy with an id
    table. stranger: another model with the same vocabulary. same: whether the ids are the same;
    fails where they are not and rounding is no excuse.
    """

    target: Callable[[], Session]
    copy: Callable[[], Session]
    trimmed: Callable[[], Session]
    stranger: Callable[[], Session]
    same: Same


def to_the_bit(fast: Told, plain: Told, request: Request) -> bool:
    """No near tie is excused."""
    assert (fast.tokens, fast.why) == (plain.tokens, plain.why), "texts part"
    return True


class Turns:
    """Another proposer every third time it is asked."""

    def __init__(self, *proposers: Proposer) -> None:
        self._proposers, self._asked = proposers, -1

    def __call__(self) -> Proposer:
        self._asked += 1
        return self._proposers[self._asked // 3 % len(self._proposers)]


def fifty_rounds(target: Session, seed: int) -> list[int]:
    """What is committed after fifty rounds of random trees and random paths."""
    rng, vocab = np.random.default_rng(seed), target.caps.vocab
    tokens = prompt_of(seed, vocab)
    read(target, tokens)
    for _ in range(50):
        draft = random_draft(target, rng, int(rng.integers(0, 33)))
        target.verify(draft)
        path, own = random_path(draft, rng), int(rng.integers(0, vocab))
        target.commit(path, own)
        tokens += [*(draft.tokens[node] for node in path), own]
    return tokens


def prompt_of(seed: int, vocab: int) -> list[int]:
    """A prompt that repeats itself in part."""
    return [token % vocab for token in words(seed)]


class Stage:
    """A question, its plain answer, and every proposer that may draft that answer.

    used: the session they all draft for, one after the other.
    """

    def __init__(self, ground: Ground, prompt: Sequence[int], temperature: float) -> None:
        self.ground, seed = ground, len(prompt)
        self.request = ask(prompt, sampler(temperature, seed), LENGTH)
        self.plain = answer(ground.target(), self.request)
        self.request = replace(self.request, prediction=self._said_in_two_ways())
        self.vocab = ground.target().caps.vocab
        self._seed = seed

    def told(self, used: Session, proposer: Proposer) -> tuple[Told, bool]:
        """The answer, and whether it is the plain one to the last token."""
        fast = answer(used, self.request, proposer)
        return fast, self.ground.same(fast, self.plain, self.request)

    def proposers(self, caps: Caps) -> Iterator[tuple[str, Proposer]]:
        """Each of them with sessions of its own."""
        copy, ngrams = self._small(self.ground.copy), Fixed(NGram(), CHAIN)
        tree, trimmed = self._tree(self.ground.copy), self._tree(self.ground.trimmed)
        memory, recycling = self._memory(), self._taught()
        merged = Merged(NGramTree(2), memory, tree, recycling)
        yield "n-gram", ngrams
        yield "n-gram tree", Fixed(NGramTree(2), MOST)
        yield "small model", Fixed(copy, CHAIN)
        yield "model tree", Fixed(tree, TREE)
        yield "trimmed model", Fixed(self._small(self.ground.trimmed), CHAIN)
        yield "trimmed tree", Fixed(trimmed, TREE)
        yield "recycling", Fixed(recycling, TREE)
        yield "memory", Fixed(memory, TREE)
        yield "first of", Fixed(FirstOf(NGram(4), copy), CHAIN)
        yield "merged", Fixed(merged, MOST)
        yield "switching", Switching(Turns(ngrams, Fixed(merged, TREE), Fixed(copy, 3)), caps)
        yield "auto", self._auto("auto", memory)
        yield "auto, tree", self._auto("tree", memory)
        yield "auto, recycling", self._auto("recycling", memory)
        yield "auto, siblings", self._siblings()
        yield "chains", Chains(self.plain.tokens, MOST, self._seed, self.vocab)
        yield "trees", Trees(self.plain.tokens, MOST, self._seed, self.vocab)

    def proposer(self, name: str, caps: Caps) -> Proposer:
        return next(p for each, p in self.proposers(caps) if each == name)

    def _said_in_two_ways(self) -> list[int]:
        """The answer with some tokens wrong, and again with others wrong."""
        said, vocab = self.plain.tokens, self.ground.target().caps.vocab
        return [
            (token + 1) % vocab if n % 8 == wrong else token
            for wrong in (7, 3)
            for n, token in enumerate(said)
        ]

    def _small(self, make: Callable[[], Session]) -> SmallModel:
        return SmallModel(make(), self.vocab)

    def _tree(self, make: Callable[[], Session]) -> ModelTree:
        return ModelTree(make(), self.vocab)

    def _memory(self) -> Memory:
        said, rng = self.plain.tokens, np.random.default_rng(self._seed)
        other = rng.integers(0, self.vocab, 50).tolist()
        return Memory([*([*said[n : n + 3], *other] for n in range(LENGTH)), said])

    def _taught(self) -> Recycling:
        """One that has heard the answer before."""
        recycling = Recycling(keeps=True)
        answer(self.ground.target(), self.request, recycling)
        return recycling

    def _auto(self, name: str, memory: Memory) -> Auto:
        cost = CostCurve(FLAT)
        luck = Luck.of(cost, self._drafter(self.ground.copy), memory, keeps=True)
        answer(self.ground.target(), self.request, luck.recycler)
        sources = luck.sources(name, trees=True)
        assert luck.text in sources or name != "auto", "trees are on"
        return Auto(sources, cost)

    def _siblings(self) -> Auto:
        """Auto with nothing but a model that has its second thoughts verified too."""
        cost = CostCurve(FLAT)
        branching = Luck.of(cost, self._drafter(self.ground.copy)).branching
        assert branching is not None
        return Auto([branching], cost)

    def _drafter(self, make: Callable[[], Session]) -> Drafter:
        branching = Branching(make(), self.vocab)
        return Drafter(self._small(make), DraftCost(1e-3), self._tree(make), branching)


def check_every_proposer(ground: Ground, temperature: float, least_same: float = 1.0) -> None:
    """On a new session and on one that fifty rounds have worn, nobody changes a token.

    least_same: share of answers that must be the same without the excuse of a near tie.
    """
    runs, same, trees = dict[str, list[Told]](), list[bool](), set[str]()
    for seed in range(2):
        used = ground.target()
        vocab = used.caps.vocab
        prompt = fifty_rounds(used, seed) if seed else prompt_of(seed, vocab)
        stage = Stage(ground, prompt, temperature)
        for name, proposer in stage.proposers(used.caps):
            try:
                fast, equal = stage.told(used, proposer)
            except AssertionError as error:
                error.add_note(f"where {name} drafts, prompt {seed}")
                raise
            assert not seed or fast.reused == len(prompt) - 1, "the worn cache itself is on trial"
            runs.setdefault(name, []).append(fast)
            same.append(equal)
            if any(branches(fast)):
                trees.add(name)
            if isinstance(proposer, Trees):
                assert (proposer.widest, proposer.deepest_made) == (MOST, Trees.deepest)
    missing = {*SIBLINGS, "auto, tree", "auto, recycling", "auto, siblings"} - trees
    assert not missing, "these made no tree that branches"
    assert not trees & {"n-gram", "small model", "trimmed model", "first of", "chains"}
    never_vacuous(runs)
    assert sum(same) >= least_same * len(same)


def branches(told: Told) -> Iterator[bool]:
    """Of each round, whether two guesses stood in one place."""
    for round_ in told.rounds:
        parents = [guess.parent for guess in round_.guesses]
        yield len(set(parents)) < len(parents)


def check_trees(ground: Ground, name: str) -> None:
    """The claim of check_every_proposer() for one proposer of trees, on new sessions.

    A session must fail it that lays trees out wrongly.
    """
    for seed in range(2):
        used = ground.target()
        stage = Stage(ground, prompt_of(seed, used.caps.vocab), 0.8 * (seed % 2))
        told, _ = stage.told(used, stage.proposer(name, used.caps))
        assert any(branches(told)), "a trial of trees without a tree"


def check_one_that_rests(ground: Ground, temperature: float) -> None:
    """A model that is wrong nearly always is sent to rest midway; others go on drafting."""
    target = ground.target()
    request = ask(prompt_of(1, target.caps.vocab), sampler(temperature, 1), MANY + 40)
    plain = answer(ground.target(), request)
    request = with_prediction(request, plain.tokens)
    stranger = Fixed(SmallModel(ground.stranger(), target.caps.vocab), 2)
    alone = answer(target, request, stranger)
    assert ground.same(alone, plain, request)
    assert [note for note in alone.notes if "rests for this answer" in note]
    drafted = [bool(round_.guesses) for round_ in alone.rounds]
    assert all(drafted[1:MANY])
    assert not any(drafted[MANY + 1 :])
    assert len(drafted) > MANY + 1
    helped = answer(target, request, FirstOf(stranger, Fixed(NGram(2), 4)))
    assert ground.same(helped, plain, request)
    assert helped.accepted > 0
