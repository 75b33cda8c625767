"""`edgespec config`: where settings live, and what holds now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from edgespec.cli.leaving import verbose_flag
from edgespec.cli.options import Given, shared_flags
from edgespec.cli.output import one_line, write, write_json
from edgespec.cli.settings import Setting, config_path
from edgespec.cli.table import aligned, flowing


@dataclass(frozen=True, slots=True)
class Held:
    """One setting. source: `flag`, the variable's name, `config.toml` or `default`."""

    name: str
    value: Any
    source: str


@click.group()
def config() -> None:
    """Show the settings and where they come from."""


@config.command("path")
@verbose_flag
def path() -> None:
    """Print the path of the config file, whether or not it exists."""
    write(f"{one_line(str(config_path()))}\n")


@config.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@shared_flags
def show(given: Given, as_json: bool) -> None:
    """Print every setting with its value and where that comes from.

    With flags, shows what would hold for a command with these flags.
    """
    held = list(_held(given))
    file = config_path()
    if as_json:
        settings = {each.name: {"value": each.value, "source": each.source} for each in held}
        write_json({"path": str(file), "exists": file.is_file(), "settings": settings}, indent=2)
        return
    rows = [(each.name, "=", _shown(each.value), each.source) for each in held]
    state = "" if file.is_file() else ", which does not exist"
    lines = [*flowing(f"# {one_line(str(file))}{state}"), *aligned(rows)]
    write("\n".join(lines) + "\n")


def _held(given: Given) -> Iterator[Held]:
    context = click.get_current_context()
    for param in context.command.params:
        if isinstance(param, Setting) and param.name:
            value = given.values[param.name]
            told = list(value) if isinstance(value, tuple) else value
            yield Held(param.name, told, _source(context, param))


def _source(context: click.Context, setting: Setting) -> str:
    match context.get_parameter_source(str(setting.name)):
        case ParameterSource.COMMANDLINE:
            return "flag"
        case ParameterSource.ENVIRONMENT:
            return str(setting.envvar)
        case ParameterSource.DEFAULT_MAP:
            return "config.toml"
        case _:
            return "default"


def _shown(value: Any) -> str:
    if value is None:
        return "(not set)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(repr(value) if isinstance(value, str | list) else str(value))
