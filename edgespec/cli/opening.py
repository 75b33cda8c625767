"""From checked flags to a loaded model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from edgespec.cli.options import Given, Names
from edgespec.cli.output import note

if TYPE_CHECKING:
    from edgespec.api import Model


def open_model(given: Given, names: Names, report: Callable[[str], None]) -> Model:
    """Load what was asked for; `report` gets one-line progress messages.

    names: as given.which() found them.
    """
    options, speculation = given.load_options(), given.speculation()
    from edgespec.api import load

    return load(
        names[0],
        target=names[1],
        draft=names[2],
        options=options,
        speculation=speculation,
        report=report,
        tuned=given.leaves_guessing_open,
    )


def open_another(given: Given, name: str, report: Callable[[str], None]) -> Model:
    """Load a model by its name, in place of the one that the flags name."""
    from edgespec.api import load

    return load(
        name,
        options=given.load_options(),
        speculation=given.speculation(),
        report=report,
        tuned=given.leaves_guessing_open,
    )


def tell_about_gpu(given: Given, tell: Callable[[str], None] = note) -> None:
    """One line where a GPU is left idle because llama.cpp was built without it."""
    if given.values["gpu_layers"] == 0 or given.values["backend"] == "mlx":
        return
    from edgespec.cli.doctor import idle_gpu_advice

    for advice in idle_gpu_advice():
        tell(advice)
