"""Which proposer drafts this round, and how much; nothing included.

Each round the expected tokens per second of every draft length on offer are compared with plain
decoding's. Source: goodput as the aim, arXiv:2406.14066.
"""

from __future__ import annotations

from collections.abc import Sequence

from edgespec.decoding.draft import EMPTY, Draft
from edgespec.decoding.proposer import Budget, Outcome, State
from edgespec.decoding.request import Request
from edgespec.planning.cost import CostCurve
from edgespec.planning.sources import Offer, Source

WORTH = 1.02  # a draft must promise this much more than plain decoding
PROBING = 0.015  # share of the time that may go into trying a parked source again
SAVED_UP_AT_MOST_S = 0.5
START_WITH = 2.0  # plain passes that may be risked before any time was saved up


class Auto:
    """Picks the offer with the best expected rate, or none where plain decoding is faster."""

    name = "auto"

    def __init__(self, sources: Sequence[Source], cost: CostCurve) -> None:
        self._sources, self._cost = list(sources), cost
        self._off: list[Source] = []
        self._allowance_s = START_WITH * cost.seconds(1)
        self.plan, self.note = "", ""

    def begin(self, request: Request) -> None:
        self._off = []
        for source in self._sources:
            source.proposer.begin(request)
            source.begin(request)

    def propose(self, state: State, budget: Budget) -> Draft:
        plain = 1.0 / self._cost.seconds(1)
        offers = [offer for source in self._sources if (offer := self._ask(source, state, budget))]
        offers.sort(key=lambda offer: offer.rate, reverse=True)
        for offer in offers:
            if offer.guesses and offer.rate > WORTH * plain:
                if draft := self._make(offer):
                    self.plan = f"auto → {_short(draft)}"
                    return draft
            elif self._may_probe(offer) and (draft := self._make(offer)):
                self.plan = f"auto → {_short(draft)}, to see whether it pays again"
                return draft
        self.plan = self._why_plain(offers)
        return EMPTY

    def observe(self, outcome: Outcome) -> None:
        self._cost.observe(outcome.rows, outcome.verify_s)
        spent = PROBING * (outcome.verify_s + outcome.draft_s)
        self._allowance_s = min(SAVED_UP_AT_MOST_S, self._allowance_s + spent)
        for source in self._sources:
            source.observe(outcome)
            source.proposer.observe(outcome)

    def end(self) -> None:
        for source in self._sources:
            source.proposer.end()

    def _ask(self, source: Source, state: State, budget: Budget) -> Offer | None:
        if source in self._off:
            return None
        try:
            return source.offer(state, budget.nodes)
        except Exception as error:  # one drafter's fault must not cost the others
            self._switch_off(source, error)
            return None

    def _make(self, offer: Offer) -> Draft:
        try:
            return offer.make()
        except Exception as error:  # see _ask()
            self._switch_off(offer.source, error)
            return EMPTY

    def _switch_off(self, source: Source, error: Exception) -> None:
        self._off.append(source)
        name = source.proposer.name
        self.note = f"drafter '{name}' is off for this answer: {type(error).__name__}: {error}"

    def _may_probe(self, offer: Offer) -> bool:
        """Whether the time saved up covers what a try is expected to lose."""
        loss = offer.seconds - offer.tokens * self._cost.seconds(1)
        if not offer.source.probes or loss > self._allowance_s:
            return False
        self._allowance_s -= max(0.0, loss)
        return True

    def _why_plain(self, offers: Sequence[Offer]) -> str:
        cost = f"a pass of 4 costs {self._cost.relative(4):.1f} plain ones"
        if not offers:
            return f"auto → plain: nothing to guess from; {cost}"
        return f"auto → plain: {'; '.join(o.source.words for o in offers)}; {cost}"


def _short(draft: Draft) -> str:
    name = {"ngram": "n-gram", "draft": "draft model"}.get(draft.source[0], draft.source[0])
    return f"{name} ×{len(draft)}"  # noqa: RUF001
