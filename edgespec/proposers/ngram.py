"""Guesses by what followed the last time the text went like this.

Sources: prompt lookup (the idea; fixed n there), SAM decoding arXiv:2411.10666 (longest match of
any length). The index here is the hash chain of a Lempel-Ziv match finder: constant work per
token, and a bounded number of places looked at per round however long the text.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import EMPTY, Draft, Tokens
from edgespec.decoding.history import TokenHistory
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request

NOT_A_TOKEN = -1  # stands between the prediction and the prompt; nothing below 0 is guessed
LEVELS = (1, 2, 4, 8, 16, 32)  # lengths of the suffixes that are looked up
PLACES = 64  # most recent places that are compared
LONGEST = 64  # a match is not measured beyond this
SHORTEST_FIXED = 2  # match of an n-gram that guesses whether it pays or not
NEAR = 24  # tokens that a copy may skip and still be the same copy
FOLLOWED = 2  # length from which a match says where a copy stands


@dataclass(frozen=True, slots=True)
class Match:
    """An earlier place that ends like the text. length: tokens alike; 0 = there is none.

    places: how many match as well as this one; agreeing: how many of them have the same next
    token. near: whether it goes on where the text was last seen to repeat an earlier part.
    """

    place: int = -1
    length: int = 0
    places: int = 0
    agreeing: int = 0
    near: bool = False

    @property
    def contested(self) -> bool:
        """Whether equally good places tell different stories."""
        return self.agreeing < self.places

    @property
    def confirmed(self) -> bool:
        """Whether several places tell the same story."""
        return self.agreeing == self.places > 1


class NGram:
    """Repeats what followed the longest earlier match of the text's end.

    Looks in the prompt, the answer so far and a given prediction. Of equally long matches the one
    counts that goes on where the text was repeating before; then the one whose next token is the
    most common; then the latest. shortest: matches below this are no reason to guess.
    """

    name, note = "ngram", ""

    def __init__(self, shortest: int = 1) -> None:
        self._shortest = shortest
        self._index = SuffixIndex(())
        self._prediction: Sequence[int] = ()
        self._seen, self._track = 0, -1
        self.match = Match()

    @property
    def plan(self) -> str:
        if not self.match.length:
            return "n-gram: nothing like this came before"
        if self.match.length == 1:
            return "n-gram: the last token came before"
        return f"n-gram: the last {self.match.length} tokens came before"

    def begin(self, request: Request) -> None:
        self._prediction = request.prediction
        self._seen, self._track, self.match = -1, -1, Match()

    def propose(self, state: State, budget: Budget) -> Draft:
        self._read(state.tokens)
        self.match = match = self._index.best_match(self._track)
        if match.length >= FOLLOWED:
            self._track = match.place
        if match.length < self._shortest:
            return EMPTY
        guesses: list[int] = []
        lengths: list[float] = []
        for token in self._index.what_follows(match.place, budget.nodes):
            if not budget.another(lengths):
                break
            guesses.append(token)
            lengths.append(float(match.length + len(lengths)))
        return Draft.chain(guesses, self.name) if guesses else EMPTY

    def follow(self, guesses: Sequence[int], most: int) -> tuple[Match, list[int]]:
        """What would come behind the text of the latest propose() and these guesses."""
        self._index.extend(guesses)
        match = self._index.best_match(self._track)
        follows = match.length >= self._shortest
        tail = self._index.what_follows(match.place, most) if follows else []
        self._index.retract(len(guesses))
        return match, tail

    def observe(self, outcome: Outcome) -> None:
        pass

    def end(self) -> None:
        pass

    def _read(self, tokens: Tokens) -> None:
        if self._seen < 0:
            start = [*self._prediction, NOT_A_TOKEN] if len(self._prediction) else []
            self._index = SuffixIndex(np.concatenate([np.asarray(start, np.int32), tokens]))
        else:
            self._index.extend(tokens[self._seen :].tolist())
        self._seen = len(tokens)


class SuffixIndex:
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

    def retract(self, n: int) -> None:
        """Take back the latest `n` tokens."""
        for _ in range(n):
            for level in range(len(LEVELS)):
                link, value = self._links[level].pop(), self._hashes[level].pop()
                if len(self._links[level]) >= LEVELS[level] - 1:
                    self._heads[level][value >> (_WIDTH - self._bits)] = link
        self._text.truncate(len(self._text) - n)

    def best_match(self, track: int) -> Match:
        """The longest match of the text's end. track: place where an earlier match ended, or -1."""
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
                return self._likeliest(places[lengths == longest].tolist(), longest, track)
        return Match()

    def matches(self) -> list[tuple[int, int]]:
        """Earlier places that end like the text and the lengths of their matches: the latest ones
        that end with its last token, and the latest of the longest matches."""
        end = len(self._text) - 1
        found: dict[int, int] = {}
        for level in range(len(LEVELS) - 1, -1, -1):
            if (found and level) or end < LEVELS[level]:
                continue
            places = self._places(level, end)
            if len(places):
                lengths = self._match_lengths(places, end)
                pairs = zip(places.tolist(), lengths.tolist(), strict=True)
                found |= {place: length for place, length in pairs if length}
        return sorted(found.items(), key=lambda match: (-match[1], -match[0]))

    def what_follows(self, place: int, most: int) -> list[int]:
        """The tokens behind a match, at most so many; at the text's end they begin again."""
        follows = self._text.array[place + 1 : place + 1 + most]
        seams = np.flatnonzero(follows < 0)  # where one text ends and another begins
        tokens: list[int] = np.resize(follows, most).tolist()
        return tokens[: seams[0]] if len(seams) else tokens

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

    def _likeliest(self, places: list[int], length: int, track: int) -> Match:
        """One of equally long matches, latest first."""
        following = self._text.array[np.array(places) + 1].tolist()
        skipped = [place - track if track >= 0 else -1 for place in places]
        near = [0 <= distance <= NEAR for distance in skipped]

        def rank(n: int) -> tuple[int, int, int]:
            return (-skipped[n] if near[n] else -NEAR - 1, following.count(following[n]), -n)

        n = max(range(len(places)), key=rank)
        return Match(places[n], length, len(places), following.count(following[n]), near[n])


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
