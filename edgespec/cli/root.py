"""`edgespec` itself: the list of commands, and the one way out of all of them."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from edgespec.cli import leaving
from edgespec.cli.bench import bench
from edgespec.cli.chat import chat
from edgespec.cli.config import config
from edgespec.cli.doctor import doctor
from edgespec.cli.history import history
from edgespec.cli.leaving import Run, verbose_flag
from edgespec.cli.listing import list_models
from edgespec.cli.output import prepare_streams
from edgespec.cli.pairs import pairs
from edgespec.cli.pull import pull
from edgespec.cli.removing import rm
from edgespec.cli.run import run
from edgespec.cli.settings import check_named_config
from edgespec.cli.train import train
from edgespec.cli.tune import tune
from edgespec.errors import Cancelled
from edgespec.models.hub_settings import check_endpoint


class Root(click.Group):
    """A group whose every end is one line and an exit code."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run a command and leave the process with its exit code."""
        run = Run()
        extra.update(standalone_mode=False, obj=run)
        try:
            prepare_streams()
            result = super().main(*args, **extra)
            sys.stdout.flush()
        except BaseException as error:
            sys.exit(leaving.report(error, verbose=run.verbose))
        # Click hands back the code of --help and --version; a command hands back its own, or None
        sys.exit(result if isinstance(result, int) else 0)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant; a config file that was named must be there for it."""
        name, command, rest = super().resolve_command(ctx, args)
        # help must come in any case, and 'config path' tells where the file would be
        helped = command is config or not {"-h", "--help"}.isdisjoint(rest)
        if not helped and not ctx.resilient_parsing:
            check_named_config()
            if command in (chat, list_models, pairs, rm) and os.environ.get("HF_ENDPOINT"):
                check_endpoint()  # the hub's library, which knows the cache, fails over it
        return name, command, rest

    def invoke(self, ctx: click.Context) -> Any:
        # Click would turn these into a blank line and into a bare exit
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise leaving.Interrupted from error
        except BrokenPipeError as error:
            raise leaving.ReaderLeft from error


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="edgespec", message="edgespec %(version)s")
@verbose_flag
def edgespec() -> None:
    """Makes a local language model answer faster without changing what it says."""


for _command in (
    chat, run, pull, doctor, bench, tune, train, pairs, list_models, rm, history, config,
):  # fmt: skip
    edgespec.add_command(_command)


def main() -> None:
    """The entry point of the installed command."""
    try:
        edgespec.main(prog_name="edgespec")
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:  # again, while the first was being told
        code = Cancelled.exit_code
    leaving.take_no_more_interrupts()
    sys.exit(code)
