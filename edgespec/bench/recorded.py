"""Answers kept with what a draft model would have guessed at every place of them.

The text of an answer does not depend on who guesses, and after a prefix of true tokens neither
does a draft model's next guess. So one pass of the draft model over an answer is enough to replay
that answer with any number of guesses, on any cost curve, without the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.accept import Rule
from edgespec.decoding.draft import ROOT, Draft, Row, Tokens
from edgespec.decoding.session import Session
from edgespec.proposers.model_tree import OTHERS

NO_GUESS = -1  # where the draft model's context was full

Confidences = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One answer: token ids, int32.

    guesses: what the draft model says at each place of the reply, int32 [len(reply)], NO_GUESS
    where it says nothing; confidences: the probability it gave that guess, float32 [len(reply)].
    Both None where no draft model was asked.
    noted: its best tokens there, as Branching notes them beside a guess and the guess first, int32
    [len(reply), k], NO_GUESS where there are fewer; shares: how likely each is to be chosen,
    float32 of that shape. Both None where only the guess was kept.
    near: the target's best tokens at each place of the reply, best first, int32 [len(reply), k];
    scores: theirs, in nats, float32 of that shape. Both None where the target made no pass.
    """

    id: str
    category: str
    prompt: Tokens
    reply: Tokens
    guesses: Tokens | None = None
    confidences: Confidences | None = None
    noted: Tokens | None = None
    shares: Confidences | None = None
    near: Tokens | None = None
    scores: Confidences | None = None


def score(recorded: Recorded, session: Session, vocab: int, rule: Rule) -> Recorded:
    """The answer with what a draft model guesses at each place of it, and holds likely instead.

    session: the draft model's. vocab: ids below it are shared with the target. rule: by which the
    answer was said, so that guesses are drawn with its noise; it may not look at earlier text.
    """
    most = 1 + OTHERS
    guesses = np.full(len(recorded.reply), NO_GUESS, np.int32)
    noted = np.full((len(guesses), most), NO_GUESS, np.int32)
    confidences, shares = np.zeros(guesses.shape, np.float32), np.zeros(noted.shape, np.float32)
    for place, row in enumerate(_rows(session, recorded)):
        guess = rule.guess(row[:vocab], (), place)
        guesses[place], confidences[place] = guess.token, guess.confidence
        for rank, other in enumerate(rule.guesses(row[:vocab], (), place, most)):
            noted[place, rank], shares[place, rank] = other.token, other.confidence
    return replace(recorded, guesses=guesses, confidences=confidences, noted=noted, shares=shares)


def _rows(session: Session, recorded: Recorded) -> Iterator[Row]:
    """A draft model's scores for each place of the reply, as far as its context reaches.

    The true tokens ride as chains, so that each pass answers for as many places as it has rows.
    """
    caps, at = session.caps, len(recorded.prompt)
    tokens = np.concatenate([recorded.prompt, recorded.reply])
    rows = caps.rows if caps.rollback is None else min(caps.rows, caps.rollback + 1)
    end = min(len(tokens), caps.context)
    if at >= end:
        return
    while at < end:
        # each time, as a draft model does: a RecentSession moves on with it
        for _ in session.prefill(np.ascontiguousarray(tokens[:at], dtype=np.int32)):
            pass
        known = tokens[at : min(at + rows, end) - 1].tolist()
        scores = session.verify(Draft.chain(known, "recorded"))
        yield from (scores.logits(node) for node in range(ROOT, len(known)))
        at += len(known)
        session.commit(tuple(range(len(known))), int(tokens[at]))
        at += 1
