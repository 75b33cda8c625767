"""The least time that an answer can take for somebody who knows which guesses will be right.

What no planner can beat with the same proposers: how much there is left to win.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from edgespec.bench.recorded import Recorded
from edgespec.bench.replay import AnyCost, curve_of, plain_seconds
from edgespec.decoding.draft import Tokens
from edgespec.decoding.history import TokenHistory
from edgespec.decoding.proposer import State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.sampling import Sampling
from edgespec.planning.cost import CostCurve
from edgespec.planning.luck import cheap_rows
from edgespec.planning.model_source import DraftCost
from edgespec.planning.sources import MOST_GUESSES
from edgespec.proposers.ngram import NGram
from edgespec.proposers.ngram_tree import NGramTree


@dataclass(frozen=True, slots=True)
class Foresight:
    """Speed in units of plain decoding's, with perfect foresight.

    ngram: each round nothing, or as much of the n-gram's draft as is best. draft: the same with
    a model's draft. both: drafts of either that the other one may carry on. None without a model.
    Where auto drafts trees, ngram counts those of the n-gram, and both counts siblings too.
    """

    ngram: float
    draft: float | None = None
    both: float | None = None


def foresight(
    recorded: Recorded, cost: AnyCost, drafter: DraftCost | None = None, *, trees: bool = False
) -> Foresight:
    """The bound for one answer, from its first token on. trees: whether auto may draft them.

    Reading text that a draft model has not seen is not charged, so this bounds every planner.
    """
    own = curve_of(cost)
    trees, repeats = trees and cheap_rows(own.seconds), ngram_right(recorded)
    if trees:
        pairs = zip(repeats, ngram_right(recorded, NGramTree), strict=True)
        repeats = [max(both) for both in pairs]
    none = [0] * len(repeats)
    alone = recorded.guesses is None or drafter is None
    if len(repeats) < 2:  # nothing is left to win, by whatever guesses
        return Foresight(1.0) if alone else Foresight(1.0, 1.0, 1.0)
    plain_s, seconds = plain_seconds(recorded, own), _seconds(recorded, own)
    ngram = plain_s / _least_s(seconds, 0.0, repeats, none)
    if recorded.guesses is None or drafter is None:
        return Foresight(ngram)
    guess_s, model = drafter.guess_s, model_right(recorded)
    draft = plain_s / _least_s(seconds, guess_s, none, model)
    if trees:
        model = model_right(recorded, recorded.noted)
    return Foresight(ngram, draft, plain_s / _least_s(seconds, guess_s, repeats, model))


def ngram_right(recorded: Recorded, kind: type[NGram] = NGram) -> list[int]:
    """For each place of the reply, how many guesses in a row an n-gram gets right there."""
    request = Request(recorded.prompt, Sampling(0.0, seed=0), 1).seeded()
    history, proposer, rule = TokenHistory(recorded.prompt), kind(), request.rule_for(0)
    proposer.begin(request)
    reply, right = recorded.reply.tolist(), list[int]()
    for place, token in enumerate(reply):
        draft = proposer.propose(State(history.array, place, rule), UpTo(MOST_GUESSES))
        right.append(len(draft.saying(reply[place:])))
        history.extend([token])
    return right


def model_right(recorded: Recorded, noted: Tokens | None = None) -> list[int]:
    """For each place of the reply, how many guesses in a row the draft model gets right there.

    noted: what it holds likely at each place, the guess first; nothing follows behind the others.
    None = the guess alone.
    """
    assert recorded.guesses is not None
    noted = recorded.guesses[:, None] if noted is None else noted
    right, row = [0] * len(noted), 0
    for place in range(len(right) - 1, -1, -1):
        token = recorded.reply[place]
        row = row + 1 if noted[place, 0] == token else int(token in noted[place])
        right[place] = row
    return right


def _seconds(recorded: Recorded, cost: CostCurve) -> list[list[float]]:
    """Seconds of a pass at each place of the reply, by rows, index 0 unused; it may be filled up to
    a width that costs less."""
    found: list[list[float]] = []
    for place in range(len(recorded.reply)):
        cost.at(len(recorded.prompt) + place)
        seconds = [cost.seconds(max(1, rows)) for rows in range(MOST_GUESSES + 2)]
        for rows in range(MOST_GUESSES, 0, -1):
            seconds[rows] = min(seconds[rows], seconds[rows + 1])
        found.append(seconds)
    return found


def _least_s(
    seconds: Sequence[Sequence[float]], guess_s: float, free: Sequence[int], dear: Sequence[int]
) -> float:
    """Least seconds of a reply from its first token on, place by place from its end.

    seconds: of a pass at each place, by rows. free, dear: right guesses in a row at each place, by
    the n-gram and by the model; those of the model take guess_s each.
    """
    places = len(free)
    least = [0.0] * (places + 1)
    for place in range(places - 1, 0, -1):
        most = min(places - place - 1, MOST_GUESSES)
        least[place] = min(
            seconds[place][n + 1] + asked * guess_s + least[place + n + 1]
            for n, asked in enumerate(_fewest_asked(place, most, free, dear))
        )
    return least[1]


def _fewest_asked(place: int, most: int, free: Sequence[int], dear: Sequence[int]) -> list[int]:
    """For every number of right guesses that a draft can have, how many of them the model must
    make: behind those of the n-gram, or before them, as auto lets an n-gram carry its draft on."""
    repeats = min(free[place], most)
    reach = min(repeats + dear[place + repeats], most)
    fewest = [max(0, n - repeats) for n in range(reach + 1)]
    for asked in range(1, min(dear[place], most) + 1):
        end = min(asked + free[place + asked], most) + 1
        fewest[asked:end] = [min(asked, known) for known in fewest[asked:end]]
        fewest += [asked] * (end - len(fewest))
    return fewest
