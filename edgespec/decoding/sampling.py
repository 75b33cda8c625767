"""From a row of scores to the distribution the target draws from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Row, Support
from edgespec.errors import BackendFailed, BadInput

_NEAR = 12.0  # nats below the best score in which the survivors are looked for first


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
        _within("temperature", self.temperature, 0.0, 100.0)
        _within("top_k", self.top_k, 0, 2**31)
        _within("top_p", self.top_p, 0.0, 1.0, above=True)
        _within("min_p", self.min_p, 0.0, 1.0)
        _within("repeat_penalty", self.repeat_penalty, 0.0, 100.0, above=True)
        _within("presence_penalty", self.presence_penalty, -100.0, 100.0)
        _within("frequency_penalty", self.frequency_penalty, -100.0, 100.0)
        _within("penalty_window", self.penalty_window, 0, 2**31)
        for token, bias in self.logit_bias.items():
            _within(f"logit_bias of token {token}", bias, -1e9, 1e9)

    @property
    def greedy(self) -> bool:
        return self.temperature == 0

    @property
    def raw(self) -> bool:
        """Whether scores go to the choice as they come, without penalties or bias."""
        return not self.logit_bias and (
            not self.penalty_window
            or (self.repeat_penalty == 1 and not self.presence_penalty and not self.frequency_penalty)
        )

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
        best = _finite_best(row)
        scaled: Row = row - best
        scaled *= np.float32(1.0 / self.temperature)
        return scaled

    def support(self, tempered: Row) -> Support:
        """The tokens that survive top-k, top-p and min-p, with their probabilities."""
        ids, z = self._candidates(tempered)
        order = np.argsort(-z, kind="stable")
        if 0 < self.top_k < len(order):
            order = order[: self.top_k]
        p = np.exp(z[order].astype(np.float64))
        if self.top_p < 1:
            whole = p.sum() if self.top_k else _mass(tempered)
            keep = int(np.searchsorted(np.cumsum(p), self.top_p * whole)) + 1
            order, p = order[:keep], p[:keep]
        if self.min_p > 0:
            order = order[p >= self.min_p * p[0]]
        ids = np.sort(ids[order])
        weight = np.exp(tempered[ids].astype(np.float64))
        return Support(ids, weight / weight.sum())

    def _candidates(self, tempered: Row) -> tuple[NDArray[np.int32], Row]:
        """A set that holds every survivor and seldom much more: nothing of vocabulary size is
        sorted unless the distribution is flat."""
        if not self.filters:
            near = np.arange(len(tempered), dtype=np.int32)
            return near, tempered
        depth = _NEAR
        if self.min_p > 0 and self.top_p == 1:  # else top-p needs the mass that min-p would hide
            depth = min(_NEAR, 1e-3 - math.log(self.min_p))
        near = np.flatnonzero(tempered >= -depth).astype(np.int32)
        if depth < _NEAR or self._covers(tempered, near):
            return self._top_of(near, tempered)
        return self._top_of(np.arange(len(tempered), dtype=np.int32), tempered)

    def _covers(self, tempered: Row, near: NDArray[np.int32]) -> bool:
        if self.top_k:
            return len(near) >= self.top_k
        return float(np.exp(tempered[near], dtype=np.float64).sum()) >= self.top_p * _mass(tempered)

    def _top_of(self, ids: NDArray[np.int32], tempered: Row) -> tuple[NDArray[np.int32], Row]:
        z = tempered[ids]
        if 0 < self.top_k < len(ids):
            kth = np.partition(z, len(z) - self.top_k)[len(z) - self.top_k]
            keep = z >= kth  # ties at the edge stay, so that the stable order decides
            return ids[keep], z[keep]
        return ids, z


def _mass(tempered: Row) -> float:
    return float(np.exp(tempered).sum(dtype=np.float64))


def _finite_best(row: Row) -> np.float32:
    best: np.float32 = row.max()
    if not np.isfinite(best):
        raise BackendFailed(
            f"the model returned {best} as its best score; its file may be damaged, or its number"
            " format unsupported here. Try another quantisation."
        )
    return best


def _within(name: str, value: float, low: float, high: float, *, above: bool = False) -> None:
    if not (low < value if above else low <= value) or not value <= high:
        edge = "above" if above else "from"
        raise BadInput(f"{name} is {value:g}; it must be {edge} {low:g} and at most {high:g}.")
