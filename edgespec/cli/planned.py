"""What a pair would take of this machine's memory, without loading it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgespec.cli.options import Given, Names
from edgespec.cli.output import one_line
from edgespec.errors import EdgespecError, OutOfMemory

if TYPE_CHECKING:
    from edgespec.backends import DeviceMemory
    from edgespec.options import LoadOptions


@dataclass(frozen=True, slots=True)
class Planned:
    """A pair's plan in words. help: what to do where it does not fit; empty where it does."""

    pair: str
    context: int
    lines: tuple[str, ...]
    help: str = ""

    @property
    def fits(self) -> bool:
        return not self.help


def planned(names: Names, options: LoadOptions, gpus: Iterable[DeviceMemory]) -> Planned:
    """Plan for a pair, or a target and a draft, as they would be loaded with these options.

    Raises: NotFound, BadInput, ModelFileError, IncompatiblePair.
    """
    from edgespec.loading import plan_for, room
    from edgespec.models import fit, memory
    from edgespec.models.pairs import resolve

    chosen = resolve(*names)
    needed, free = plan_for(chosen, options), room(gpus)
    changes: tuple[str, ...] = ()
    try:
        if options.fit:
            fitted = fit.fit(needed, free)
            needed, changes = fitted.plan, fitted.changes
        else:
            fit.check(needed, free)
        advice = ""
    except OutOfMemory as error:
        advice = one_line(str(error))
    lines = memory.describe(needed, free)
    if changes:
        lines.append(f"with --fit: {', '.join(changes)}")
    return Planned(one_line(chosen.name), needed.context, tuple(map(one_line, lines)), advice)


def planned_usually(given: Given, gpus: Iterable[DeviceMemory]) -> Planned | None:
    """The plan for what opens when nothing is named; None where there is nothing."""
    try:
        return planned(given.which(None), given.load_options(), gpus)
    except EdgespecError:  # a pair that is damaged is told when it is opened
        return None
