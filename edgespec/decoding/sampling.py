"""From a row of scores to the distribution the target draws from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from edgespec.decoding.draft import Row, Support, Tokens
from edgespec.errors import BackendFailed, BadInput

_SMALL = 8192  # scores that may be sorted outright
_COLD = 1e-6  # below, rounding of the scores would be all that is drawn
_STRIDE = 64  # every such score is looked at to guess where the k-th best lies
_FEW, _HALVINGS = 1024, 24  # scores that are sorted outright; steps on the way there


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the target chooses a token. Temperature 0 is greedy; seed None takes a fresh one.

    Applied in this order: penalties and bias on the scores, temperature, top_k, top_p, min_p.
    Off: top_k 0, top_p 1, min_p 0, repeat_penalty 1, the other penalties 0.
    Penalties look at the last `penalty_window` tokens, accepted guesses included, so a guess
    that was turned down never counts.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    penalty_window: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("top_k", "penalty_window", "seed"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, int):
                raise BadInput(f"{name} is {value!r}; it must be a whole number.")
        _within("temperature", self.temperature, 0.0, 100.0)
        _within("top_k", self.top_k, 0, 2**31)
        _within("top_p", self.top_p, 0.0, 1.0, above=True)
        _within("min_p", self.min_p, 0.0, 1.0)
        _within("repeat_penalty", self.repeat_penalty, 0.0, 100.0, above=True)
        _within("presence_penalty", self.presence_penalty, -100.0, 100.0)
        _within("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        _within("penalty_window", self.penalty_window, 0, 2**31)
        if not isinstance(self.logit_bias, Mapping):
            raise BadInput(f"logit_bias is {self.logit_bias!r}; it must map token ids to numbers.")
        for token, bias in self.logit_bias.items():
            if not isinstance(token, Integral):
                raise BadInput(f"logit_bias has the key {token!r}; keys must be token ids.")
            _within(f"logit_bias of token {token}", bias, -1e9, 1e9)

    @property
    def greedy(self) -> bool:
        return self.temperature < _COLD

    @property
    def raw(self) -> bool:
        """Whether scores go to the choice as they come, without penalties or bias."""
        return not self.logit_bias and (
            not self.penalty_window
            or (
                self.repeat_penalty == 1
                and not self.presence_penalty
                and not self.frequency_penalty
            )
        )

    @property
    def window(self) -> int:
        """How many earlier tokens matter for the next choice."""
        return 0 if self.raw else self.penalty_window

    @property
    def filters(self) -> bool:
        """Whether any token is ever dropped."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0

    def shaped(self, row: Row, recent: Sequence[int]) -> Row:
        """The scores after penalties and bias; `recent` are the tokens before this place.

        Source of the repetition penalty: arXiv:1909.05858, §4.1.
        """
        if self.raw:
            return row
        row = row.copy()
        window = np.asarray(recent[-self.penalty_window :] if self.penalty_window else (), np.int64)
        if len(window):
            ids, counts = np.unique(window, return_counts=True)
            seen = row[ids]
            seen = np.where(seen > 0, seen / self.repeat_penalty, seen * self.repeat_penalty)
            row[ids] = seen - self.presence_penalty - counts * self.frequency_penalty
        for token, bias in self.logit_bias.items():
            if 0 <= token < len(row):
                row[token] += bias
        return row

    def tempered(self, row: Row) -> Row:
        """Scores relative to the best, in units of the temperature: 0 is the best token."""
        scaled: Row = row - row[best_token(row)]
        with np.errstate(over="ignore"):  # the lowest scores may become -inf
            scaled *= np.float32(1.0 / self.temperature)
        return scaled

    def cutoff(self, tempered: Row) -> float:
        """The score below which tokens are dropped; equals of the last survivor stay."""
        pool, cut = tempered, -math.inf
        if 0 < self.top_k < len(tempered):
            cut = kth_best(tempered, self.top_k)
            pool = tempered[tempered >= cut]
        if self.top_p < 1:
            cut = max(cut, _nucleus_edge(pool, self.top_p))
        return max(cut, math.log(self.min_p)) if self.min_p > 0 else cut

    def support(self, tempered: Row) -> Support:
        """The tokens that survive top-k, top-p and min-p, with their probabilities."""
        ids = np.flatnonzero(tempered >= self.cutoff(tempered)).astype(np.int32)
        weight = np.exp(tempered[ids].astype(np.float64))
        return Support(ids, weight / weight.sum())


def kth_best(z: Row, k: int) -> float:
    """The k-th highest score, looking closely only at scores that are likely among the k."""
    near = z
    if len(z) > _SMALL:
        sample = z[::_STRIDE]
        rank = len(sample) - 1 - min(len(sample) - 1, 4 + 4 * k // _STRIDE)
        near = z[z >= np.partition(sample, rank)[rank]]
        near = near if len(near) >= k else z
    return float(np.partition(near, len(near) - k)[len(near) - k])


def best_tokens(row: Row, k: int) -> Tokens:
    """The k highest-scoring tokens, best first; of equals the lower id; int32 [min(k, vocab)]."""
    k = min(k, len(row))
    ids = np.flatnonzero(row >= kth_best(row, k))
    return ids[np.argsort(-row[ids], kind="stable")[:k]].astype(np.int32)


def _nucleus_edge(z: Row, top_p: float) -> float:
    """The lowest score of the smallest set of best tokens that holds `top_p` of the mass.

    Halves the range in which the edge lies until few scores are left in it, and sorts only those.
    """
    p = np.exp(z)
    total = float(p.sum(dtype=np.float64))
    need = top_p * total
    # all scores below this together weigh less than what top_p leaves out
    low, high = math.log((1.0 - top_p) * total / len(z)), 0.0
    near = z >= np.float32(low)
    z, p = z[near], p[near]
    for _ in range(_HALVINGS):
        if np.count_nonzero((z >= low) & (z <= high)) <= _FEW:
            break
        middle = 0.5 * (low + high)
        if float(p[z > middle].sum(dtype=np.float64)) < need:
            high = middle
        else:
            low = middle
    above = float(p[z > high].sum(dtype=np.float64))
    inside = np.sort(z[(z >= low) & (z <= high)])[::-1]
    mass = above + np.cumsum(np.exp(inside, dtype=np.float64))
    if not len(mass) or mass[-1] < need:
        return float(z.min())  # top_p so near 1 that rounding hides the last token
    return float(inside[np.searchsorted(mass, need)])


def best_token(row: Row) -> int:
    """The token with the highest score, the first among equals.

    Raises: BackendFailed where that score is no finite number.
    """
    best = int(row.argmax())
    if not np.isfinite(row[best]):
        raise BackendFailed(
            f"the model returned {row[best]} as its best score; its file may be damaged, or its"
            " number format unsupported here. Try another quantisation."
        )
    return best


def _within(name: str, value: float, low: float, high: float, *, above: bool = False) -> None:
    if not (low < value if above else low <= value) or not value <= high:
        edge = "above" if above else "from"
        raise BadInput(f"{name} is {value:g}; it must be {edge} {low:g} and at most {high:g}.")
