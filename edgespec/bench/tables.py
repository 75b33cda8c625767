"""Figures as tables of words, the same for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edgespec.bench.figures import Figures, Results, Spread
from edgespec.bench.runner import REFERENCE

NOTHING = "-"  # what was not measured
_MEAN = "geometric mean"

Extra = Mapping[str, Mapping[str, float]]
"""More columns beside the arms: a name, and its speed-up by category."""


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, the names of the columns, and rows of cells. best: row and column of each cell
    that wins its row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()

    def turned(self) -> Table:
        """The same with rows and columns exchanged; a best cell stays one."""
        columns = tuple(zip(self.head, *self.rows, strict=True))
        best = frozenset((column - 1, row + 1) for row, column in self.best)
        return Table(self.title, columns[0], columns[1:], best)

    def split(self) -> list[Table]:
        """One table of two columns for each row."""
        return [
            Table(
                f"{self.title}: {name}",
                (self.head[0], name),
                tuple(zip(self.head[1:], cells, strict=True)),
                frozenset((column - 1, 1) for at, column in self.best if at == row),
            )
            for row, (name, *cells) in enumerate(self.rows)
        ]


def speedups(results: Results, extra: Extra) -> Table:
    """Categories down, arms across; the yardstick's own speed first."""
    arms = [arm for arm in results.arms if arm != results.yardstick]
    rows, best = [], set()
    for row, category in enumerate(results.categories):
        cells = [results.figures(arm, category).ratio for arm in arms]
        others = [number(extra[name].get(category)) for name in extra]
        plain = results.figures(results.yardstick, category).speed
        rows.append((category, _median(plain, 1), *(_range(c) for c in cells), *others))
        if (winner := results.best(category)) in arms:
            best.add((row, 2 + arms.index(winner)))
    means = [number(results.mean_ratio(arm)) for arm in arms]
    rows.append((_MEAN, "", *means, *("" for _ in extra)))
    if (winner := results.best(None)) in arms:
        best.add((len(rows) - 1, 2 + arms.index(winner)))
    return Table(
        f"Decode speed, times {results.yardstick}: median (smallest to largest)",
        ("category", f"{results.yardstick}, tokens/s", *arms, *extra),
        tuple(rows),
        frozenset(best),
    )


def by_category(results: Results, title: str, of: Callable[[Figures], Spread | None]) -> Table:
    """One figure of every arm in every category."""
    rows = [
        (category, *(_range(of(results.figures(arm, category))) for arm in results.arms))
        for category in results.categories
    ]
    return Table(title, ("category", *results.arms), tuple(rows))


def waiting(results: Results) -> Table:
    """What a reader waits for, over all categories."""
    rows = []
    for arm in results.arms:
        f = results.figures(arm)
        rows.append(
            (
                arm,
                _range(f.speed, 1),
                _range(f.first_token_s),
                _range(f.first_sentence_s),
                number(f.gap_p50_s, 1, 1e3),
                number(f.gap_p95_s, 1, 1e3),
            )
        )
    head = ("arm", "tokens/s", "first token, s", "first sentence, s", "gap p50, ms", "p95, ms")
    return Table("What a reader waits for, all categories", head, tuple(rows))


def guessing(results: Results) -> Table:
    """What was guessed and what it cost, over all categories, for arms of edgespec's loop."""
    rows = []
    for arm in results.arms:
        r = results.figures(arm).rounds
        if r is None:
            continue
        times = (r.draft_ms, r.verify_ms, r.overhead_ms)
        rows.append(
            (
                arm,
                number(r.tokens_per_round),
                f"{r.accepted} / {r.tested} / {r.drafted}",
                NOTHING if r.acceptance_rate is None else f"{r.acceptance_rate:.0%}",
                *(f"{ms:.2f} ({share:.0%})" for ms, share in zip(times, r.shares, strict=True)),
            )
        )
    head = (
        "arm",
        "tokens per round",
        "accepted / tested / drafted",
        "acceptance",
        "draft, ms a round",
        "verify, ms a round",
        "all else, ms a round",
    )
    return Table("Guesses and where the time goes, all categories", head, tuple(rows))


def positions(results: Results, most: int = 12) -> Table:
    """Share of tested guesses that were right, by their position in the draft."""
    measured = {arm: r for arm in results.arms if (r := results.figures(arm).rounds) and r.drafted}
    longest = min(most, max((len(r.tested_at) for r in measured.values()), default=0))
    rows = [
        (arm, *(_share(r.accepted_at, r.tested_at, n) for n in range(longest)))
        for arm, r in measured.items()
    ]
    head = ("arm", *(str(n + 1) for n in range(longest)))
    return Table("Acceptance by position in the draft: right / tested", head, tuple(rows))


def sameness(results: Results) -> Table:
    """How many answers equal those of `none`."""
    rows = []
    for arm in results.arms:
        s = results.figures(arm).sameness
        if s is not None:
            rows.append((arm, f"{s.same} of {s.compared}", _scientific(s.margins)))
    head = ("arm", f"same as {REFERENCE}", "top-2 margin where they part")
    return Table(f"Answers identical to those of {REFERENCE}", head, tuple(rows))


def cost(seconds: Mapping[int, float], context: int, widths: Mapping[int, int]) -> Table:
    """T(n) behind so much text, and how often `auto` made a pass of that width."""
    shown = sorted({n for n in seconds if n <= 16} | set(widths))
    rows = [
        (
            str(n),
            number(seconds.get(n), 2, 1e3),
            number(seconds[n] / seconds[1]) if n in seconds and 1 in seconds else NOTHING,
            str(widths.get(n, 0)),
        )
        for n in shown
    ]
    head = ("rows", "T(n), ms", "times T(1)", "passes of auto")
    title = f"What a verify pass costs after {context} tokens of text"
    return Table(title, head, tuple(rows))


def number(value: float | None, digits: int = 2, scale: float = 1.0) -> str:
    return NOTHING if value is None else f"{value * scale:.{digits}f}"


def _median(spread: Spread | None, digits: int = 2) -> str:
    return NOTHING if spread is None else f"{spread.median:.{digits}f}"


def _range(spread: Spread | None, digits: int = 2) -> str:
    if spread is None:
        return NOTHING
    if spread.count == 1:
        return f"{spread.median:.{digits}f}"
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}-{spread.high:.{digits}f})"


def _scientific(spread: Spread | None) -> str:
    if spread is None:
        return NOTHING
    return f"{spread.median:.2g} ({spread.low:.2g}-{spread.high:.2g})"


def _share(accepted: tuple[int, ...], tested: tuple[int, ...], at: int) -> str:
    if at >= len(tested) or not tested[at]:
        return NOTHING
    return f"{accepted[at] / tested[at]:.0%} of {tested[at]}"
