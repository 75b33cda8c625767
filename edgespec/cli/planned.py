"""What a pair would take of this machine's memory, without loading it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgespec.cli.output import one_line
from edgespec.errors import EdgespecError, OutOfMemory

if TYPE_CHECKING:
    from edgespec.backends import DeviceMemory


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


def planned(pair: str, context: int | None, gpus: Iterable[DeviceMemory]) -> Planned:
    """Plan for a pair's name, a folder or a file. context: None = as it would be loaded.

    Raises: NotFound, ModelFileError.
    """
    from edgespec.loading import room, usual_context
    from edgespec.models import fit, memory
    from edgespec.models.model_header import header_of
    from edgespec.models.pairs import resolve

    chosen = resolve(pair, None, None)
    target = header_of(chosen.target)
    draft = header_of(chosen.draft) if chosen.draft else None
    needed = memory.plan(target, draft, context or usual_context(target))
    free = room(gpus)
    lines = tuple(map(one_line, memory.describe(needed, free)))
    try:
        fit.check(needed, free)
    except OutOfMemory as error:
        return Planned(one_line(chosen.name), needed.context, lines, one_line(str(error)))
    return Planned(one_line(chosen.name), needed.context, lines)


def planned_usually(context: int | None, gpus: Iterable[DeviceMemory]) -> Planned | None:
    """The plan for the pair that opens when none is named; None where there is none."""
    from edgespec.cli.usual import usual_pair

    try:
        pair = usual_pair()
        return None if pair is None else planned(pair, context, gpus)
    except EdgespecError:  # a pair that is damaged is told when it is opened
        return None
