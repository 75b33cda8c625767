"""What a model's sessions can really do, tried out on the model itself.

Families differ in how they use positions, masks and caches. Nothing here knows their names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import mlx.core as mx
import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row
from edgespec.decoding.session import Caps
from edgespec.errors import BackendFailed
from edgespec_mlx.cache import Caches
from edgespec_mlx.rows import MakeRows, PlainRows
from edgespec_mlx.session import MlxSession, Runner
from edgespec_mlx.tap import tappable_layers

TAKES_BACK = 64  # guesses after which a state is put back
_CLOSE = 0.05  # a difference by rounding, in standard deviations of the scores
_PROMPT, _LINE = (1, 2, 3, 4, 5, 6, 7, 8), (9, 10, 11)
_TREE = Draft((9, 20, 21, 10, 22, 11), (-1, -1, 1, 0, 2, 3), ("probe",) * 6, (None,) * 6)
_ON_LINE = (0, 3, 5)  # nodes of _TREE that hold _LINE
_FAILED = (
    TypeError,
    AttributeError,
    LookupError,
    ValueError,
    RuntimeError,
    AssertionError,
    BackendFailed,
)
_T = TypeVar("_T")
_WIDTH_DEPENDENT = "DynamicNTKScalingRoPE"  # turns by the length of the whole pass


@dataclass(frozen=True, slots=True)
class Traits:
    """own_caches: whether the model works with caches that go back. The rest as in Caps."""

    own_caches: bool
    tree: bool
    rollback: int | None
    hidden: tuple[int, ...] | None


def probe(runner: Runner, vocab: int, hidden_size: int) -> Traits:
    """Try caches, rollback, trees and taps on a text of a few tokens."""
    trial = _Trial(runner, vocab, PlainRows)
    hidden = _attempt(lambda: trial.hidden(hidden_size))
    plain = _attempt(trial.row_behind_line)
    if plain is None:
        return Traits(False, False, 0, hidden)
    cut_anywhere = Caches.own(runner.module, PlainRows).cut_anywhere
    if _turns_by_width(runner.module) or not _attempt(lambda: trial.goes_back(plain)):
        return Traits(True, False, 0, hidden)
    if not cut_anywhere:
        return Traits(True, False, TAKES_BACK, hidden)
    return Traits(True, bool(_attempt(trial.takes_trees)), None, hidden)


def works_with(runner: Runner, vocab: int, make: MakeRows) -> bool:
    """Whether the model runs with keys and values kept like this, and says about the same."""
    plain = _attempt(_Trial(runner, vocab, PlainRows).row_behind_line)
    kept = _attempt(_Trial(runner, vocab, make).row_behind_line)
    return kept is not None and plain is not None and _distance(plain, kept) < 1.0


class _Trial:
    """Short texts read by fresh sessions."""

    def __init__(self, runner: Runner, vocab: int, make: MakeRows) -> None:
        self._runner, self._make = runner, make
        self._caps = Caps(vocab, 64, tree=True)

    def row_behind_line(self) -> Row:
        """The scores behind the whole line, read one token after the other."""
        session = self._session()
        for token in _LINE:
            session.verify(EMPTY)
            session.commit((), self._id(token))
        return self._row(session)

    def goes_back(self, plain: Row) -> bool:
        """Whether guesses that were taken back leave no trace."""
        session = self._session()
        for number, token in enumerate(_LINE):
            session.verify(self._draft(Draft.chain((30, 31, 32 + number), "probe")))
            session.commit((), self._id(token))
        return _distance(plain, self._row(session)) < _CLOSE

    def takes_trees(self) -> bool:
        """Whether a line reads the same as a branch of a tree, and is kept when it is chosen."""
        tree, chain = self._session(), self._session()
        branches = tree.verify(self._draft(_TREE))
        line = chain.verify(self._draft(Draft.chain(_LINE, "probe")))
        for node, place in zip((ROOT, *_ON_LINE), (ROOT, 0, 1, 2), strict=True):
            if _distance(line.logits(place), branches.logits(node)) > _CLOSE:
                return False
        for session, path in ((tree, _ON_LINE), (chain, (0, 1, 2))):
            session.commit(path, self._id(12))
        return _distance(self._row(chain), self._row(tree)) < _CLOSE

    def hidden(self, hidden_size: int) -> tuple[int, ...] | None:
        with mx.stream(self._runner.stream):
            tokens = mx.array([self._id(token) for token in _PROMPT], dtype=mx.int32)
            return tappable_layers(self._runner.module, hidden_size, tokens)

    def _session(self) -> MlxSession:
        module, make = self._runner.module, self._make
        session = MlxSession(self._runner, lambda: Caches.own(module, make), self._caps)
        list(session.prefill(np.array([self._id(t) for t in _PROMPT], dtype=np.int32)))
        return session

    def _draft(self, draft: Draft) -> Draft:
        return replace(draft, tokens=[self._id(token) for token in draft.tokens])

    def _id(self, token: int) -> int:
        return token % self._caps.vocab

    @staticmethod
    def _row(session: MlxSession) -> Row:
        return session.verify(EMPTY).logits(ROOT).copy()


def _attempt(trial: Callable[[], _T]) -> _T | None:
    """None where the model's own code does not get along with it."""
    try:
        return trial()
    except _FAILED:
        return None


def _distance(a: Row, b: Row) -> float:
    """Root mean square of the difference, in standard deviations of `a`."""
    spread = float(a.std()) or 1.0
    return float(np.sqrt(np.mean((a - b) ** 2))) / spread


def _turns_by_width(module: Any) -> bool:
    """Whether a row's rotary embedding depends on what is read with it."""
    kinds: Sequence[type] = [type(part) for _, part in module.named_modules()]
    return any(kind.__name__.startswith(_WIDTH_DEPENDENT) for kind in kinds)
