"""Pictures of a benchmark, in colours that everybody can tell apart and that differ in grey."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from edgespec.bench.arms import PLAIN_LOOP
from edgespec.bench.figures import Results
from edgespec.bench.report import Report
from edgespec.errors import BackendMissing, EdgespecError
from edgespec.models.shown import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# apart for every kind of sight, and of different lightness; hatched where only the hue differs
_ORANGE, _GREY = "#E69F00", "#BDBDBD"
_BLUES = ("#08306B", "#8FBFDE", "#2B7BBA", "#5FA5D1", "#1A5A96", "#BBD7EA")
_MOST_ROWS = 32


def check_plotting(install: str) -> None:
    """Raises: BackendMissing, with the line that installs it, where matplotlib does not work."""
    try:
        import_module("matplotlib.backends.backend_svg")
    except ModuleNotFoundError as error:
        raise BackendMissing(f"--plot needs matplotlib. Install it with: {install}") from error
    except Exception as error:  # a half-installed library fails in ways of its own
        raise BackendMissing(
            f"--plot needs matplotlib, which is broken here ({shown(error, 160)}). Install it anew"
            f" with: {install}"
        ) from error


def draw(report: Report, folder: Path) -> list[Path]:
    """Write the pictures into `folder`; those that would be empty are left out.

    Raises: EdgespecError where the folder cannot be written.
    """
    results = report.results
    pictures = {
        "speedup": _speedups(results),
        "pass-cost": _pass_cost(report, results),
        "acceptance": _acceptance(results),
    }
    written = []
    for name, figure in pictures.items():
        if figure is None:
            continue
        path = folder / f"{name}.svg"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            figure.savefig(path)
        except OSError as error:
            raise EdgespecError(
                f"{shown(path)} cannot be written ({error.strerror}); name another folder."
            ) from error
        written.append(path)
    return written


def _figure(title: str, height: float = 4.2) -> Figure:
    from matplotlib.figure import Figure  # no pyplot: it would look for a screen

    figure = Figure(figsize=(8, height), layout="constrained")
    figure.suptitle(title, fontsize=11)
    return figure


def _speedups(results: Results) -> Figure | None:
    """Bars by category and arm, from the smallest to the largest ratio."""
    arms = [arm for arm in results.arms if arm != results.yardstick]
    if not any(results.figures(arm).ratio for arm in arms):
        return None
    figure = _figure(f"Decode speed, times {_text(results.yardstick)}: median and range")
    axes = figure.subplots()
    width = 0.8 / len(arms)
    for number, arm in enumerate(arms):
        spreads = [results.figures(arm, category).ratio for category in results.categories]
        shown_at = [n for n, spread in enumerate(spreads) if spread is not None]
        known = [spread for spread in spreads if spread is not None]
        axes.bar(
            [n - 0.4 + (number + 0.5) * width for n in shown_at],
            [s.median for s in known],
            width,
            yerr=[[s.median - s.low for s in known], [s.high - s.median for s in known]],
            label=_text(arm),
            error_kw={"elinewidth": 0.8},
            color=_colour(arm, results),
            hatch={"auto": "//", PLAIN_LOOP: ".."}.get(arm, "xx" if arm in _peers(results) else ""),
            edgecolor="black",
            linewidth=0.5,
        )
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(results.categories)), [_text(c) for c in results.categories])
    axes.set_ylabel(f"times {_text(results.yardstick)}")
    figure.legend(loc="outside lower center", ncols=min(4, len(arms)), frameon=False)
    return figure


def _pass_cost(report: Report, results: Results) -> Figure | None:
    """T(n), and below it how often `auto` made a pass of n rows."""
    seconds = {n: s for n, s in report.costs.after.items() if n <= _MOST_ROWS}
    if not seconds:
        return None
    figure = _figure("What a verify pass costs, and the passes that auto made", 5.2)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    rows = sorted(seconds)
    top.plot(rows, [1e3 * seconds[n] for n in rows], "o-", color=_BLUES[1])
    top.set_ylabel(f"T(n) after {report.costs.context} tokens, ms")
    top.set_ylim(bottom=0)
    widths = {n: c for n, c in results.widths("auto").items() if n <= _MOST_ROWS}
    bottom.bar(list(widths), list(widths.values()), color=_ORANGE, edgecolor="black", lw=0.5)
    bottom.set_ylabel("passes")
    _whole_numbers(bottom)
    bottom.set_xlabel("rows of a pass: the pending token and the guesses")
    return figure


def _acceptance(results: Results) -> Figure | None:
    """Share of tested guesses that were right, by position."""
    measured = [(arm, r) for arm in results.arms if (r := results.figures(arm).rounds) and r.tested]
    if not measured:
        return None
    figure = _figure("Acceptance by position in the draft: right / tested")
    axes: Axes = figure.subplots()
    for number, (arm, r) in enumerate(measured):
        at = [n for n, tested in enumerate(r.tested_at) if tested]
        axes.plot(
            [n + 1 for n in at],
            [r.accepted_at[n] / r.tested_at[n] for n in at],
            marker="osD^v<>P"[number % 8],
            linestyle=("-", "--", ":", "-.")[number % 4],
            color=_colour(arm, results),
            label=_text(arm),
        )
    axes.set_ylim(0, 1.02)
    _whole_numbers(axes)
    axes.set_xlabel("position")
    axes.set_ylabel("right / tested")
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    return figure


def _whole_numbers(axes: Axes) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _colour(arm: str, results: Results) -> str:
    """One arm has one colour in all pictures: `auto` orange, foreign loops grey, others blue."""
    if arm == "auto":
        return _ORANGE
    if arm == PLAIN_LOOP or arm in _peers(results):
        return _GREY
    others = [a for a in results.arms if a not in ("auto", PLAIN_LOOP, *_peers(results))]
    return _BLUES[others.index(arm) % len(_BLUES)]


def _peers(results: Results) -> list[str]:
    return [arm for arm in results.arms if arm.startswith("peer:")]


def _text(name: str) -> str:
    """A name that matplotlib does not read as a formula."""
    return shown(name).replace("$", r"\$")
