"""What a model's makers recommend for choosing tokens, as far as it makes sense."""

from __future__ import annotations

from collections.abc import Mapping

from edgespec.decoding.sampling import Sampling
from edgespec.errors import BadInput

_COUNTS = ("top_k", "penalty_window")


def sampler_advice(found: Mapping[str, object]) -> Mapping[str, float | int]:
    """The values that a sampler can have. found: what a file says, by the names of Sampling."""
    advice: dict[str, float | int] = {}
    for name, value in found.items():
        if type(value) not in (int, float) or (name in _COUNTS and type(value) is not int):
            continue
        try:
            Sampling(**{name: value})  # type: ignore[arg-type]
        except BadInput:
            continue
        advice[name] = value  # type: ignore[assignment]
    return advice
