"""A session made of a table, and the contract that every backend's session must pass.

For tests, here and of adapters elsewhere: no weights, no mocks, and a cache that really can be
wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgespec.decoding.draft import EMPTY, ROOT, Draft, Row, Tokens
from edgespec.decoding.history import common_prefix
from edgespec.decoding.session import Caps, Scores, Session
from edgespec.errors import CacheFull


@dataclass(frozen=True, slots=True)
class TableScores:
    rows: dict[int, Row]

    def top(self, node: int) -> int:
        return int(self.rows[node].argmax())

    def logits(self, node: int) -> Row:
        return self.rows[node]


class TableSession:
    """Logits depend on the last three tokens that are really in the cache, so a stale row shows.

    noise > 0 gives a noisy copy of the same table: a drafter whose acceptance can be tuned.
    cells: room in the cache, where it is smaller than `context` (a cache shared with others).
    """

    def __init__(
        self, vocab: int, seed: int = 0, context: int = 512, noise: float = 0.0, cells: int = 0
    ) -> None:
        self.caps = Caps(vocab, context, tree=True)
        self._rows = _table(vocab, seed, noise)
        self._cells = cells or context
        self.cache: list[int] = []
        self.pending: int | None = None
        self.forwards = 0
        self.widths: list[int] = []
        self._draft = EMPTY
        self._lines: dict[int, list[int]] = {}  # what each node of the draft follows, and itself

    def prefill(self, tokens: Tokens) -> Iterator[int]:
        same = self.held(tokens)
        self.cache, self.pending = self.cache[:same], None
        yield same
        for start in range(same, len(tokens) - 1, 64):
            self.cache += tokens[start : min(start + 64, len(tokens) - 1)].tolist()
            yield len(self.cache)
        self.pending = int(tokens[-1])

    def held(self, tokens: Tokens) -> int:
        return common_prefix(np.asarray(self.cache, dtype=np.int32), tokens[:-1])

    def verify(self, draft: Draft) -> Scores:
        assert self.pending is not None, "verify() before the prompt was read"
        self._lines = {}
        self._draft = EMPTY
        return self._pass({ROOT: [*self.cache[-3:], self.pending]}, draft)

    def extend(self, grown: Draft) -> Scores:
        assert self._lines, "extend() without a verify() before it"
        return self._pass({}, grown)

    def _pass(self, lines: dict[int, list[int]], grown: Draft) -> Scores:
        known = len(self._draft)
        if len(self.cache) + 1 + len(grown) > self._cells:
            raise CacheFull(f"{len(grown) + 1} rows do not fit beside {len(self.cache)}.")
        for node in range(known, len(grown)):
            above = {**self._lines, **lines}[grown.parents[node]]
            lines[node] = [*above, grown.tokens[node]]
        self._lines.update(lines)
        self._draft = grown
        self.forwards += 1
        self.widths.append(len(lines))
        return TableScores({node: self.row(line) for node, line in lines.items()})

    def commit(self, path: Sequence[int], next_token: int) -> None:
        assert self.pending is not None
        self._lines = {}
        self.cache += [self.pending, *(self._draft.tokens[node] for node in path)]
        self.pending = next_token

    def reset(self) -> None:
        self.cache, self.pending, self._draft, self._lines = [], None, EMPTY, {}

    def row(self, history: Sequence[int]) -> Row:
        """The scores after `history`, float32 [vocab]."""
        a, b, c = ([0, 0, 0, *history])[-3:]
        row: Row = self._rows[a, b, c]
        return row


def _table(vocab: int, seed: int, noise: float) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    table = 2.0 * rng.standard_normal((vocab,) * 4, dtype=np.float32)
    if noise:
        table = table + noise * np.random.default_rng(seed + 1).standard_normal(
            table.shape, dtype=np.float32
        )
    return table


@dataclass(frozen=True, slots=True)
class ContractCheck:
    """How strict the contract is: the largest difference allowed between two ways to one row."""

    tolerance: float = 0.0
    rounds: int = 50
    seed: int = 0


def check_session(make: Callable[[], Session], check: ContractCheck | None = None) -> None:
    """Run the contract of `Session` against fresh sessions from `make`.

    Every claim is checked against reading the same tokens into a session that has never rolled
    back. Raises AssertionError naming the claim that does not hold.
    """
    check = check or ContractCheck()
    rng = np.random.default_rng(check.seed)
    _verify_equals_step_by_step(make, check, rng)
    _growth_equals_one_verify(make, check, rng)
    _rollback_leaves_nothing(make, check, rng)
    _prefix_is_reused(make, check, rng)
    _abandoned_prefill_is_harmless(make, check, rng)


def read(session: Session, tokens: Sequence[int]) -> int:
    """Make `tokens` the session's committed tokens; returns how many were reused."""
    steps = list(session.prefill(np.asarray(tokens, dtype=np.int32)))
    return steps[0]


def _held(session: Session, tokens: Sequence[int]) -> int:
    return session.held(np.asarray(tokens, dtype=np.int32))


def random_draft(session: Session, rng: np.random.Generator, nodes: int) -> Draft:
    """A random tree where the session takes trees, else a random chain, as long as it allows."""
    rollback = session.caps.rollback
    nodes = nodes if rollback is None else min(nodes, rollback)
    tokens = [int(t) for t in rng.integers(0, session.caps.vocab, nodes)]
    if not session.caps.tree:
        return Draft.chain(tokens, "random")
    parents = [int(rng.integers(max(-1, i - 4), i)) for i in range(nodes)]
    return Draft(tokens, parents, ("random",) * nodes, (None,) * nodes)


def random_path(draft: Draft, rng: np.random.Generator) -> list[int]:
    """A path from the root that stops anywhere."""
    path: list[int] = []
    node = ROOT
    while (children := draft.children(node)) and rng.random() < 0.7:
        node = int(rng.choice(children))
        path.append(node)
    return path


def _prompt(session: Session, rng: np.random.Generator, length: int = 12) -> list[int]:
    return [int(t) for t in rng.integers(0, session.caps.vocab, length)]


def _fresh_row(make: Callable[[], Session], tokens: Sequence[int]) -> Row:
    session = make()
    read(session, tokens)
    return session.verify(EMPTY).logits(ROOT).copy()


def _close(a: Row, b: Row, check: ContractCheck, claim: str) -> None:
    difference = float(np.abs(a - b).max())
    assert difference <= check.tolerance, f"{claim}: rows differ by {difference:g}"


def _line(draft: Draft, node: int) -> list[int]:
    """The drafted tokens from the root to `node`."""
    line: list[int] = []
    while node != ROOT:
        line.append(draft.tokens[node])
        node = draft.parents[node]
    return line[::-1]


def _verify_equals_step_by_step(
    make: Callable[[], Session], check: ContractCheck, rng: np.random.Generator
) -> None:
    session = make()
    prompt = _prompt(session, rng)
    read(session, prompt)
    draft = random_draft(session, rng, 7)
    scores = session.verify(draft)
    rows = {node: scores.logits(node).copy() for node in range(ROOT, len(draft))}
    tops = {node: scores.top(node) for node in rows}
    for node, row in rows.items():
        claim = f"node {node} of one verify equals reading its path"
        _close(row, _fresh_row(make, [*prompt, *_line(draft, node)]), check, claim)
        assert tops[node] == int(row.argmax()), "top() is the argmax of logits()"


def _growth_equals_one_verify(
    make: Callable[[], Session], check: ContractCheck, rng: np.random.Generator
) -> None:
    grown, whole = make(), make()
    committed = _prompt(grown, rng)
    read(grown, committed)
    for number in range(check.rounds // 5):
        draft = random_draft(grown, rng, int(rng.integers(2, 25)))
        sizes = sorted({int(n) for n in rng.integers(0, len(draft) + 1, 3)} | {len(draft)})
        read(whole, committed)
        scores = whole.verify(draft)
        rows = {node: scores.logits(node).copy() for node in range(ROOT, len(draft))}
        known = ROOT
        for size in sizes:
            part = draft.cut(size)
            scores = grown.verify(part) if known == ROOT else grown.extend(part)
            for node in range(known, size):
                claim = f"node {node} of a tree that grew equals the node of one verify"
                _close(scores.logits(node).copy(), rows[node], check, claim)
                assert scores.top(node) == int(scores.logits(node).argmax())
            known = size
        if number % 4 == 3:
            continue  # given up: the next round must not see it
        path, next_token = random_path(draft, rng), int(rng.integers(0, grown.caps.vocab))
        grown.commit(path, next_token)
        committed += [*(draft.tokens[node] for node in path), next_token]
    row = grown.verify(EMPTY).logits(ROOT).copy()
    _close(row, _fresh_row(make, committed), check, "of a tree that grew only the path is left")


def _rollback_leaves_nothing(
    make: Callable[[], Session], check: ContractCheck, rng: np.random.Generator
) -> None:
    session = make()
    committed = _prompt(session, rng)
    read(session, committed)
    for number in range(check.rounds):
        draft = random_draft(session, rng, int(rng.integers(0, 9)))
        session.verify(draft)
        path = random_path(draft, rng)
        next_token = int(rng.integers(0, session.caps.vocab))
        session.commit(path, next_token)
        committed += [*(draft.tokens[node] for node in path), next_token]
        if number % 5 == 4:
            row = session.verify(EMPTY).logits(ROOT).copy()
            claim = f"after {number + 1} rounds only committed tokens are left"
            _close(row, _fresh_row(make, committed), check, claim)


def _prefix_is_reused(
    make: Callable[[], Session], check: ContractCheck, rng: np.random.Generator
) -> None:
    session = make()
    first = _prompt(session, rng, 30)
    assert read(session, first) == 0, "a fresh session has nothing to reuse"
    session.verify(EMPTY)
    session.commit((), 1)
    second = [*first, 1, *_prompt(session, rng, 9)]
    held = _held(session, second)
    assert held >= len(first), "a longer prompt is held as far as what was committed"
    assert read(session, second) == held, "what is held of a longer prompt is reused"
    _close(
        session.verify(EMPTY).logits(ROOT).copy(),
        _fresh_row(make, second),
        check,
        "a reused prefix reads like a fresh one",
    )
    third = [*first[:10], *_prompt(session, rng, 5)]
    held = _held(session, third)
    reused = read(session, third)
    assert reused <= held, "no more is reused than is held"
    if session.caps.rollback is None:
        assert reused == held, "what is held of a prompt that branches off is reused"
        assert reused >= 10, "a prompt that branches off reuses the common part"
    _close(
        session.verify(EMPTY).logits(ROOT).copy(),
        _fresh_row(make, third),
        check,
        "a shorter prompt leaves nothing of the longer one",
    )


def _abandoned_prefill_is_harmless(
    make: Callable[[], Session], check: ContractCheck, rng: np.random.Generator
) -> None:
    session = make()
    tokens = _prompt(session, rng, 200)
    steps = session.prefill(np.asarray(tokens, dtype=np.int32))
    next(steps)
    next(steps, None)
    close = getattr(steps, "close", None)
    if close is not None:
        close()
    read(session, tokens)
    _close(
        session.verify(EMPTY).logits(ROOT).copy(),
        _fresh_row(make, tokens),
        check,
        "a prompt read after an abandoned attempt is read whole",
    )
