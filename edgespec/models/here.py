"""The models on this machine, for the lists that show them."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.models.found import FoundModel, found_models, inspect
from edgespec.models.hub_removal import real_place
from edgespec.models.installed import InstalledPair, installed_pairs
from edgespec.models.store import find_demo


@dataclass(frozen=True, slots=True)
class Here:
    """What is here. demo: whether its package is. found: models that no pulled pair uses.
    notes: damaged records that were set aside, one line each."""

    demo: bool
    pairs: tuple[InstalledPair, ...]
    found: tuple[FoundModel, ...]
    notes: tuple[str, ...] = ()


def models_here() -> Here:
    """Look into every folder where models may lie, and into the headers of what lies there."""
    records = installed_pairs()
    used = {
        real_place(file) for pair in records.pairs for model in pair.models for file in model.files
    }
    found = (model for model in found_models() if used.isdisjoint(map(real_place, model.files)))
    demo = find_demo() is not None
    return Here(demo, records.pairs, tuple(inspect(model) for model in found), records.notes)
