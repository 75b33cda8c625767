"""The whole of what a backend must do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from edgespec.decoding.draft import Draft, Row, Tokens

MOST_ROWS = 65  # of one pass: the pending token and 64 guesses
CPU_CHUNK, GPU_CHUNK = 128, 512  # tokens of a prompt in one pass; between passes one can cancel


@dataclass(frozen=True, slots=True)
class Caps:
    """What a session can do.

    context   tokens its cache holds.
    rows      positions one verify() takes, the pending token included.
    tree      whether verify() takes drafts with siblings.
    rollback  how many drafted tokens it can take back; None = any number.
    hidden    layers whose hidden states it can hand to a drafter; None = none.
    """

    vocab: int
    context: int
    rows: int = MOST_ROWS
    tree: bool = False
    rollback: int | None = None
    hidden: tuple[int, ...] | None = None


class Scores(Protocol):
    """Target scores of one pass, valid until the next verify(), extend() or prefill().

    Row ROOT (-1) scores what follows the pending token, row i what follows draft node i.
    Rows stay where they are until asked for.
    """

    def top(self, node: int) -> int:
        """Token with the highest score; the lowest id among equals."""
        ...

    def logits(self, node: int) -> Row:
        """float32 [vocab]; a view, not to be written to."""
        ...


class Session(Protocol):
    """One conversation's tokens and cache.

    Invariant between calls: the cache holds every committed token but the last, `pending`.
    """

    @property
    def caps(self) -> Caps: ...

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        """Make the committed tokens equal `tokens`, reusing the longest common prefix.

        Yields how many tokens the cache holds: first what was reused, then after each chunk.
        May be abandoned between chunks; what was read stays usable. A few last tokens may
        wait and ride with the next verify().
        """
        ...

    def held(self, tokens: Tokens) -> int:
        """How many of `tokens`, from the first on, prefill() would not have to read; changes
        nothing. A state that cannot go back may then keep fewer.
        """
        ...

    def verify(self, draft: Draft) -> Scores:
        """One forward pass over [pending, *draft]; nothing in it that commit() cannot drop.

        Raises: CacheFull when the pass does not fit.
        """
        ...

    def extend(self, grown: Draft) -> Scores:
        """One forward pass over the nodes that `grown` has beyond the latest verify() or extend().

        grown: begins with the draft of that pass, of which nothing was committed, and keeps to
        the limits of verify(). The scores are those of the new nodes only.
        Raises: CacheFull when the pass does not fit; the draft is then to be given up.
        """
        ...

    def commit(self, path: Sequence[int], next_token: int) -> None:
        """Keep the draft nodes in `path`, drop the others, make `next_token` pending."""
        ...

    def reset(self) -> None:
        """Forget everything."""
        ...
