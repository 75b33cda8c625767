"""Guesses by what followed the last time the text went like this.

Sources: prompt lookup (the idea; fixed n there), SAM decoding arXiv:2411.10666 (longest match of
any length). The index here is the hash chain of a Lempel-Ziv match finder: constant work per
token, and a bounded number of places looked at per round however long the text.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import EMPTY, Draft, Tokens
from edgespec.decoding.history import TokenHistory
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request

NOT_A_TOKEN = -1  # stands between the prediction and the prompt, and matches nothing
LEVELS = (1, 2, 4, 8, 16, 32)  # lengths of the suffixes that are looked up
PLACES = 64  # most recent places that are compared
LONGEST = 64  # a match is not measured beyond this


class NGram:
    """Repeats what followed the longest earlier match of the text's end.

    Looks in the prompt, the answer so far and a given prediction. Places are ranked by match
    length, then by how often their next token occurs among the best, then by recency.
    shortest: matches below this are no reason to guess.
    """

    name, note = "ngram", ""

    def __init__(self, shortest: int = 1) -> None:
        self._shortest = shortest
        self._index = _SuffixIndex(())
        self._prediction: Sequence[int] = ()
        self._seen = 0
        self.match_length = 0

    @property
    def plan(self) -> str:
        if not self.match_length:
            return "n-gram: nothing like this came before"
        if self.match_length == 1:
            return "n-gram: the last token came before"
        return f"n-gram: the last {self.match_length} tokens came before"

    def begin(self, request: Request) -> None:
        self._prediction = request.prediction
        self._seen, self.match_length = -1, 0

    def propose(self, state: State, budget: Budget) -> Draft:
        self._read(state.tokens)
        place, self.match_length = self._index.best_place()
        guesses: list[int] = []
        if place is not None and self.match_length >= self._shortest:
            lengths: list[float] = []
            while len(guesses) < budget.nodes and budget.another(lengths):
                token = self._index.token_after(place, guesses)
                if token == NOT_A_TOKEN:
                    break
                guesses.append(token)
                lengths.append(float(self.match_length + len(lengths)))
        return Draft.chain(guesses, self.name) if guesses else EMPTY

    def observe(self, outcome: Outcome) -> None:
        pass

    def end(self) -> None:
        pass

    def _read(self, tokens: Tokens) -> None:
        if self._seen < 0:
            start = [*self._prediction, NOT_A_TOKEN] if len(self._prediction) else []
            self._index = _SuffixIndex(np.concatenate([np.asarray(start, np.int32), tokens]))
        else:
            self._index.extend(tokens[self._seen :].tolist())
        self._seen = len(tokens)


class _SuffixIndex:
    """For each level, chains of places where text of that length hashed alike, latest first."""

    def __init__(self, tokens: Tokens | Sequence[int]) -> None:
        self._text = TokenHistory(tokens)
        self._bits = max(12, (2 * len(self._text) + 4096).bit_length())
        self._heads: list[array[int]] = []
        self._links: list[array[int]] = []
        self._hashes: list[array[int]] = []
        self._read_all()

    def _read_all(self) -> None:
        """Index the whole text at once: what extend() does token by token, vectorised."""
        text = self._text.array
        whole = _mix_first(text)
        for level, length in enumerate(LEVELS):
            if level:
                whole = _join_all(whole, length // 2)
            heads, links = _chain_all(_bucket_all(whole, self._bits), length - 1, self._bits)
            self._heads.append(array("i", heads.tobytes()))
            self._links.append(array("i", links.tobytes()))
            self._hashes.append(array("q", whole.tobytes()))

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens; constant work for each."""
        self._text.extend(tokens)
        for at, token in enumerate(tokens, len(self._text) - len(tokens)):
            value = (token + 1) * _FIRST & _MASK
            for level, length in enumerate(LEVELS):
                hashes, links, heads = self._hashes[level], self._links[level], self._heads[level]
                if level:
                    half = length // 2
                    before = self._hashes[level - 1][at - half] if at >= half else 0
                    value = _join(before, value)
                hashes.append(value)
                if at >= length - 1:
                    bucket = value >> (_WIDTH - self._bits)
                    links.append(heads[bucket])
                    heads[bucket] = at
                else:
                    links.append(-1)

    def best_place(self) -> tuple[int | None, int]:
        """Index of the last token of the best match, and its length; (None, 0) without one."""
        end = len(self._text) - 1
        for level in range(len(LEVELS) - 1, -1, -1):
            if end < LEVELS[level]:
                continue
            places = self._places(level, end)
            if not len(places):
                continue
            lengths = self._match_lengths(places, end)
            longest = int(lengths.max())
            if longest >= LEVELS[level]:
                return self._most_common(places[lengths == longest]), longest
        return None, 0

    def token_after(self, place: int, guesses: Sequence[int]) -> int:
        """What comes `len(guesses)` after the match; behind the text's end, the guesses go on."""
        at, n = place + 1 + len(guesses), len(self._text)
        return int(self._text.array[at]) if at < n else guesses[at - n]

    def _places(self, level: int, end: int) -> NDArray[np.int64]:
        """The most recent earlier places in the chain of the text's last token."""
        links = self._links[level]
        places: list[int] = []
        at = links[end]
        while at >= 0 and len(places) < PLACES:
            places.append(at)
            at = links[at]
        return np.array(places, dtype=np.int64)

    def _match_lengths(self, places: NDArray[np.int64], end: int) -> NDArray[np.int64]:
        text = self._text.array
        reach = min(LONGEST, end)
        back = np.arange(reach)
        at = places[:, None] - back
        same = (text[at] == text[end - back]) & (at >= 0)
        return np.where(same.all(axis=1), reach, same.argmin(axis=1))

    def _most_common(self, places: NDArray[np.int64]) -> int:
        """Of equally long matches the one whose next token is the most common, then the latest."""
        following = self._text.array[places + 1].tolist()
        counts = Counter(following)
        best = max(counts.values())
        return next(
            int(p) for p, token in zip(places, following, strict=True) if counts[token] == best
        )


# The hash of a text of length 2n joins those of its halves, so each level costs one step.
_WIDTH = 62  # bits, so that a value fits a signed 64-bit array
_MASK = (1 << _WIDTH) - 1
_FIRST = 0x1F83D9ABFB41BD6B & _MASK | 1
_JOIN = 0x2545F4914F6CDD1D & _MASK | 1


def _join(before: int, value: int) -> int:
    mixed = (before ^ (before >> 29)) * _JOIN + value & _MASK
    return (mixed ^ (mixed >> 31)) * _FIRST & _MASK


def _mix_first(text: Tokens) -> NDArray[np.uint64]:
    return (text.astype(np.int64) + 1).astype(np.uint64) * np.uint64(_FIRST) & np.uint64(_MASK)


def _join_all(whole: NDArray[np.uint64], half: int) -> NDArray[np.uint64]:
    before = np.zeros_like(whole)
    before[half:] = whole[: len(whole) - half] if half < len(whole) else whole[:0]
    mixed = (before ^ (before >> np.uint64(29))) * np.uint64(_JOIN) + whole & np.uint64(_MASK)
    return (mixed ^ (mixed >> np.uint64(31))) * np.uint64(_FIRST) & np.uint64(_MASK)


def _bucket_all(whole: NDArray[np.uint64], bits: int) -> NDArray[np.int64]:
    return (whole >> np.uint64(_WIDTH - bits)).astype(np.int64)


def _chain_all(
    buckets: NDArray[np.int64], first: int, bits: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Latest place of each bucket, and for each place the one before it in the same bucket."""
    heads = np.full(1 << bits, -1, dtype=np.int32)
    links = np.full(len(buckets), -1, dtype=np.int32)
    if len(buckets) > first:
        order = np.argsort(buckets[first:], kind="stable") + first
        same = buckets[order[1:]] == buckets[order[:-1]]
        links[order[1:][same]] = order[:-1][same]
        heads[buckets[first:]] = np.arange(first, len(buckets))  # the last write stays
    return heads, links
