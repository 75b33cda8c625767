"""Where a setting comes from: its flag, then EDGESPEC_*, then config.toml, then its default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import platformdirs
from click.core import ParameterSource

from edgespec.errors import BadInput, NotFound
from edgespec.models.shown import shown

_CONFIG = "edgespec.cli.config"  # key in the context's notebook


class Setting(click.Option):
    """A flag that an environment variable or config.toml may also set."""

    def __init__(self, *args: Any, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.envvar = f"EDGESPEC_{str(self.name).upper()}"

    def consume_value(
        self, ctx: click.Context, opts: Mapping[str, Any]
    ) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        config = _config_of(ctx)
        if source is not ParameterSource.DEFAULT or self.name not in config:
            return value, source
        value = config[self.name]
        if self.multiple and not isinstance(value, list):
            value = [value]
        return value, ParameterSource.DEFAULT_MAP

    def get_error_hint(self, ctx: click.Context | None) -> str:
        source = ctx.get_parameter_source(str(self.name)) if ctx else None
        if source is ParameterSource.ENVIRONMENT:
            return f"the variable {self.envvar}"
        if source is ParameterSource.DEFAULT_MAP:
            return f"'{self.name}' in {config_path()}"
        return super().get_error_hint(ctx)


def config_path() -> Path:
    """The config file: EDGESPEC_CONFIG, or config.toml in the user's config folder."""
    named = os.environ.get("EDGESPEC_CONFIG")
    if named:
        return Path(named)
    return platformdirs.user_config_path("edgespec", appauthor=False) / "config.toml"


def check_named_config() -> None:
    """Before any command. Raises: NotFound when EDGESPEC_CONFIG names no file."""
    if os.environ.get("EDGESPEC_CONFIG") and not os.path.exists(config_path()):
        raise _no_config(config_path())


def _no_config(path: Path) -> NotFound:
    return NotFound(
        f"EDGESPEC_CONFIG names {shown(path)}, which is not there; create it or unset that."
    )


def read_config(known: frozenset[str]) -> dict[str, Any]:
    """The settings in the config file by flag name, `-` written as `_`; empty without a file.

    Raises: NotFound when EDGESPEC_CONFIG names no file; BadInput when it cannot be used.
    """
    path = config_path()
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except FileNotFoundError:
        if os.environ.get("EDGESPEC_CONFIG"):
            raise _no_config(path) from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not valid TOML: {error}. Correct it or move it away.") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}.") from error
    config = {key.replace("-", "_"): value for key, value in found.items()}
    for key in found:
        if key.replace("-", "_") not in known:
            raise BadInput(
                f"{path} has the unknown key {key!r}; allowed are {', '.join(sorted(known))}."
            )
    return config


def _config_of(ctx: click.Context) -> dict[str, Any]:
    if _CONFIG not in ctx.meta:
        settings = (param for param in ctx.command.params if isinstance(param, Setting))
        ctx.meta[_CONFIG] = read_config(frozenset(str(param.name) for param in settings))
    config: dict[str, Any] = ctx.meta[_CONFIG]
    return config
