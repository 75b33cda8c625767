"""One conversation on an mlx_lm model: chains and trees, taken back to any node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import mlx.core as mx
import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.decoding.session import Caps
from edgespec.errors import BackendFailed, CacheFull
from edgespec_mlx.ahead import Patience
from edgespec_mlx.cache import Caches
from edgespec_mlx.failures import on_stream, whole_or_empty
from edgespec_mlx.scores import MlxScores
from edgespec_mlx.tap import Tap
from edgespec_mlx.trees import TreeLayout

TIDY = 256  # tokens after which memory that MLX keeps for reuse is given back
OWED_AT_MOST = 8  # accepted tokens that a recurrent model reads again with its next pass


@dataclass(frozen=True, slots=True)
class Runner:
    """A model as its sessions run it.

    stream: where its work is queued, from whatever thread. chunk: tokens of a prompt read in one
    pass; between passes one can cancel.
    """

    module: Any
    stream: Any
    chunk: int

    def emptied(self) -> Runner:
        """The same without the weights."""
        return replace(self, module=None)


@dataclass(frozen=True, slots=True)
class Begun:
    """A pass that was begun early, and the state of the caches before it."""

    scores: MlxScores
    start: list[Any]


class MlxSession:
    """The cache of one conversation.

    ride: up to so many unread tokens wait for the next verify(). The caches hold `_cached`, and
    behind them what was not committed yet, where `_start` is the state to go back to. `_owed` are
    committed tokens that the caches do not hold.
    """

    def __init__(
        self, runner: Runner, make: Callable[[], Caches], caps: Caps, ride: int = 0
    ) -> None:
        self.caps, self._ride = caps, ride
        self._runner, self._make = runner, make
        self._caches = make()
        self._cached = TokenHistory()
        self._owed: list[int] = []
        self._pending: int | None = None
        self._draft = EMPTY
        self._scores: MlxScores | None = None  # of a verify() that is not committed
        self._start: list[Any] | None = None
        self._begun: Begun | None = None  # on the best token of _scores
        self._ready: MlxScores | None = None  # of the pending token, begun early and right
        self._read_to: tuple[int, list[Any]] | None = None  # where the latest prompt ended
        self._patience = Patience()
        self._tap: Tap | None = None
        self._watched: tuple[int, ...] = ()

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        tokens = np.ascontiguousarray(tokens, dtype=np.int32)
        with self._whole():
            self._patience.broken()
            self._ready = None  # begun in vain, but every answer ends once
            self._settle()
            keep = self._keep(self.held(tokens))
            self._owed, self._pending = [], None
            yield keep
            body = tokens[keep:-1].tolist()
            while len(body) > self._ride:
                body = self._read_some(body)
                yield len(self._cached)
            self._owed, self._pending = body, int(tokens[-1])
            if not self._caches.cut_anywhere and self._caches.go_back:
                self._read_to = len(self._cached), self._caches.mark()

    def held(self, tokens: Tokens) -> int:
        return common_prefix(self._cached.array, tokens[:-1])

    def verify(self, draft: Draft) -> MlxScores:
        assert self._pending is not None, "verify() before a prompt was read"
        assert len(draft) < self.caps.rows, "verify() of more rows than the session has"
        line = [*self._owed, self._pending]
        self._check_room(len(line) + len(draft))
        with self._whole():
            if draft or self._ready is None:
                self._settle()
                self._start = self._caches.mark()
                scores = self._pass(line, draft)
            else:
                scores = self._ready
            self._draft, self._scores, self._ready = draft, scores, None
            self._begin_next(scores)
            with self._guarded():
                scores.move()
        return scores

    def extend(self, grown: Draft) -> MlxScores:
        assert self._scores is not None, "extend() without a verify() before it"
        assert len(grown) < self.caps.rows, "extend() to more rows than the session has"
        if self._begun is not None or not self._caches.cut_anywhere:
            return self.verify(grown)  # the caches hold no tree that could grow
        line, known = len(self._owed) + 1, len(self._draft)
        self._check_room(line + len(grown))
        with self._whole():
            layout = None
            if not grown.is_chain:
                layout = TreeLayout.behind(len(self._cached), line, grown)
                layout.first = line + known
            new = mx.array(list(grown.tokens[known:]), dtype=mx.int32)
            scores = self._run(new, len(grown) - known, layout)
            scores.first = known
            self._draft, self._scores = grown, scores
            with self._guarded():
                scores.move()
        return scores

    def commit(self, path: Sequence[int], next_token: int) -> None:
        assert self._pending is not None
        assert self._scores is not None, "commit() without a verify() before it"
        with self._whole():
            self._commit(path, next_token, self._pending, self._scores)

    def _commit(
        self, path: Sequence[int], next_token: int, pending: int, scores: MlxScores
    ) -> None:
        line, draft = [*self._owed, pending], self._draft
        kept = [*line, *(draft.tokens[node] for node in path)]
        plain = not draft and next_token == scores.top(ROOT)
        self._scores, self._draft, self._owed, self._pending = None, EMPTY, [], next_token
        if len(self._cached) // TIDY != (len(self._cached) + len(kept)) // TIDY:
            mx.clear_cache()  # memory of passes that come no more
        if draft or scores.looked_at or not plain:
            self._patience.broken()
        else:
            self._patience.one_more()
        if self._begun is not None:
            self._commit_begun(kept, right=plain)
        elif self._keep_rows(len(line), path, draft):
            self._cached.extend(kept)
            self._start = None
            self._check_caches()
        else:
            self._read_again(kept)

    def reset(self) -> None:
        """Forget everything."""
        self._start_anew()
        self._owed, self._pending, self._draft = [], None, EMPTY
        self._scores = self._begun = self._ready = None
        self._patience.broken()

    def close(self) -> None:
        """Let go of weights and caches; the session is of no use afterwards."""
        self._runner, self._make = self._runner.emptied(), Caches.none
        self._tap, self._watched = None, ()
        self.reset()

    def watch(self, tap: Tap, layers: Sequence[int]) -> None:
        """From now on scores come with the hidden states of these layers.

        tap: on all of the model's layers, and on for as long as the session is used.
        """
        self._tap, self._watched = tap, tuple(layers)

    def _check_room(self, rows: int) -> None:
        if (base := len(self._cached)) + rows > self.caps.context:
            raise CacheFull(
                f"A pass of {rows} tokens does not fit: the context of {self.caps.context} tokens"
                f" holds {base}. Raise --context or start a new chat."
            )

    def _pass(self, line: Sequence[int], draft: Draft) -> MlxScores:
        """Queue one pass; the draft's root is the line's last token."""
        layout = None
        if not draft.is_chain:
            layout = TreeLayout.behind(len(self._cached), len(line), draft)
        return self._run(mx.array([*line, *draft.tokens], dtype=mx.int32), len(draft) + 1, layout)

    def _run(self, tokens: mx.array, rows: int, layout: TreeLayout | None = None) -> MlxScores:
        with self._guarded():
            self._caches.lay_out(layout)
            try:
                logits = self._runner.module(tokens[None], cache=self._caches.given)
            finally:
                self._caches.lay_out(None)
            rows_of_draft = logits[0, -rows:, : self.caps.vocab]
            scores = MlxScores(rows_of_draft, self._hidden(rows), self._runner.stream)
            mx.async_eval(scores.arrays())  # type: ignore[no-untyped-call]
        return scores

    def _hidden(self, rows: int) -> dict[int, mx.array]:
        if self._tap is None:
            return {}
        _, returned = self._tap.take()
        return {layer: returned[layer][-1][0, -rows:] for layer in self._watched}

    def _begin_next(self, scores: MlxScores) -> None:
        """Begin the pass over this one's best token, where that token will likely be committed."""
        room = len(self._cached) + len(self._owed) + 2 <= self.caps.context
        if self._draft or not (self._patience.enough and self._caches.go_back and room):
            return
        start = self._caches.mark()
        self._begun = Begun(self._run(scores.best[-1:], 1), start)

    def _commit_begun(self, kept: Sequence[int], *, right: bool) -> None:
        """The pass behind the committed tokens has been begun: go on with it, or drop it."""
        assert self._begun is not None
        begun, self._begun = self._begun, None
        self._cached.extend(kept)
        self._start = begun.start
        if right:
            self._ready = begun.scores
        else:
            self._settle()
            self._patience.in_vain()

    def _keep_rows(self, line: int, path: Sequence[int], draft: Draft) -> bool:
        """Keep the latest pass's rows of the line and of `path`; False where that cannot be."""
        base = len(self._cached) + line
        if len(path) == len(draft) and draft.is_chain:
            return True
        if not self._caches.cut_anywhere:
            return False
        return self._caches.gather(base, path)

    def _read_again(self, kept: list[int]) -> None:
        """Go back to before the latest pass, and owe what was committed of it."""
        self._settle()
        if len(kept) <= OWED_AT_MOST:
            self._owed = kept
            return
        while kept:
            kept = self._read_some(kept)

    def _settle(self) -> None:
        """Take back whatever is not committed."""
        if self._ready is not None:
            self._patience.in_vain()
        start, self._start = self._start, None
        self._begun = self._ready = self._scores = None
        if start is None or self._caches.back_to(start):
            self._check_caches()
            return
        again = self._cached.array.tolist()
        self._start_anew()
        while again:
            again = self._read_some(again)

    def _keep(self, wanted: int) -> int:
        """Drop what the caches hold beyond `wanted` tokens; returns how many really stay."""
        if wanted < len(self._cached) and not (wanted and self._caches.cut(wanted)):
            wanted = self._keep_prompt(wanted)
        self._cached.truncate(wanted)
        return wanted

    def _keep_prompt(self, wanted: int) -> int:
        """Go back to the end of the latest prompt, where the text still begins with it, else to
        nothing: a recurrent state knows the places it was told to remember, and no others."""
        length, marks = self._read_to or (0, [])
        if 0 < length <= wanted and self._caches.back_to(marks):
            return length
        self._start_anew()
        return 0

    def _start_anew(self) -> None:
        caches, cached = self._make(), TokenHistory()
        self._caches, self._cached, self._start, self._read_to = caches, cached, None, None

    def _read_some(self, tokens: list[int]) -> list[int]:
        """Read one chunk and return the rest. Chunks end at multiples of the chunk size, so that
        a prompt is cut alike however much of it was reused."""
        chunk = self._runner.chunk
        part = tokens[: chunk - len(self._cached) % chunk]
        self._start = self._caches.mark()
        with self._guarded():
            self._runner.module(mx.array([part]), cache=self._caches.given)
            mx.eval(self._caches.arrays())  # the scores are never computed
            mx.clear_cache()
        self._start = None
        self._cached.extend(part)
        return tokens[len(part) :]

    def _check_caches(self) -> None:
        if self._caches.lengths() - {len(self._cached)}:
            held = sorted(self._caches.lengths())
            raise BackendFailed(
                f"The caches of this model hold {held} tokens where {len(self._cached)} were"
                " committed. Run it with --proposer none."
            )

    def _whole(self) -> AbstractContextManager[None]:
        return whole_or_empty(self.reset)

    def _guarded(self) -> Any:
        return on_stream(self._runner.stream, self.reset)
