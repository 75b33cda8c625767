"""The slow and plain way to do what decoding does cleverly, and a test of whole laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from edgespec.decoding.draft import Row
from edgespec.decoding.sampling import Sampling

Outcome = tuple[int, ...]
Law = dict[Outcome, float]
Probabilities = NDArray[np.float64]


@dataclass(frozen=True)
class Filters:
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def lowest(self, z: Row) -> float:
        """Lowest score that survives: sort everything, top-k, then top-p of that, then min-p."""
        ranked = np.sort(z.astype(np.float64))[::-1]
        if 0 < self.top_k < len(ranked):
            ranked = ranked[ranked >= ranked[self.top_k - 1]]
        if self.top_p < 1:
            mass = np.cumsum(np.exp(ranked))
            ranked = ranked[ranked >= ranked[np.searchsorted(mass, self.top_p * mass[-1])]]
        if self.min_p > 0:
            ranked = ranked[ranked >= np.float32(math.log(self.min_p))]
        return float(ranked[-1])


def penalised(row: Row, recent: Sequence[int], sampling: Sampling) -> Probabilities:
    """Penalties and bias token by token."""
    window = list(recent)[-sampling.penalty_window :] if sampling.penalty_window else []
    out = row.astype(np.float64)
    for token in set(window):
        factor = sampling.repeat_penalty
        out[token] = out[token] / factor if out[token] > 0 else out[token] * factor
        out[token] -= sampling.presence_penalty + window.count(token) * sampling.frequency_penalty
    for token, bias in sampling.logit_bias.items():
        out[token] += bias
    return out


def distribution(row: Row, recent: Sequence[int], sampling: Sampling) -> Probabilities:
    """p over the whole vocabulary, float64 [vocab]."""
    z = penalised(row, recent, sampling)
    z = (z - z.max()) / sampling.temperature
    filters = Filters(sampling.top_k, sampling.top_p, sampling.min_p)
    p = np.where(z >= filters.lowest(z.astype(np.float32)) - 1e-6, np.exp(z), 0.0)
    return np.asarray(p / p.sum())


def law(p_after: Callable[[Sequence[int]], Probabilities], prompt: Sequence[int], n: int) -> Law:
    """Probability of every first `n` tokens of the answer, by the chain rule."""
    out: Law = {(): 1.0}
    for _ in range(n):
        out = {
            (*tokens, token): weight * float(p)
            for tokens, weight in out.items()
            for token, p in enumerate(p_after([*prompt, *tokens]))
            if p > 0
        }
    return out


def chi_square(seen: Mapping[Outcome, int], exact: Mapping[Outcome, float]) -> float:
    """p-value of what was seen under the exact law; 0 if something impossible was seen.

    Outcomes expected less than five times are counted together.
    """
    if not seen.keys() <= exact.keys():
        return 0.0
    n = sum(seen.values())
    cells = [(seen.get(outcome, 0), p * n) for outcome, p in exact.items()]
    common = [cell for cell in cells if cell[1] >= 5]
    rare = [cell for cell in cells if cell[1] < 5]
    pooled = (sum(s for s, _ in rare), sum(e for _, e in rare))
    if pooled[1] >= 5:
        common.append(pooled)
    statistic = sum((s - e) ** 2 / e for s, e in common)
    return float(stats.chi2.sf(statistic, len(common) - 1))
