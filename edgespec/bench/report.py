"""A whole benchmark, told as JSON, as Markdown, and in one line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from edgespec.bench import tables
from edgespec.bench.agreement import MUCH, PAYS, Side
from edgespec.bench.arms import PLAIN_LOOP
from edgespec.bench.figures import Results
from edgespec.bench.runner import REFERENCE, Outcome, Record
from edgespec.bench.surroundings import Surroundings
from edgespec.bench.tables import Extra, Table
from edgespec.models.shown import shown

TOO_LITTLE = "Too little was measured to compare anything."
FIRST_LINE = "# Benchmark by edgespec"
_DEFINITIONS = (
    "Decode speed: tokens after the first round / seconds since the first round.",
    "Speed-up: decode speed / the yardstick's on the same turn of the same prompt in the same"
    " run; medians over prompts and runs, with the smallest and the largest.",
    "Gap: seconds between arrivals; the tokens of one round arrive together.",
    "Acceptance: accepted / tested guesses; a guess behind a wrong one is not tested.",
    "Tokens per round: committed tokens / verify passes, the target's own token included.",
    "Both caches are emptied before each conversation, and times to first token and first sentence"
    " are those of its first turn, of a cold prompt; drafters read each prompt anew within the time"
    " that counts.",
    "A peer counts and times in its own way where it tells, and may keep prompts of its own.",
    "auto keeps what it learns about its drafters from answer to answer, as in a chat.",
)


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds by rows of a pass: as measured before any answer, and as it was in the end.

    context: tokens of text behind which all of these are so.
    """

    before: Mapping[int, float]
    after: Mapping[int, float]
    context: int


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is told. extra: more columns of speed-ups, by category."""

    outcome: Outcome
    surroundings: Surroundings
    costs: Costs
    peak_memory_bytes: int
    notes: tuple[str, ...] = ()
    extra: Extra = field(default_factory=dict)

    @property
    def results(self) -> Results:
        return Results(self.outcome)

    def all_notes(self) -> list[str]:
        """Everything a reader must know before believing a figure."""
        notes = [*self.notes, *self.outcome.notes]
        if self.outcome.cut:
            notes.insert(0, f"Partial: {self.outcome.cut}; only what is here was measured.")
        faults = dict.fromkeys(
            f"{record.arm}: {fault}"
            for record in self.outcome.records
            for fault in record.answer.faults
        )
        return [shown(note) for note in (*notes, *self.busy(), *faults)]

    def verdict(self) -> str:
        """Which arm to prefer, in one line."""
        line = verdict(self.results, bool(self.busy()))
        return f"Partial: {line}" if self.outcome.cut else line

    def as_json(self) -> dict[str, Any]:
        results, outcome = self.results, self.outcome
        return {
            "partial": outcome.cut or None,
            "verdict": self.verdict(),
            "surroundings": self.surroundings.as_json(),
            "peak_memory_bytes": self.peak_memory_bytes,
            "loads": [asdict(load) for load in outcome.loads],
            "notes": self.all_notes(),
            "runs": outcome.plan.runs,
            "tokens": outcome.plan.tokens,
            "yardstick": outcome.plan.yardstick,
            "prompts": [prompt.id for prompt in outcome.plan.prompts],
            "arms": {
                arm: {
                    "geometric_mean_speedup": results.mean_ratio(arm),
                    "overall": results.figures(arm).as_json(),
                    "categories": {
                        category: results.figures(arm, category).as_json()
                        for category in results.categories
                    },
                    "passes_by_rows": {str(n): c for n, c in results.widths(arm).items()},
                }
                for arm in results.arms
            },
            "extra": {name: dict(column) for name, column in self.extra.items()},
            "none_spread_between_runs": results.unsteadiness,
            "pass_seconds_context": self.costs.context,
            "pass_seconds_before": {str(n): s for n, s in self.costs.before.items()},
            "pass_seconds_after": {str(n): s for n, s in self.costs.after.items()},
            "answers": [_record(record) for record in outcome.records],
            "parted": [
                {
                    **_place(comparison.record),
                    "at": comparison.parted_at,
                    "margin": comparison.margin,
                }
                for comparison in outcome.comparisons
                if comparison.parted_at is not None
            ],
        }

    def short_tables(self) -> list[Table]:
        """What fits a terminal."""
        results = self.results
        return [
            tables.speedups(results, self.extra),
            tables.waiting(results),
            tables.guessing(results),
            tables.sameness(results),
        ]

    def tables(self) -> list[Table]:
        """All there is."""
        results = self.results
        return [
            *self.short_tables(),
            tables.by_category(results, "Tokens per second", lambda f: f.speed),
            tables.by_category(results, "Time to first token, s", lambda f: f.first_token_s),
            tables.by_category(
                results, "Time to first whole sentence, s", lambda f: f.first_sentence_s
            ),
            tables.positions(results),
            tables.cost(self.costs.after, self.costs.context, results.widths("auto")),
        ]

    def markdown(self) -> str:
        where, plan = self.surroundings, self.outcome.plan
        parts = [
            FIRST_LINE,
            f"**{self.verdict()}**",
            _code(where.command),
            f"Prompts: {len(plan.prompts)}, runs: {plan.runs}, tokens: at most {plan.tokens} an"
            f" answer; arms took turns. Exactness: {where.exactness}.",
            "\n".join(f"- {_md(note)}" for note in self.all_notes()),
            *(_markdown(table) for table in self.tables() if table.rows),
            "## Surroundings",
            "\n".join(f"- {_md(line)}" for line in self._where()),
            "## What the figures mean",
            "\n".join(f"- {line}" for line in _DEFINITIONS),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _where(self) -> list[str]:
        where, host = self.surroundings, self.surroundings.host
        loads = [f"{tables.number(x.before)} to {tables.number(x.after)}" for x in self._loads()]
        lines = [
            f"{host.cpu}, {host.cores or 'unknown'} physical cores,"
            f" {where.usable_cores} logical cores usable, {host.memory_bytes / 2**30:.1f} GiB",
            host.system,
            f"{where.backend} on {where.device}, threads: {where.threads or 'physical cores'}",
            ", ".join(f"{name} {version}" for name, version in where.versions.items()),
            *(
                f"{file.name}, {file.bytes} bytes, sha256 {file.sha256 or 'not computed'}"
                for file in where.files
            ),
            f"peak memory of the process: {self.peak_memory_bytes / 2**20:.0f} MiB; local arms"
            " share it, so it cannot be told by arm",
            f"load average before and after each run: {'; '.join(loads) or 'not known'}",
        ]
        if where.clock_mhz is not None:
            lines.append(f"processor clock at the start: {where.clock_mhz:.0f} MHz")
        if where.temperature_c is not None:
            lines.append(f"processor temperature at the start: {where.temperature_c:.0f} °C")
        return lines

    def _loads(self) -> list[Any]:
        return [load for load in self.outcome.loads if load.before is not None]

    def busy(self) -> list[str]:
        """Why what was measured may not hold on a quiet machine."""
        cores, results = self.surroundings.usable_cores, self.results
        loads = [x for load in self._loads() for x in (load.before, load.after) if x is not None]
        why = []
        if loads and max(loads) > cores:
            why.append(f"its load average reached {max(loads):.1f} on {cores} cores")
        if results.unsteady:
            why.append(f"{REFERENCE} differed by {results.unsteadiness:.0%} between runs")
        return [f"The machine was busy: {' and '.join(why)}."] if why else []


def verdict(results: Results, busy: bool = False) -> str:
    """Which arm is clearly the fastest over all categories, and where it is best and worst."""
    plain, known = results.yardstick, _means(results)
    if not known:
        return TOO_LITTLE
    faster = {arm: mean for arm, mean in known.items() if _clearly_faster(results, arm, mean)}
    if not faster:
        arm = max(known, key=lambda arm: known[arm])
        if known[arm] < PAYS or results.side(arm) is Side.SLOWER:
            return f"No arm was clearly faster than {plain} over {_over(results)}."
        return _unclear(arm, plain, busy or results.unsteady)
    best = max(faster, key=lambda arm: faster[arm])
    line = f"{best} was the fastest: {faster[best]:.2f} times {plain} over {_over(results)}"
    if span := _span(results, best):
        line += f", {span}"
    auto = known.get("auto") if best != "auto" else None
    return f"{line}; auto had {auto:.2f}." if auto is not None else f"{line}."


def advice(results: Results, drafter: bool, busy: bool = False) -> str:
    """What to use on this machine with this pair, in one line."""
    local = {
        arm: mean
        for arm, mean in _means(results).items()
        if not arm.startswith("peer:") and arm != PLAIN_LOOP
    }
    if not local or not results.everywhere:
        return "Too little was measured to advise; give it more time without --quick."
    faster = {arm: mean for arm, mean in local.items() if _clearly_faster(results, arm, mean)}
    if not faster:
        best = max(local, key=lambda arm: local[arm])
        if results.side(best) is Side.UNCLEAR and _pays_somewhere(results, best):
            line = _unclear(best, results.yardstick, busy or results.unsteady)
            return f"No advice: {line[0].lower()}{line[1:]}"
        return _leave_off(results, local, drafter)
    best = max(faster, key=lambda arm: faster[arm])
    if faster.get("auto", 0.0) >= faster[best] / PAYS:
        best = "auto"
    how = "" if best == "auto" else f" ({_flags(best)})"
    thing = "this drafter" if drafter and not best.startswith("ngram") else "this target"
    return f"On this machine, use {best} with {thing}{how}: {_each(results, best)}."


def _leave_off(results: Results, means: Mapping[str, float], drafter: bool) -> str:
    what = "this drafter" if drafter else "guessing"
    line = f"{what} does not pay: leave it off (--proposer none)"
    if means.get("auto", 0.0) > 1 / PAYS:
        line += ", or keep auto, which costs nothing"
    best = max(means, key=lambda arm: means[arm])
    return f"On this machine, with this pair, {line}; {_each(results, best)}."


def _means(results: Results) -> dict[str, float]:
    """Mean speed-ups of the arms that are compared, where there is one for each category."""
    others = [arm for arm in results.arms if arm != results.yardstick]
    return {arm: mean for arm in others if (mean := results.mean_ratio(arm)) is not None}


def _clearly_faster(results: Results, arm: str, mean: float) -> bool:
    return mean >= PAYS and results.side(arm) is Side.FASTER


def _pays_somewhere(results: Results, arm: str) -> bool:
    """Whether some pair speaks for an arm that others speak against."""
    ratio = results.figures(arm).ratio
    return ratio is not None and ratio.high >= MUCH


def _unclear(arm: str, plain: str, busy: bool) -> str:
    if busy:
        return "Too noisy to tell: the machine was busy; run this again when it is quiet."
    return (
        f"No clear difference between {arm} and {plain}: one pair of answers contradicts another;"
        " more runs would tell."
    )


def _over(results: Results) -> str:
    return "all categories" if results.everywhere else "the categories that were measured"


def _flags(arm: str) -> str:
    proposer, _, tokens = arm.partition(":")
    return f"--proposer {proposer}" + (f" --draft-tokens {tokens}" if tokens else "")


def _each(results: Results, arm: str) -> str:
    told = [
        f"{ratio:.2f} on {shown(category)}"
        for category in results.categories
        if (ratio := results.ratio(arm, category)) is not None
    ]
    return f"{arm} had, times plain, {', '.join(told)}" if told else f"{arm} was not measured"


def _span(results: Results, arm: str) -> str:
    ratios = {c: r for c in results.categories if (r := results.ratio(arm, c)) is not None}
    if len(ratios) < 2:
        return ""
    low, high = min(ratios, key=lambda c: ratios[c]), max(ratios, key=lambda c: ratios[c])
    return f"from {ratios[low]:.2f} on {shown(low)} to {ratios[high]:.2f} on {shown(high)}"


def _place(record: Record) -> dict[str, Any]:
    return {
        "run": record.run,
        "prompt": record.prompt,
        "category": record.category,
        "turn": record.turn,
        "arm": record.arm,
    }


def _record(record: Record) -> dict[str, Any]:
    answer = record.answer
    return {
        **_place(record),
        "tokens": answer.tokens,
        "text": answer.text,
        "gaps_s": list(answer.gaps_s),
        "token_ids": None if answer.ids is None else list(answer.ids),
        "time_to_first_token_s": answer.first_token_s,
        "time_to_first_sentence_s": answer.first_sentence_s,
        "tokens_per_second": answer.tokens_per_second,
        "stats": None if answer.stats is None else answer.stats.as_dict(),
    }


def _markdown(table: Table) -> str:
    lines = [
        f"## {table.title}",
        "",
        "| " + " | ".join(_md(cell) for cell in table.head) + " |",
        "|" + "---|" * len(table.head),
    ]
    for row, cells in enumerate(table.rows):
        texts = [
            f"**{_md(cell)}**" if (row, column) in table.best else _md(cell)
            for column, cell in enumerate(cells)
        ]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _code(text: str) -> str:
    """A span of code, whatever backticks are in it."""
    runs = [len(run) for run in re.findall("`+", text)]
    mark = "`" * (max(runs, default=0) + 1)
    return f"{mark} {text} {mark}" if runs else f"{mark}{text}{mark}"


def _md(text: str) -> str:
    """Text of files and models as one cell: no markup, no new column."""
    return "".join(f"\\{c}" if c in "\\|<>[]*_`" else c for c in shown(text, most=2000))
