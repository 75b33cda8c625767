"""One conversation's cache in llama.cpp: chains in one sequence, trees with one per leaf."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.history import TokenHistory, common_prefix
from edgespec.decoding.session import Caps
from edgespec.errors import BackendFailed, CacheFull
from edgespec_llamacpp.library import last_errors, library, raise_kept_interrupt

MAX_ROWS = 65  # the pending token and 64 guesses
MAX_LEAVES = 64
SLOT = 0  # the sequence of the committed text; leaves of a tree use it and those above


class LlamaScores:
    """Rows of the latest decode, read in place; the next decode overwrites them."""

    def __init__(self, rows: Row) -> None:
        self._rows = rows

    def top(self, node: int) -> int:
        row = self._rows[node - ROOT]
        best = int(row.argmax())
        if not np.isfinite(row[best]):
            raise BackendFailed(
                "The model returned scores that are no numbers; its file may be damaged."
                " Try another quantisation."
            )
        return best

    def logits(self, node: int) -> Row:
        row: Row = self._rows[node - ROOT]
        return row


@dataclass(frozen=True, slots=True)
class Leaves:
    """Which leaf sequences run through each node of a draft, and through the pending token."""

    of_node: tuple[tuple[int, ...], ...]
    count: int

    @classmethod
    def of(cls, draft: Draft) -> Leaves:
        has_child = set(draft.parents)
        leaves = [node for node in range(len(draft)) if node not in has_child]
        through: list[list[int]] = [[] for _ in range(len(draft))]
        for number, leaf in enumerate(leaves):
            node = leaf
            while node != ROOT:
                through[node].append(number)
                node = draft.parents[node]
        return cls(tuple(tuple(t) for t in through), max(1, len(leaves)))


class LlamaSession:
    """The cache of one conversation in a llama.cpp context of its own.

    chunk: tokens of a prompt that are read in one pass. ride: up to so many unread tokens wait
    for the next verify; that saves a pass, but its width, and with it the rounding, then varies.
    The cache holds `_cached`; `_owed` are the tokens that wait.
    """

    def __init__(self, context: Any, caps: Caps, chunk: int, ride: int = 0) -> None:
        self.caps, self._ride = caps, ride
        self._lib = library()
        self._context, self._chunk = context, chunk
        self._memory = self._lib.llama_get_memory(context)
        self._batch = self._lib.llama_batch_init(chunk + MAX_ROWS, 0, MAX_LEAVES)
        self._fields = _BatchFields(self._batch, chunk + MAX_ROWS)
        self._cached = TokenHistory()
        self._owed: list[int] = []
        self._pending: int | None = None
        self._draft = EMPTY
        self._leaves = Leaves((), 1)
        self._unsettled = False  # the cache holds rows of a verify that was not committed

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        tokens = np.ascontiguousarray(tokens, dtype=np.int32)
        self._settle()
        keep = self._keep(common_prefix(self._cached.array, tokens[:-1]))
        self._owed, self._pending = [], None
        yield keep
        body = tokens[keep:-1].tolist()
        while len(body) > self._ride:
            body = self._read_some(body)
            yield len(self._cached)
        self._owed, self._pending = body, int(tokens[-1])

    def verify(self, draft: Draft) -> LlamaScores:
        assert self._pending is not None, "verify() before a prompt was read"
        assert len(draft) < self.caps.rows, "verify() of more rows than the session has"
        self._settle()
        line = [*self._owed, self._pending]
        base = len(self._cached)
        if base + len(line) + len(draft) > self.caps.context:
            raise CacheFull(
                f"A pass of {len(line) + len(draft)} tokens does not fit: the context of"
                f" {self.caps.context} tokens holds {base}. Raise --context or start a new chat."
            )
        self._draft = draft
        self._fields.fill([*line, *draft.tokens], base, first_output=len(self._owed))
        if not draft.is_chain:
            self._spread(draft, len(line), base)
        self._unsettled = True
        self._decode()
        return LlamaScores(self._rows(len(draft) + 1))

    def commit(self, path: Sequence[int], next_token: int) -> None:
        assert self._pending is not None
        assert self._unsettled, "commit() without a verify() before it"
        base = len(self._cached) + len(self._owed) + 1
        if self._draft.is_chain:
            if len(path) < len(self._draft):
                self._remove(SLOT, base + len(path))
        else:
            self._keep_winner(path, base)
        self._cached.extend([*self._owed, self._pending, *(self._draft.tokens[n] for n in path)])
        self._owed, self._pending = [], next_token
        self._draft, self._unsettled = EMPTY, False

    def reset(self) -> None:
        """Forget everything."""
        self._lib.llama_memory_clear(self._memory, True)
        self._cached.truncate(0)
        self._owed, self._pending, self._draft, self._unsettled = [], None, EMPTY, False

    def close(self) -> None:
        """Free the cache; the session is of no use afterwards."""
        if self._context is not None:
            self._lib.llama_batch_free(self._batch)
            self._lib.llama_free(self._context)
            self._context = None

    def _keep(self, wanted: int) -> int:
        """Drop what the cache holds beyond `wanted` tokens; returns how many really stay."""
        if wanted < len(self._cached) and not self._lib.llama_memory_seq_rm(
            self._memory, SLOT, wanted, -1
        ):
            # a state that cannot go back to this place is read anew
            self._lib.llama_memory_clear(self._memory, False)
            wanted = 0
        self._cached.truncate(wanted)
        return wanted

    def _settle(self) -> None:
        """Take back a verify that nobody committed."""
        if not self._unsettled:
            return
        self._unsettled = False
        for leaf in range(1, self._leaves.count if not self._draft.is_chain else 1):
            self._lib.llama_memory_seq_rm(self._memory, leaf, -1, -1)
        if not self._lib.llama_memory_seq_rm(self._memory, SLOT, len(self._cached), -1):
            again = self._cached.array.tolist()
            self._lib.llama_memory_clear(self._memory, False)
            self._cached.truncate(0)
            while again:
                again = self._read_some(again)

    def _read_some(self, tokens: list[int]) -> list[int]:
        """Read one chunk and return the rest. Chunks end at multiples of the chunk size, so that
        a prompt is cut alike however much of it was reused."""
        n = self._chunk - len(self._cached) % self._chunk
        part = tokens[:n]
        self._fields.fill(part, len(self._cached), first_output=len(part))
        self._decode()
        self._cached.extend(part)
        return tokens[n:]

    def _spread(self, draft: Draft, line: int, base: int) -> None:
        """Lay a tree over the batch: a sequence for each leaf, positions by depth."""
        self._leaves = Leaves.of(draft)
        everyone = tuple(range(self._leaves.count))
        for leaf in everyone[1:]:
            self._lib.llama_memory_seq_cp(self._memory, SLOT, leaf, -1, -1)
        for row in range(line):
            self._fields.belongs_to(row, everyone)
        for node, depth in enumerate(draft.depths()):
            self._fields.belongs_to(line + node, self._leaves.of_node[node])
            self._fields.position[line + node] = base + line - 1 + depth

    def _keep_winner(self, path: Sequence[int], base: int) -> None:
        """Make the winning leaf's cells the slot's own; free every other leaf's.

        Touches this session's sequences only, unlike llama_memory_seq_keep.
        """
        rm, copy = self._lib.llama_memory_seq_rm, self._lib.llama_memory_seq_cp
        winner = self._leaves.of_node[path[-1]][0] if path else SLOT
        end = base + len(path)
        if winner != SLOT:
            self._remove(SLOT, base)
            copy(self._memory, winner, SLOT, base, end)
        for leaf in range(1, self._leaves.count):
            rm(self._memory, leaf, -1, -1)
        self._remove(SLOT, end)

    def _remove(self, sequence: int, start: int) -> None:
        if not self._lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            raise BackendFailed(
                f"This model's cache could not take back guesses from position {start}."
                " Run it with --proposer none."
            )

    def _decode(self) -> None:
        result = self._lib.llama_decode(self._context, self._batch)
        raise_kept_interrupt()
        if result == 0:
            return
        if result == 1:
            raise CacheFull(
                f"The cache has no room for {self._batch.n_tokens} more tokens."
                " Raise --context or start a new chat."
            )
        raise BackendFailed(f"llama.cpp could not run the model (code {result}): {last_errors()}")

    def _rows(self, count: int) -> Row:
        pointer = self._lib.llama_get_logits(self._context)  # waits for the device
        kind = ctypes.c_float * (count * self.caps.vocab)
        memory: Any = kind.from_address(_address(pointer))
        rows: Row = np.frombuffer(memory, dtype=np.float32).reshape(count, self.caps.vocab)
        return rows


class _BatchFields:
    """A llama_batch seen as arrays."""

    def __init__(self, batch: Any, room: int) -> None:
        self._batch = batch
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
            self._members[row][0] = SLOT

    def belongs_to(self, row: int, leaves: Sequence[int]) -> None:
        self._sequences[row] = len(leaves)
        self._members[row][: len(leaves)] = leaves


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0
