"""What is known of one token of an answer: who proposed it, and what else might stand there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from edgespec.decoding.events import Alternative, Committed, Kind
from edgespec.tui.naming import is_tree, proposer_name
from edgespec.tui.rounds import CHOSEN, RoundRow, token_text

_ORIGINS = {
    Kind.CORRECTION: "the model's own: a guess was wrong here",
    Kind.BONUS: "the model's own, behind right guesses",
    Kind.PLAIN: "the model's own: nothing was guessed",
}
_UNKNOWN = "not written in this session: no round is known"
_NO_TEXT = "…"
_SMALLEST_SHOWN = 0.001


class Explanation(Protocol):
    """What the target thought of a place; a committed token is one where it was asked for."""

    @property
    def token(self) -> int: ...

    @property
    def logprob(self) -> float | None: ...

    @property
    def alternatives(self) -> tuple[Alternative, ...]: ...


@dataclass(frozen=True, slots=True)
class Refused:
    """A guess that the target turned down. The probabilities are None where nobody knows them."""

    text: str
    source: str
    draft: float | None
    target: float | None


@dataclass(frozen=True, slots=True)
class Detail:
    """One token, ready to be shown; probabilities are None where nobody knows them.

    target, draft   its probability under the target (temperature 1, before filters) and under
                    the drafter that proposed it.
    why             why its round had no guesses, or who guessed together in it; "" where that is
                    told already.
    """

    index: int
    token: int | None
    text: str
    origin: str
    number: int | None = None
    target: float | None = None
    draft: float | None = None
    refused: tuple[Refused, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    why: str = ""


def detail_of(
    index: int, text: str, row: RoundRow | None, explanation: Explanation | None = None
) -> Detail:
    """Fold what the round and the engine know. text: of the token, where no round is known."""
    if row is None:
        known = token_text(text, 0, {}) if text else _NO_TEXT
        return _explained(Detail(index, None, known, _UNKNOWN), explanation)
    written = row.token(index)
    if explanation is None and written.logprob is not None:
        explanation = written
    known = token_text(written.text, written.token, row.ends)
    detail = Detail(index, written.token, known, _origin(written, row))
    return _guessed(_explained(detail, explanation), row)


def _explained(detail: Detail, explanation: Explanation | None) -> Detail:
    if explanation is None:
        return detail
    return replace(
        detail,
        token=explanation.token,
        target=_probability(explanation.logprob),
        alternatives=explanation.alternatives,
    )


def _guessed(detail: Detail, row: RoundRow) -> Detail:
    """What the draft said about the place."""
    guesses = row.guesses_at(detail.index)
    right = next((guess for guess in guesses if guess.accepted), None)
    target = {a.token: _probability(a.logprob) for a in detail.alternatives}
    return replace(
        detail,
        number=row.number,
        draft=right.probability if right is not None else None,
        why=_why(row),
        refused=tuple(
            Refused(
                token_text(guess.text, guess.token, row.ends),
                proposer_name(guess.source),
                guess.probability,
                target.get(guess.token),
            )
            for guess in guesses
            if not guess.accepted
        ),
    )


def _why(row: RoundRow) -> str:
    guesses = row.event.guesses
    if is_tree(guesses):
        return f"{row.summary}; | is another guess for the same place"
    if len({guess.source for guess in guesses}) > 1:
        return row.summary
    nothing_to_add = guesses or row.event.plan == CHOSEN or row.summary == "plain"
    return "" if nothing_to_add else row.summary


def _origin(written: Committed, row: RoundRow) -> str:
    if written.kind is Kind.ACCEPTED:
        return f"guessed by {proposer_name(written.source)}, and right"
    if not row.event.guesses and row.event.plan == CHOSEN:
        return CHOSEN
    return _ORIGINS[written.kind]


def _probability(logprob: float | None) -> float | None:
    return None if logprob is None else math.exp(min(logprob, 0.0))


def percent(probability: float) -> str:
    """A probability for people; what is small but not zero is not shown as zero."""
    return f"{probability:.1%}" if probability >= _SMALLEST_SHOWN else f"<{_SMALLEST_SHOWN:.1%}"
