"""`edgespec chat`: a conversation, on the whole screen or line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from edgespec.cli.opening import open_another, open_model, tell_about_gpu
from edgespec.cli.options import Given, Names, shared_flags
from edgespec.cli.output import Progress, note
from edgespec.cli.together import check_guessing
from edgespec.cli.usual import pair_to_chat_with
from edgespec.errors import BadInput

if TYPE_CHECKING:
    from edgespec.api import Model


@click.command()
@click.argument("pair", required=False)
@click.option(
    "--plain",
    is_flag=True,
    help="Append-only lines without a screen: for pipes and screen readers.",
)
@click.option(
    "--no-history",
    is_flag=True,
    envvar="EDGESPEC_NO_HISTORY",
    help="Keep nothing of what is said, as --plain does in any case.",
)
@click.option(
    "--continue",
    "goes_on",
    is_flag=True,
    help="Open the conversation of last time; Ctrl+O opens any other.",
)
@shared_flags
def chat(given: Given, pair: str | None, plain: bool, no_history: bool, goes_on: bool) -> None:
    """Talk with a model and see which guesses it kept.

    PAIR is `demo`, a pair that was pulled, user/repo:quant, or a folder with a model and its draft
    model. Without one, and without --target, the pair that was used last answers, or the demo.
    """
    if plain:
        check_guessing(given)  # on the screen it can be set otherwise later
    if goes_on:
        _check_can_go_on(given, plain=plain, no_history=no_history)
    names = given.which(pair, pair_to_chat_with)
    if plain:
        _line_by_line(given, names)
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.environ.get("TERM") == "dumb":
        raise BadInput(
            "The chat needs a full terminal on standard input and output; use edgespec chat"
            " --plain, or edgespec run for one answer."
        )
    _on_the_screen(given, names, keeps=not no_history, goes_on=goes_on)


def _check_can_go_on(given: Given, *, plain: bool, no_history: bool) -> None:
    """Raises: click.UsageError for what cannot be had together with --continue."""
    if plain:
        raise click.UsageError(
            "--plain keeps no conversation, so it cannot --continue one; leave one of them out"
        )
    if no_history:
        source = click.get_current_context().get_parameter_source("no_history")
        name = "EDGESPEC_NO_HISTORY" if source is ParameterSource.ENVIRONMENT else "--no-history"
        raise click.UsageError(
            f"with {name} no conversation is read, so none can be continued; --continue needs the"
            " history"
        )
    if "system" in given.on_line:
        raise click.UsageError(
            "--continue goes on under the system message that the conversation has; leave --system"
            " out, and change it in the chat with /system"
        )


def _on_the_screen(given: Given, names: Names, *, keeps: bool, goes_on: bool) -> None:
    from edgespec.history import History
    from edgespec.tui.app import ChatSetup, run_chat

    def load(report: Callable[[str], None]) -> Model:
        tell_about_gpu(given, report)
        return open_model(given, names, report)

    def named(name: str) -> Callable[[Callable[[str], None]], Model]:
        from edgespec.models.pairs import locate

        locate(name)  # says at once what is wrong with it
        return lambda report: open_another(given, name, report)

    title = names[0] or names[1] or "edgespec"
    with closing(History.open() if keeps else History.in_memory()) as history:
        setup = ChatSetup(load, given.system, given.answer_options(), title, history)
        run_chat(replace(setup, named=named, reopen=goes_on))


def _line_by_line(given: Given, names: Names) -> None:
    from edgespec.cli.plain import PlainChat

    with open_model(given, names, Progress(verbose=given.verbose)) as model:
        for line in model.info.notes:
            note(line)
        tell_about_gpu(given)
        PlainChat(model, model.chat(system=given.system, options=given.answer_options())).run()
