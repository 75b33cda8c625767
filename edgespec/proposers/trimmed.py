"""A drafter that knows only some of the target's tokens, as if it knew them all.

Most of a small model is its vocabulary; one that leaves out rare tokens guesses faster. Its ids
are its own, and a table says which of the target's each one is.
Source of the idea: frequency-ranked heads, arXiv:2502.14856.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from edgespec.decoding.draft import Draft, Row, Tokens
from edgespec.decoding.session import Caps, Scores, Session


class TrimmedSession:
    """A session in the target's ids over one in the drafter's.

    ids: the target's id of each of the drafter's, int32 [k]; every other token is read as
    `unknown`, an id of the drafter's, and never guessed. vocab: number of the target's ids.
    """

    def __init__(self, session: Session, ids: Tokens, unknown: int, vocab: int) -> None:
        self._session = session
        self._ids = np.asarray(ids, dtype=np.int32)
        self._own = np.full(vocab, unknown, dtype=np.int32)
        self._own[self._ids] = np.arange(len(self._ids), dtype=np.int32)
        self._vocab = vocab

    @property
    def caps(self) -> Caps:
        return replace(self._session.caps, vocab=self._vocab)

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        return self._session.prefill(self._own[tokens])

    def held(self, tokens: Tokens) -> int:
        return self._session.held(self._own[tokens])

    def verify(self, draft: Draft) -> Scores:
        return _Spread(self._session.verify(self._in_own_ids(draft)), self._ids, self._vocab)

    def extend(self, grown: Draft) -> Scores:
        return _Spread(self._session.extend(self._in_own_ids(grown)), self._ids, self._vocab)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self._session.commit(path, int(self._own[next_token]))

    def reset(self) -> None:
        self._session.reset()

    def _in_own_ids(self, draft: Draft) -> Draft:
        if not draft:
            return draft
        return Draft(self._own[list(draft.tokens)].tolist(), draft.parents, draft.source, draft.q)


class _Spread:
    """Scores of the drafter's rows at the target's ids; minus infinity for tokens it lacks."""

    def __init__(self, scores: Scores, ids: Tokens, vocab: int) -> None:
        self._scores, self._ids, self._vocab = scores, ids, vocab

    def top(self, node: int) -> int:
        row = self._scores.logits(node)[: len(self._ids)]
        return int(self._ids[row == row.max()].min())

    def logits(self, node: int) -> Row:
        row = np.full(self._vocab, -np.inf, dtype=np.float32)
        row[self._ids] = self._scores.logits(node)[: len(self._ids)]
        return row
