"""The acceptance rules: what the target says at a node, and which guesses survive that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import ROOT, Draft, Row, Support, Tokens
from edgespec.decoding.noise import Noise
from edgespec.decoding.sampling import Sampling, best_token, kth_best
from edgespec.decoding.session import Scores

_MANY = 4096  # survivors from which noise is no longer made for each
_POOL, _HOPELESS = 256, 30.0  # tokens that may be guesses beside the first; scores below the best


@dataclass(frozen=True, slots=True)
class Accepted:
    """A path of draft nodes from the root, then one token of the target's own.

    cut_at: the node whose token became the next token, where an end token or a stop sequence
    shortened the path; None otherwise.
    """

    path: tuple[int, ...]
    next_token: int
    cut_at: int | None = None

    def tokens(self, draft: Draft) -> list[int]:
        """What this round commits, in order."""
        return [*(draft.tokens[node] for node in self.path), self.next_token]

    def keep(self, n: int, draft: Draft) -> Accepted:
        """Only the first `n` tokens; the last of them becomes the next token."""
        if n > len(self.path):
            return self
        last = self.path[n - 1]
        return Accepted(self.path[: n - 1], draft.tokens[last], cut_at=last)


@dataclass(frozen=True, slots=True)
class Guessed:
    """A drafter's choice. confidence: its share of the drafter's unfiltered distribution.

    q: what it was drawn from, None where it was not drawn at random.
    """

    token: int
    confidence: float
    q: Support | None = None


class Rule(Protocol):
    """How the target decides at one node, and how a drafter should guess to be agreed with."""

    @property
    def trees(self) -> bool:
        """Whether it can judge drafts with siblings."""
        ...

    @property
    def may_drop(self) -> bool:
        """Whether a guess may be left out for how it looks; rejection sampling would be biased."""
        ...

    def decide(self, place: Place) -> tuple[int | None, int]:
        """The child that is accepted, or None, and the token that the target chose."""
        ...

    def guess(self, row: Row, recent: Sequence[int], index: int) -> Guessed:
        """A drafter's token for reply index `index` from its own scores."""
        ...

    def guesses(self, row: Row, recent: Sequence[int], index: int, most: int) -> list[Guessed]:
        """Different tokens for one place, the likeliest first; one where there are no trees."""
        ...

    def shares(self, ids: Tokens, scores: NDArray[np.float64], index: int) -> NDArray[np.float64]:
        """How likely each of these tokens is to be chosen at reply index `index` if it is one of
        them, from a drafter's scores of them; float64 [len(ids)]."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the walk stands: a node of a draft, the tokens before it, its index in the reply."""

    draft: Draft
    scores: Scores
    node: int
    recent: Sequence[int]
    index: int


def accept(draft: Draft, scores: Scores, rule: Rule, recent: Sequence[int], index: int) -> Accepted:
    """Walk down the draft for as long as the target agrees, then let the target speak.

    recent: the committed tokens that penalties look at. index: place of the next token in the
    reply.
    """
    node = ROOT
    path: list[int] = []
    history = list(recent)
    while True:
        child, token = rule.decide(Place(draft, scores, node, history, index + len(path)))
        if child is None:
            return Accepted(tuple(path), token)
        node = child
        path.append(child)
        history.append(token)


@dataclass(frozen=True, slots=True)
class Coupled:
    """The target chooses argmax(log p + G); a guess is accepted when it is that token.

    Every token is an exact draw from p, since each index has fresh noise. The drafter applies
    the same noise to its own q. Source: arXiv:2408.07978.
    """

    sampling: Sampling
    noise: Noise
    trees: bool = True
    may_drop: bool = True

    def decide(self, place: Place) -> tuple[int | None, int]:
        if self.sampling.greedy and self.sampling.raw:
            token = place.scores.top(place.node)
        else:
            token = self._choose(place.scores.logits(place.node), place.recent, place.index)
        for child in place.draft.children(place.node):
            if place.draft.tokens[child] == token:
                return child, token
        return None, token

    def guess(self, row: Row, recent: Sequence[int], index: int) -> Guessed:
        token = self._choose(row, recent, index)
        return Guessed(token, _share(row, token))

    def guesses(self, row: Row, recent: Sequence[int], index: int, most: int) -> list[Guessed]:
        """The best of log q + G among the tokens of the highest scores."""
        row = self.sampling.shaped(row, recent)
        cut = max(kth_best(row, min(_POOL, len(row))), row[best_token(row)] - _HOPELESS)
        if not self.sampling.greedy and self.sampling.filters:
            tempered = self.sampling.tempered(row)
            kept = tempered >= self.sampling.cutoff(tempered)
            ids = np.flatnonzero(kept & (row >= cut)).astype(np.int32)
        else:
            ids = np.flatnonzero(row >= cut).astype(np.int32)
        share = self.shares(ids, row[ids].astype(np.float64), index)
        order = np.argsort(-share, kind="stable")[:most]
        return [Guessed(int(ids[at]), float(share[at])) for at in order]

    def shares(self, ids: Tokens, scores: NDArray[np.float64], index: int) -> NDArray[np.float64]:
        """Softmax of scores with their noise; a drafter is taken to be as unsure of them as of
        those without, so that the share of a greedy guess is its own."""
        if not self.sampling.greedy:
            scores = scores + self.sampling.temperature * self.noise.gumbel(index, ids)
        return _softmax(scores)

    def _choose(self, row: Row, recent: Sequence[int], index: int) -> int:
        shaped = self.sampling.shaped(row, recent)
        if self.sampling.greedy:
            return best_token(shaped)
        tempered = self.sampling.tempered(shaped)
        if not self.sampling.filters:
            return self.noise.argmax(index, tempered)
        cut = self.sampling.cutoff(tempered)
        ids = np.flatnonzero(tempered >= cut).astype(np.int32)
        if len(ids) > _MANY:
            masked = np.where(tempered >= cut, tempered, np.float32(-np.inf))
            return self.noise.argmax(index, masked)
        noisy = tempered[ids] + self.noise.gumbel(index, ids)
        return int(ids[noisy.argmax()])


@dataclass(frozen=True, slots=True)
class Rejection:
    """Accept a guess x with min(1, p(x)/q(x)); once one is turned down, draw from what is left.

    Chains only. The drafter's draws, the coins and the rest have streams of their own, keyed
    by round as well: reusing them in a later round would bias the text.
    Source: Leviathan 2023, arXiv:2211.17192, alg. 1; Chen 2023, arXiv:2302.01318.
    """

    sampling: Sampling
    noise: Noise
    round: int = 0
    trees: bool = False
    may_drop: bool = False

    def decide(self, place: Place) -> tuple[int | None, int]:
        p = self._distribution(place.scores.logits(place.node), place.recent)
        children = place.draft.children(place.node)
        if not children:
            return None, self._draw(p, "own", place.index)
        (child,) = children
        token, q = place.draft.tokens[child], place.draft.q[child]
        q_token = 1.0 if q is None else q.of(token)
        coin = self.noise.uniform("coin", self.round, place.index)
        if coin * q_token < p.of(token):
            return child, token
        return None, self._draw(_left_over(p, token, q), "rest", place.index)

    def guess(self, row: Row, recent: Sequence[int], index: int) -> Guessed:
        q = self._distribution(row, recent)
        token = self._draw(q, "draft", index)
        return Guessed(token, _share(row, token), q)

    def guesses(self, row: Row, recent: Sequence[int], index: int, most: int) -> list[Guessed]:
        return [self.guess(row, recent, index)]

    def shares(self, ids: Tokens, scores: NDArray[np.float64], index: int) -> NDArray[np.float64]:
        return _softmax(scores)

    def _distribution(self, row: Row, recent: Sequence[int]) -> Support:
        shaped = self.sampling.shaped(row, recent)
        if self.sampling.greedy:
            return Support(np.array([best_token(shaped)], dtype=np.int32), np.ones(1))
        return self.sampling.support(self.sampling.tempered(shaped))

    def _draw(self, p: Support, stream: str, index: int) -> int:
        cumulative = np.cumsum(p.p)
        u = self.noise.uniform(stream, self.round, index) * cumulative[-1]
        at = int(np.searchsorted(cumulative, u, side="right"))
        return int(p.ids[min(at, len(p.ids) - 1)])


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def _share(row: Row, token: int) -> float:
    """Softmax of a row at one token, at temperature 1."""
    weights = np.exp(row - row.max())  # a bias may have chosen a token far below the best
    return float(weights[token]) / float(weights.sum(dtype=np.float64))


def _left_over(p: Support, token: int, q: Support | None) -> Support:
    """norm(max(p - q, 0)): the target's distribution once `token` has been turned down."""
    taken = np.zeros(len(p.ids))
    if q is None:
        taken[p.ids == token] = 1.0
    else:
        at = np.searchsorted(q.ids, p.ids)
        at[at == len(q.ids)] = 0
        taken = np.where(q.ids[at] == p.ids, q.p[at], 0.0)
    rest = np.maximum(p.p - taken, 0.0)
    total = rest.sum()
    # p = q up to rounding: a rejection then has probability 0 and p itself is the answer
    return Support(p.ids, rest / total) if total > 0 else p
