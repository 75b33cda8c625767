"""What a cost curve means, in words: how often a guess must be right to be worth its row."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

from edgespec.planning.cost import CostCurve
from edgespec.planning.sources import worth

_USUAL = 0.85  # how often a draft model of the same family is right on text that suits it
_STEPS = 7  # of halving, to a hundredth
_PAIR, _CHEAPEST_PAIR = 2, 0.95  # plain passes that two rows cost at least
_WIDE = 8


def pays_from(cost: CostCurve, guess_s: float = 0.0) -> float | None:
    """The share of right guesses from which some number of guesses pays; None = not even all."""
    if not worth(cost, 1.0, guess_s)[1]:
        return None
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if worth(cost, middle, guess_s)[1] else (middle, high)
    return high


def doubt(cost: CostCurve, *, at_rest: bool) -> str:
    """Why these costs are not to be trusted, in a line; empty where nothing speaks against them.

    at_rest: whether nothing else ran while they were measured.
    """
    if not at_rest:
        return (
            "not to be trusted: other programs kept this machine busy while passes were measured;"
            " run this again when it is idle"
        )
    if cost.relative(_PAIR) < _CHEAPEST_PAIR:
        return (
            f"not to be trusted: a pass over {_PAIR} tokens was measured as cheaper than a plain"
            " one, so something disturbed it"
        )
    return ""


def at_length(cost: CostCurve, context: int) -> str:
    """What passes cost when the text fills the context, in a line; empty where length is free."""
    filled = copy(cost)
    filled.at(context)
    plain_s, wide_s = filled.seconds(1), filled.seconds(_WIDE)
    if (plain_s, wide_s) == (cost.seconds(1), cost.seconds(_WIDE)):
        return ""
    return (
        f"with {context} tokens of text a plain pass takes {plain_s * 1e3:.1f} ms and one over"
        f" {_WIDE} tokens {wide_s * 1e3:.1f} ms"
    )


def verdict(cost: CostCurve, guess_s: float | None = None) -> Iterable[str]:
    """Lines for people. guess_s: seconds of a draft model's guess; None without one."""
    plain_s = cost.seconds(1)
    widths = [n for n in cost.measured() if n > 1]
    costs = ", ".join(f"{n} tokens {cost.seconds(n) / plain_s:.2f}" for n in widths)
    yield f"a plain pass takes {plain_s * 1e3:.1f} ms; in such passes, one over {costs}"
    yield _judged("guesses from the text", cost, 0.0)
    if guess_s is None:
        return
    yield _judged(f"a draft model with {guess_s * 1e3:.1f} ms a guess", cost, guess_s)
    speed, n = worth(cost, _USUAL, guess_s)
    if n:
        yield f"right {_USUAL:.0%} of the time it would make answers {speed:.2f} times as fast"
    else:
        yield f"right {_USUAL:.0%} of the time it would make nothing faster and only take memory"


def _judged(what: str, cost: CostCurve, guess_s: float) -> str:
    share = pays_from(cost, guess_s)
    if share is None:
        return f"{what}: can never pay here"
    _, n = worth(cost, min(1.0, share + 0.01), guess_s)
    some = "one guess a pass pays" if n == 1 else f"{n} guesses a pass pay"
    return f"{what}: {some} from {share:.0%} right"
