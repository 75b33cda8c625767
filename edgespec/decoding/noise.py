"""Randomness that depends on where a token stands, and on nothing else.

Coupled choice draws every token as argmax(log p + G). The Gumbel noise G is a pure function of
(seed, reply key, branch, index in the reply, target token id), so the answer for a seed is the
same whichever drafter runs, and a drafter that applies the same noise to its own q guesses well.
Sources: coupling without communication, arXiv:2408.07978; list version, arXiv:2506.05632.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import Tokens

Words = NDArray[np.uint32]
_ONE_BELOW = float(np.nextafter(1.0, 0.0))
_SLICE = 16_384  # ids hashed at a time: the working set stays in the L2 cache


def reply_key(prompt: Tokens) -> int:
    """Digest of the prompt ids at the reply's start, 64 bits.

    Absolute positions would not do: they repeat under one seed when a later prompt is shorter.
    """
    data = np.ascontiguousarray(prompt, dtype="<i4").tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True)
class Noise:
    """Counter-based noise of one reply; `branch` tells regenerated answers apart."""

    seed: int
    reply: int
    branch: int = 0

    def gumbel(self, index: int, ids: Tokens) -> NDArray[np.float64]:
        """Standard Gumbel noise for each token id at one index, float64 [len(ids)]."""
        return _gumbel_of(_words(self._keys("choose", index), ids))

    def argmax(self, index: int, scores: NDArray[np.float32]) -> int:
        """argmax(scores + G) over a whole row, float32 [vocab], without making all of G.

        The highest G are found by their hash alone; any other token must score close to the
        best of these, so noise is computed for a few hundred ids only.
        """
        vocab = len(scores)
        keys = self._keys("choose", index)
        high = _all_high_words(keys, vocab)
        cut = min(0xFFFFFFFF, int(2.0**32 * min(1.0, 512 / vocab)))
        loud = np.flatnonzero(high <= cut)
        candidates = np.append(loud, scores.argmax()).astype(np.int32)
        best = _best(keys, scores, candidates)
        # every token outside `loud` has noise below this
        bound = float(_gumbel_of(np.array([(cut + 1) / 2.0**32]))[0])
        rest = np.flatnonzero(scores >= best[0] - bound).astype(np.int32)
        return max(best, _best(keys, scores, rest), key=lambda b: (b[0], -b[1]))[1]

    def uniform(self, stream: str, *counters: int) -> float:
        """One number in (0, 1) from a stream of its own, independent of the Gumbel noise."""
        a, b, _, _ = self._keys(stream, *counters)
        return (float(a) * 2.0**32 + float(b) + 0.5) / 2.0**64

    def _keys(self, stream: str, *counters: int) -> tuple[int, int, int, int]:
        return _digest(self.seed, self.reply, self.branch, stream, counters)


@lru_cache(maxsize=4096)
def _digest(
    seed: int, reply: int, branch: int, stream: str, counters: tuple[int, ...]
) -> tuple[int, int, int, int]:
    text = f"{seed},{reply},{branch},{stream},{counters}".encode()
    words = np.frombuffer(hashlib.blake2b(text, digest_size=16).digest(), dtype="<u4")
    return int(words[0]), int(words[1]), int(words[2]), int(words[3])


def _mix(x: Words) -> None:
    """An integer hash with full avalanche, in place (constants: Wellons, lowbias32)."""
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)


def _hash(ids: Words, first: int, second: int) -> Words:
    """Two keyed rounds: one alone would give two keys the same words in another order."""
    x = ids ^ np.uint32(first)
    _mix(x)
    x += np.uint32(second)
    _mix(x)
    return x


def _all_high_words(keys: tuple[int, int, int, int], vocab: int) -> Words:
    out = np.empty(vocab, dtype=np.uint32)
    for start in range(0, vocab, _SLICE):
        stop = min(start + _SLICE, vocab)
        out[start:stop] = _hash(np.arange(start, stop, dtype=np.uint32), keys[0], keys[1])
    return out


def _words(keys: tuple[int, int, int, int], ids: Tokens) -> NDArray[np.float64]:
    """A uniform number in (0, 1) for each id, small where the noise is large."""
    plain = np.ascontiguousarray(ids).astype(np.uint32)
    high = _hash(plain, keys[0], keys[1])
    low = _hash(plain, keys[2], keys[3])
    return np.asarray((high * 2.0**32 + low + 0.5) / 2.0**64, dtype=np.float64)


def _gumbel_of(v: NDArray[np.float64]) -> NDArray[np.float64]:
    # v is the small side of the uniform number, so that large noise keeps all its digits
    return np.asarray(-np.log(-np.log1p(-np.minimum(v, _ONE_BELOW))))


def _best(
    keys: tuple[int, int, int, int], scores: NDArray[np.float32], ids: Tokens
) -> tuple[float, int]:
    if not len(ids):
        return -np.inf, -1
    total = scores[ids].astype(np.float64) + _gumbel_of(_words(keys, ids))
    at = int(total.argmax())
    return float(total[at]), int(ids[at])
