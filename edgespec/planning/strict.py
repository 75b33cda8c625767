"""Decoding whose bits do not depend on what is drafted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from edgespec.decoding.draft import Draft, Tokens
from edgespec.decoding.session import Caps, Scores, Session

_FILLER = "filler"


class NarrowSession:
    """A session of which no pass is wider than `rows`: wider ones were not compared."""

    def __init__(self, inner: Session, rows: int) -> None:
        self.inner, self._rows = inner, rows

    @property
    def caps(self) -> Caps:
        caps = self.inner.caps
        return replace(caps, rows=min(caps.rows, self._rows))

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        return self.inner.prefill(tokens)

    def held(self, tokens: Tokens) -> int:
        return self.inner.held(tokens)

    def verify(self, draft: Draft) -> Scores:
        return self.inner.verify(draft)

    def extend(self, grown: Draft) -> Scores:
        return self.inner.extend(grown)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        self.inner.commit(path, next_token)

    def reset(self) -> None:
        self.inner.reset()


class StrictSession(NarrowSession):
    """Pads every pass to a width of one class, whose members round alike.

    widths: the class, ascending. Filler rows follow the last guess and are never on a path.
    """

    def __init__(self, inner: Session, widths: Sequence[int]) -> None:
        super().__init__(inner, widths[-1])
        self._widths = tuple(widths)

    @property
    def caps(self) -> Caps:
        caps = super().caps
        # what the widest pass may waste stays free, so that padding always fits
        room = caps.context - (self._widths[-1] - 1)
        # siblings leave the cache in another order, and sums round by order
        return replace(caps, context=room, tree=False)

    def verify(self, draft: Draft) -> Scores:
        return self.inner.verify(_padded(draft, self.width(len(draft) + 1) - 1))

    def extend(self, grown: Draft) -> Scores:
        # rows beside the filler of an earlier pass would be summed in another order
        return self.verify(grown)

    def width(self, rows: int) -> int:
        """The width of the pass that `rows` rows are padded to."""
        return next(n for n in self._widths if n >= rows)


def _padded(draft: Draft, nodes: int) -> Draft:
    missing = nodes - len(draft)
    if not missing:
        return draft
    n = len(draft)
    parents = [*draft.parents, *range(n - 1, n - 1 + missing)]  # the first follows the last guess
    return Draft(
        [*draft.tokens, *([draft.tokens[-1] if n else 0] * missing)],
        parents,
        [*draft.source, *([_FILLER] * missing)],
        [*draft.q, *([None] * missing)],
    )
