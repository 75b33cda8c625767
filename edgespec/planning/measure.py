"""What this machine does with this model: the cost of wide passes, and which widths agree.

One run measures both: a text is decoded at each width, the passes are timed and their scores
compared bit for bit. Some kernels change with the width of a pass or with the length of the text,
and rounding with them.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.session import Session

WIDTHS = (1, 2, 4, 8, 16)  # measured beside the widest that a session takes
WITHIN_S = 3.0
_WARMING, _BEGINNING = 16, 48
_ROUNDS = 6
_READ_ANEW = 8  # times that a cache which cannot go back reads the text
_PASSES = 96  # tokens of a prompt that are read while slow passes are timed and compared once
_LEAST = 0.95  # plain passes that two rows can take, noise included
_DEAREST, _DEAREST_ALONE = 1.5, 2.5  # plain passes that strict plain decoding may cost


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds by width, widths grouped by equal scores, and the largest difference to width 1.

    context: tokens of text after which the passes were compared. sample: tokens that there were
    for it; fewer were used where reading them all would have taken too long. token_s: seconds that
    a row takes longer for each further token of text. at_rest: whether nothing else ran meanwhile.
    """

    seconds: dict[int, float]
    classes: tuple[tuple[int, ...], ...]
    largest_difference: float
    context: int
    sample: int
    token_s: float = 0.0
    at_rest: bool = True

    def as_json(self) -> dict[str, Any]:
        return {
            "seconds": {str(n): s for n, s in self.seconds.items()},
            "classes": [list(c) for c in self.classes],
            "largest_difference": self.largest_difference,
            "context": self.context,
            "sample": self.sample,
            "token_s": self.token_s,
            "at_rest": self.at_rest,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Measurement:
        """Raises KeyError, TypeError or ValueError when `data` is something else."""
        seconds = {int(n): float(s) for n, s in data["seconds"].items()}
        classes = tuple(tuple(int(n) for n in c) for c in data["classes"])
        if not all(0 < s < math.inf for s in seconds.values()):
            raise ValueError("a pass takes a positive number of seconds")
        if 1 not in seconds or sorted(n for c in classes for n in c) != sorted(seconds):
            raise ValueError("the classes are not those of the measured widths")
        token_s = float(data["token_s"])
        if not 0 <= token_s < math.inf:
            raise ValueError("a longer text takes no less time")
        largest, at_rest = float(data["largest_difference"]), bool(data["at_rest"])
        context, sample = int(data["context"]), int(data["sample"])
        return cls(seconds, classes, largest, context, sample, token_s, at_rest)

    @property
    def plausible(self) -> bool:
        """Whether a pass over two tokens takes about as long as a plain one, or longer."""
        return self.seconds.get(2, math.inf) >= _LEAST * self.seconds[1]

    @property
    def bit_exact(self) -> bool:
        """Whether passes of every measured width give the same bits."""
        return len(self.classes) == 1

    def covers(self, rows: int) -> bool:
        """Whether every width up to `rows` was measured."""
        return self.seconds.keys() >= set(range(1, rows + 1))

    def on_so_much(self, sample: int, least: int) -> bool:
        """Whether there were as many tokens as `sample`, and at least `least` of them were used:
        a longer text may be read by other kernels."""
        return self.sample >= sample and self.context >= least

    def strict_widths(
        self, context: int | None = None, dearest_plain: float | None = None
    ) -> tuple[int, ...]:
        """The widths that strict decoding may use: those of WIDTHS in one class, whose narrowest
        pass stands for plain decoding and must not cost more than `dearest_plain` plain passes.

        context: tokens that the session holds; none of the widths pads more than half of it away.
        The widest that a session takes is left out: padding to it costs much time and context.
        By default more may be paid where width 1 agrees with no other, so that only a wider class
        leaves room for guesses.
        """
        widest = WIDTHS[-1] if context is None else min(WIDTHS[-1], context // 2)
        if dearest_plain is None:
            dearest_plain = _DEAREST_ALONE if (1,) in self.classes else _DEAREST
        narrow = [tuple(n for n in c if n <= widest) for c in self.classes]
        dearest_s = dearest_plain * self.seconds[1]
        allowed = [c for c in narrow if c and self.seconds[c[0]] <= dearest_s]
        return max(allowed, key=lambda c: (c[-1], -c[0]))


def rows_at_most(session: Session) -> int:
    """Rows of the widest pass that may be taken back."""
    rows, rollback = session.caps.rows, session.caps.rollback
    return rows if rollback is None else min(rows, rollback + 1)


def _untold(seconds: float) -> None:
    """Nobody waits to hear how long it takes."""


def measure(
    session: Session,
    prompt: Sequence[int],
    within_s: float = WITHIN_S,
    least: int = 0,
    expect: Callable[[float], None] = _untold,
) -> Measurement:
    """Time and compare passes of several widths after `prompt`, in about `within_s` seconds.

    Attention kernels may change with the length of the text, so a long prompt is better; of one
    that takes more than half of the time to read, only the beginning is used, of `least` tokens
    or more. Where passes are slow the narrow ones are made once however long they take, and the
    widest that the session takes, which is much the dearest, is left out.
    expect: told once, when the first tokens were read, how many seconds the rest may take.
    """
    sample = np.asarray(prompt, dtype=np.int32)
    _read(session, sample[:_WARMING])  # the first pass brings the file into memory
    started = perf_counter()
    tokens, needed_s = _affordable(session, sample, within_s / 2, least)
    expect(max(within_s, needed_s))
    room = session.caps.context - len(tokens)
    most = min(rows_at_most(session), room)
    widths = sorted({*(n for n in WIDTHS if n <= most), most})
    _timed(session, tokens, [], 1)  # reads the prompt and warms the machine up
    times = {1: _timed(session, tokens, [], 2)}
    positions = _positions(min(times[1]), within_s, widths, room)
    text, plain_rows = _greedy(session, tokens, positions)
    # other tokens than the compared ones, since few kinds of them wake few experts of a mixture
    text += np.resize(tokens, widths[-1]).tolist()
    digests, difference = {1: _digest(plain_rows)}, 0.0
    for n in widths[1:]:  # the scores of all widths at once would be many megabytes
        left_s = within_s - (perf_counter() - started)
        if n > WIDTHS[-1] and 2 * min(times[WIDTHS[-1]]) > left_s:
            break
        rows, times[n] = _rows_at(session, tokens, text, n, positions)
        digests[n] = _digest(rows)
        difference = max(difference, float(np.abs(plain_rows - rows).max()))
    for _ in range(_ROUNDS):
        for n, taken in times.items():
            if perf_counter() - started + min(taken) < within_s:
                taken.extend(_timed(session, tokens, text[: n - 1], 2 if n <= 4 else 1))
    seconds = {n: min(taken) for n, taken in times.items()}  # other work only adds
    wide = min(most, WIDTHS[-1])
    token_s = _token_seconds(session, tokens, text[: wide - 1], seconds[wide])
    return Measurement(seconds, _classes(digests), difference, len(tokens), len(sample), token_s)


def _positions(plain_s: float, within_s: float, widths: Sequence[int], room: int) -> int:
    """How many positions to compare: fewer where passes are slow, and so few that the last pass of
    every width ends before the context does."""
    most = 16 if plain_s < within_s / 90 else 8 if plain_s < within_s / 50 else 4
    fits = (n for n in (16, 8, 4, 2) if n <= most and all(-(-n // w) * w <= room for w in widths))
    return next(fits, 1)


def _token_seconds(
    session: Session, tokens: Tokens, guesses: Sequence[int], long_s: float
) -> float:
    """What a further token of text adds to a row, from wide passes after the text's beginning."""
    more = len(tokens) - _BEGINNING
    if more < _BEGINNING:
        return 0.0
    short_s = min(_timed(session, tokens[:_BEGINNING], guesses, 3))
    return max(0.0, long_s - short_s) / (more * (len(guesses) + 1))


def _affordable(
    session: Session, prompt: Tokens, within_s: float, least: int
) -> tuple[Tokens, float]:
    """As much of the prompt as can be read within a time, at least `least` tokens or its beginning,
    and the seconds that reading the rest of it and a few passes after it need."""
    reads = 1 if session.caps.rollback is None else _READ_ANEW
    started = perf_counter()
    _read(session, prompt[:_BEGINNING])
    token_s = max(perf_counter() - started, 1e-9) / (_BEGINNING - _WARMING)
    tokens = prompt[: max(least, _BEGINNING, int(within_s / reads / token_s))]
    return tokens, token_s * (reads * len(tokens) - _BEGINNING + _PASSES)


def _read(session: Session, tokens: Tokens) -> None:
    for _ in session.prefill(tokens):
        pass


def plain_seconds(session: Session, prompt: Sequence[int]) -> float:
    """Seconds of one plain pass, the best of a few."""
    return min(_timed(session, np.asarray(prompt, dtype=np.int32), [], 6)[1:])


def reading_seconds(session: Session, prompt: Sequence[int]) -> float:
    """Seconds to read one token of a text; 0 where it is too short to tell."""
    tokens = np.asarray(prompt, dtype=np.int32)
    _read(session, tokens[:_WARMING])
    started = perf_counter()
    _read(session, tokens)
    more = len(tokens) - _WARMING
    return (perf_counter() - started) / more if more >= _BEGINNING else 0.0


def _timed(session: Session, prompt: Tokens, guesses: Sequence[int], times: int) -> list[float]:
    """Seconds of passes over the pending token and `guesses`."""
    draft, seconds = Draft.chain(list(guesses), "measure"), []
    for _ in range(times):
        _read(session, prompt)
        started = perf_counter()
        session.verify(draft).top(ROOT)
        seconds.append(perf_counter() - started)
        session.commit((), int(prompt[0]))
    return seconds


def _greedy(session: Session, prompt: Tokens, positions: int) -> tuple[list[int], Row]:
    """The next tokens by plain decoding, and their scores, float32 [positions, vocab]."""
    _read(session, prompt)
    text, rows = [], []
    for _ in range(positions):
        row = session.verify(EMPTY).logits(ROOT).copy()
        rows.append(row)
        text.append(int(row.argmax()))
        session.commit((), text[-1])
    return text, np.stack(rows)


def _rows_at(
    session: Session, prompt: Tokens, text: Sequence[int], width: int, positions: int
) -> tuple[Row, list[float]]:
    """The scores of the same positions as `_greedy`, from passes of one width, and how many
    seconds each pass took. text: at least as long as the pass is wide."""
    _read(session, prompt)
    rows, seconds, at = list[Row](), list[float](), 0
    while len(rows) < positions:
        guesses = list(text[at : at + width - 1])
        started = perf_counter()
        scores = session.verify(Draft.chain(guesses, "measure"))
        scores.top(ROOT)
        seconds.append(perf_counter() - started)
        compared = min(width, positions - at)
        rows += [scores.logits(node).copy() for node in range(ROOT, compared - 1)]
        at += compared
        session.commit(tuple(range(compared - 1)), text[at - 1])
    return np.stack(rows), seconds


def _digest(rows: Row) -> str:
    return hashlib.blake2b(np.ascontiguousarray(rows).tobytes(), digest_size=16).hexdigest()


def _classes(digests: dict[int, str]) -> tuple[tuple[int, ...], ...]:
    groups: dict[str, list[int]] = defaultdict(list)
    for width, digest in digests.items():
        groups[digest].append(width)
    return tuple(tuple(sorted(group)) for group in sorted(groups.values()))
