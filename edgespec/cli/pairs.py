"""`edgespec pairs`: the catalogue, and what of it suits this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, write, write_json
from edgespec.cli.recommend import Recommendation, Room, recommend, room_here
from edgespec.cli.table import aligned, flowing
from edgespec.models.sizes import size_text

if TYPE_CHECKING:
    from edgespec.models.catalogue import Build, Entry, Source

_FITS = {True: "fits", False: "too large", None: "?"}


@dataclass(frozen=True, slots=True)
class Shelf:
    """The catalogue as this machine sees it. installed: names of the pairs that are here."""

    entries: tuple[Entry, ...]
    installed: frozenset[str]
    room: Room
    recommended: Recommendation | None

    @property
    def recommended_name(self) -> str | None:
        return self.recommended.entry.name if self.recommended else None


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_flag
def pairs(as_json: bool) -> None:
    """List the known pairs: their size, whether they fit here, and which one is recommended."""
    from edgespec.models.catalogue import catalogue
    from edgespec.models.installed import installed_pairs

    records, room = installed_pairs(), room_here()
    for line in records.notes:
        note(line)
    entries = catalogue().entries
    here = frozenset(pair.name for pair in records.pairs if pair.complete)
    shelf = Shelf(entries, here, room, recommend(entries, room))
    if as_json:
        write_json(_as_dict(shelf), indent=2)
    else:
        write("\n".join(one_line_each(shelf)) + "\n")


def one_line_each(shelf: Shelf) -> Iterator[str]:
    """The catalogue for people."""
    rows: list[tuple[str, ...]] = [("", "PAIR", "SIZE", "DRAFT", "HERE", "")]
    rows += [_row(entry, shelf) for entry in shelf.entries]
    yield from aligned(rows)
    yield ""
    yield from flowing(f"Here: {shelf.room.text}.")
    if shelf.recommended is None:
        yield from flowing("No pair of known size fits here.")
    else:
        chosen = shelf.recommended
        yield from flowing(f"* recommended: {chosen.entry.name}, because {chosen.why}.")
    yield from flowing(
        "+ installed.  ~ a size as its source states it; pulling tells the exact one."
    )
    yield from flowing("'edgespec pull PAIR' fetches one.")


def _row(entry: Entry, shelf: Shelf) -> tuple[str, ...]:
    build = entry.build(*shelf.room.formats)
    mark = "*" if entry.name == shelf.recommended_name else " "
    mark += "+" if entry.name in shelf.installed else " "
    told = build or entry.builds[0]
    size = size_text(told.bytes) if told.bytes else "?"
    if told.bytes and not told.verified:
        size = f"~{size}"
    fits = _FITS[shelf.room.fits(build)] if build else _only(told)
    about = f"base model: {entry.about}" if entry.base else entry.about
    return mark, entry.name, size, "model" if told.draft else "n-gram", fits, about


def _only(build: Build) -> str:
    return "Macs only" if build.format == "mlx" else "needs llama.cpp"


def _as_dict(shelf: Shelf) -> dict[str, Any]:
    room = shelf.room
    return {
        "machine": {
            "free_bytes": room.free_bytes,
            "gpu": room.gpu,
            "formats": list(room.formats),
        },
        "recommended": shelf.recommended_name,
        "why": shelf.recommended.why if shelf.recommended else None,
        "pairs": [_entry_as_dict(entry, shelf) for entry in shelf.entries],
    }


def _entry_as_dict(entry: Entry, shelf: Shelf) -> dict[str, Any]:
    build = entry.build(*shelf.room.formats)
    return {
        "name": entry.name,
        "title": entry.title,
        "about": entry.about,
        "base": entry.base,
        "licence": entry.licence,
        "context": entry.context,
        "installed": entry.name in shelf.installed,
        "runs_here": build is not None,
        "fits": shelf.room.fits(build) if build else False,
        "builds": [_build_as_dict(each) for each in entry.builds],
    }


def _build_as_dict(build: Build) -> dict[str, Any]:
    return {
        "format": build.format,
        "bytes": build.bytes,
        "target": _source_as_dict(build.target),
        "draft": _source_as_dict(build.draft) if build.draft else None,
        "evidence": list(build.evidence),
        "verified": build.verified,
    }


def _source_as_dict(source: Source) -> dict[str, Any]:
    return {
        "repo": source.repo,
        "file": source.file or None,
        "quant": source.quant or None,
        "revision": source.revision or None,
        "bytes": source.bytes,
    }
