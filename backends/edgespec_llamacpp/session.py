"""One conversation's cache in llama.cpp: chains in one sequence, trees with one per leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.decoding.sampling import best_token
from edgespec.decoding.session import MOST_ROWS, Caps
from edgespec.errors import BackendFailed, CacheFull
from edgespec_llamacpp.branches import Branches
from edgespec_llamacpp.library import library
from edgespec_llamacpp.passes import decode, scores

MAX_LEAVES = MOST_ROWS - 1  # of a tree: one for each guess


class LlamaScores:
    """Rows of the latest decode, read in place; the next decode overwrites them.

    first: the node of the first row.
    """

    def __init__(self, rows: Row, first: int = ROOT) -> None:
        self._rows, self._first = rows, first

    def top(self, node: int) -> int:
        return best_token(self.logits(node))

    def logits(self, node: int) -> Row:
        assert node >= self._first, "scores of an earlier pass"
        row: Row = self._rows[node - self._first]
        return row


class LlamaSession:
    """The cache of one conversation in a llama.cpp context, which may hold others beside it.

    chunk: tokens of a prompt that are read in one pass. ride: up to so many unread tokens wait
    for the next verify; that saves a pass, but its width, and with it the rounding, then varies.
    slot: the sequence of the committed text; leaves of a tree use it and as many above it as a
    draft has nodes. The session at 0 owns the context.
    A state beside the cache (whose caps have a `rollback` from the start) is kept for each row of
    the latest pass and for no earlier one: `_reach` tells how many rows it can go back, -1 where
    nothing is known of it. The library would go back further, to what other passes left there.
    The cache holds `_cached`, and more only while `_unsettled`, which holds at every line since an
    interrupt may come behind any; `_owed` are the tokens that wait.
    """

    def __init__(self, context: Any, caps: Caps, chunk: int, ride: int = 0, slot: int = 0) -> None:
        self.caps, self._ride, self._slot = caps, ride, slot
        self._lib = library()
        self._context, self._chunk = context, chunk
        self._memory = self._lib.llama_get_memory(context)
        self._batch = self._lib.llama_batch_init(chunk + MOST_ROWS, 0, MAX_LEAVES)
        self._fields = _BatchFields(self._batch, chunk + MOST_ROWS, slot)
        self._cached = TokenHistory()
        self._owed: list[int] = []
        self._pending: int | None = None
        self._draft = EMPTY
        self._branches, self._root = Branches(), 0  # the root's position
        self._unsettled = False
        self._has_state, self._reach = caps.rollback is not None, 0

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        tokens = np.ascontiguousarray(tokens, dtype=np.int32)
        self._owed, self._pending = [], None
        keep = self._keep(self.held(tokens))
        yield keep
        body = tokens[keep:-1].tolist()
        while len(body) > self._ride:
            body = self._read_some(body)
            yield len(self._cached)
        self._owed, self._pending = body, int(tokens[-1])

    def held(self, tokens: Tokens) -> int:
        same = common_prefix(self._cached.array, tokens[:-1])
        return same if self._goes_back_to(same) else 0

    def verify(self, draft: Draft) -> LlamaScores:
        assert self._pending is not None, "verify() before a prompt was read"
        assert len(draft) < self.caps.rows, "verify() of more rows than the session has"
        self._settle()
        line = [*self._owed, self._pending]
        base = len(self._cached)
        self._check_room(base, len(line) + len(draft))
        self._draft, self._branches, self._root = draft, Branches(), base + len(line) - 1
        self._unsettled = True
        self._fields.fill([*line, *draft.tokens], base, first_output=len(self._owed))
        if not draft.is_chain:
            self._lay_out(draft, 0, len(line))
            for row in range(len(line)):
                self._fields.belongs_to(row, range(self._branches.count))
        self._decode()
        return LlamaScores(self._rows(len(draft) + 1))

    def extend(self, grown: Draft) -> LlamaScores:
        assert self._unsettled, "extend() without a verify() before it"
        assert len(grown) < self.caps.rows, "extend() to more rows than the session has"
        known = len(self._draft)
        self._check_room(self._root + 1 + known, len(grown) - known)
        if known and not self._branches.through:
            self._branches.grow(self._draft)
        self._fields.fill(grown.tokens[known:], self._root + 1 + known, first_output=0)
        self._lay_out(grown, known, 0)
        self._draft = grown
        self._decode()
        return LlamaScores(self._rows(len(grown) - known), known)

    def commit(self, path: Sequence[int], next_token: int) -> None:
        assert self._pending is not None
        assert self._unsettled, "commit() without a verify() before it"
        kept = [*self._owed, self._pending, *(self._draft.tokens[n] for n in path)]
        self._pending = None  # until all of it is done
        if self._branches.count > 1:
            self._keep_winner(path, self._root + 1)
        self._cached.extend(kept)
        rejected = len(path) < len(self._draft)
        if rejected and self._goes_back_to(len(self._cached)):
            self._remove(self._slot, len(self._cached))
            rejected, self._reach = False, 0
        self._owed, self._pending = [], next_token
        self._draft, self._unsettled = EMPTY, rejected  # the next pass then settles it

    def reset(self) -> None:
        """Forget everything."""
        self._owed, self._pending, self._draft = [], None, EMPTY
        self._forget()

    def close(self) -> None:
        """Free the cache, if it is its own; the session is of no use afterwards."""
        context, self._context = self._context, None  # never freed twice
        if context is not None:
            self._lib.llama_batch_free(self._batch)
            if self._slot == 0:
                self._lib.llama_free(context)

    def _check_room(self, base: int, rows: int) -> None:
        if base + rows > self.caps.context:
            raise CacheFull(
                f"A pass of {rows} tokens does not fit: the context of {self.caps.context} tokens"
                f" holds {base}. Raise --context or start a new chat."
            )

    def _forget(self) -> None:
        """Empty this session's sequences, and no others."""
        self._unsettled = True
        self._cached.truncate(0)
        for leaf in range(self._branches.count):
            self._lib.llama_memory_seq_rm(self._memory, self._slot + leaf, -1, -1)
        self._branches, self._unsettled = Branches(), False

    def _keep(self, wanted: int) -> int:
        """Drop what the cache holds beyond `wanted` tokens; returns how many really stay: none
        where it cannot go back to them."""
        if self._unsettled or wanted < len(self._cached):
            self._unsettled = True
            self._cached.truncate(wanted)
            remove = self._lib.llama_memory_seq_rm
            for leaf in range(1, self._branches.count):
                remove(self._memory, self._slot + leaf, -1, -1)
            back = self._goes_back_to(wanted) and remove(self._memory, self._slot, wanted, -1)
            if not back:
                self._forget()
            self._unsettled, self._reach = False, 0
        return len(self._cached)

    def _goes_back_to(self, start: int) -> bool:
        """Whether what the cache holds from position `start` on can be taken back."""
        if not self._has_state:
            return True
        end = self._lib.llama_memory_seq_pos_max(self._memory, self._slot) + 1
        return bool(end - start <= self._reach)

    def _settle(self) -> None:
        """Take back what is not committed: a verify, or a call that was broken off."""
        if not self._unsettled:
            return
        text, pending = self._cached.array.tolist(), self._pending
        self._pending = None  # until the text before it is there again
        left = text[self._keep(len(text)) :]
        while left:
            left = self._read_some(left)
        self._pending = pending

    def _decode(self) -> None:
        self._reach = -1  # a pass that failed may have left anything
        decode(self._context, self._batch)
        self._reach = min(self._batch.n_tokens - 1, self.caps.rollback or 0)

    def _read_some(self, tokens: list[int]) -> list[int]:
        """Read one chunk and return the rest. Chunks end at multiples of the chunk size, so that
        a prompt is cut alike however much of it was reused."""
        n = self._chunk - len(self._cached) % self._chunk
        part = tokens[:n]
        self._unsettled = True
        self._fields.fill(part, len(self._cached), first_output=len(part))
        self._decode()
        # nobody asks for scores, and a GPU would still be at it while the next pass is timed
        self._lib.llama_synchronize(self._context)
        self._cached.extend(part)
        self._unsettled = False
        return tokens[n:]

    def _lay_out(self, tree: Draft, known: int, row: int) -> None:
        """Lay the nodes from `known` on over the batch from `row` on: a sequence for each leaf,
        positions by depth."""
        copy = self._lib.llama_memory_seq_cp
        depths = [*tree.depths(), 0]  # the last one is the root's
        for fork in self._branches.grow(tree):
            end = self._root + 1 + depths[fork.node]
            copy(self._memory, self._slot + fork.source, self._slot + fork.sequence, -1, end)
        for at, node in enumerate(range(known, len(tree)), row):
            self._fields.belongs_to(at, self._branches.through[node])
            self._fields.position[at] = self._root + depths[node]

    def _keep_winner(self, path: Sequence[int], base: int) -> None:
        """Make the winning leaf's cells on `path` the slot's own; free every other leaf's.

        Touches this session's sequences only, unlike llama_memory_seq_keep.
        """
        rm, copy = self._lib.llama_memory_seq_rm, self._lib.llama_memory_seq_cp
        winner = self._branches.one_through(path[-1]) if path else 0
        end = base + len(path)
        if winner:
            self._remove(self._slot, base)
            copy(self._memory, self._slot + winner, self._slot, base, end)
        for leaf in range(1, self._branches.count):
            rm(self._memory, self._slot + leaf, -1, -1)

    def _remove(self, sequence: int, start: int) -> None:
        if not self._lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            raise BackendFailed(
                f"This model's cache could not take back guesses from position {start}."
                " Run it with --proposer none."
            )

    def _rows(self, count: int) -> Row:
        return scores(self._context, count, self.caps.vocab)


class _BatchFields:
    """A llama_batch seen as arrays. Sequences are counted from `slot`."""

    def __init__(self, batch: Any, room: int, slot: int) -> None:
        self._batch, self._slot = batch, slot
        self.position = np.ctypeslib.as_array(batch.pos, (room,))
        self._token = np.ctypeslib.as_array(batch.token, (room,))
        self._sequences = np.ctypeslib.as_array(batch.n_seq_id, (room,))
        self._output = np.ctypeslib.as_array(batch.logits, (room,))
        self._members = [np.ctypeslib.as_array(batch.seq_id[n], (MAX_LEAVES,)) for n in range(room)]

    def fill(self, tokens: Sequence[int], start: int, first_output: int) -> None:
        """A chain in the slot from position `start`; rows from `first_output` on give scores."""
        n = len(tokens)
        self._batch.n_tokens = n
        self._token[:n] = tokens
        self.position[:n] = np.arange(start, start + n)
        self._output[:first_output] = 0
        self._output[first_output:n] = 1
        self._sequences[:n] = 1
        for row in range(n):
            self._members[row][0] = self._slot

    def belongs_to(self, row: int, leaves: Sequence[int]) -> None:
        self._sequences[row] = len(leaves)
        self._members[row][: len(leaves)] = [self._slot + leaf for leaf in leaves]
