"""What a pair's passes cost on this machine, and what that means, for `edgespec doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from edgespec.cli.opening import open_model
from edgespec.cli.options import Given, Names
from edgespec.cli.output import Progress, one_line


@dataclass(frozen=True, slots=True)
class Costs:
    """T(n) of a pair.

    seconds: by rows of a pass. guess_s: of one guess of the draft model. doubt: why they are not
    to be trusted, if so.
    """

    pair: str
    exactness: str
    seconds: dict[int, float]
    guess_s: float | None
    doubt: str
    verdict: tuple[str, ...]


def measured_costs(given: Given, names: Names) -> Costs:
    """Load a pair as `edgespec chat` does, and measure it if that was not done before.

    Raises: what edgespec.load() raises.
    """
    from edgespec.planning.verdict import at_length, doubt, verdict

    with open_model(given, names, Progress(verbose=True)) as model:
        loaded = model.loaded
        guess_s = None if loaded.drafter is None else loaded.drafter.guess_s
        cost = loaded.target.cost
        doubted = doubt(cost, at_rest=loaded.target.measurement.at_rest)
        lines = [doubted, *verdict(cost, guess_s), at_length(cost, model.info.context)]
        return Costs(
            one_line(model.info.pair),
            one_line(model.info.exactness),
            cost.measured(),
            guess_s,
            doubted,
            tuple(filter(None, lines)),
        )
