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

# shares by which what a draft costs more than a plain pass must be outdone: of sources that are
# judged by what their attempts brought, and of those of which only estimates are known
CAUTION, DOUBT = 0.1, 0.2
KEEP = 0.9  # weight of the past in the pace, at each new round
CREDIT, MOST_CREDIT = 1.0, 4.0  # plain passes that a source may lose at first, and ever
TRUSTED_DEBT = 2.0  # plain passes that a source may owe while its offers look good
DEEPEST_DEBT = 2.1  # plain passes; bad luck with wide drafts must not park a good source for ever
INTEREST = 0.015  # share of all time that a source which must be tried may lose in the long run


class Auto:
    """Picks the offer with the best expected rate, or none where plain decoding is faster."""

    name = "auto"

    def __init__(self, sources: Sequence[Source], cost: CostCurve) -> None:
        self._sources, self._cost = list(sources), cost
        self._off: list[Source] = []
        self._credit_s: dict[Source, float] = {}
        self._tried: list[Source] = []  # this round, whatever became of their drafts
        self._tokens = self._seconds = 0.0
        self.plan, self._fault = "", ""

    @property
    def note(self) -> str:
        return self._fault or next((s.proposer.note for s in self._sources if s.proposer.note), "")

    def begin(self, request: Request) -> None:
        self._off, self._fault, self._tokens, self._seconds = [], "", 0.0, 0.0
        self._cost.at(len(request.prompt))
        credit_s = CREDIT * self._cost.seconds(1)
        self._credit_s = {source: credit_s for source in self._sources if source.probes}
        self._tried = []
        for source in self._sources:
            source.proposer.begin(request)
            source.begin(request)

    def propose(self, state: State, budget: Budget) -> Draft:
        self._cost.at(len(state.tokens))
        offers = [
            offer for source in self._sources if (offer := self._ask(source, state, budget.nodes))
        ]
        offers.sort(key=self._won, reverse=True)
        for offer in offers:
            pays = self._won(offer) > 0
            if self._may_try(offer, pays) and (draft := self._make(offer)):
                why = "" if pays else ", to see whether it pays"
                self.plan = f"auto → {_short(draft)}{why}"
                return draft
        self.plan = self._why_plain(offers)
        return EMPTY

    def observe(self, outcome: Outcome) -> None:
        self._cost.observe(outcome.rows, outcome.verify_s)
        # reading a prompt is done once; it says nothing of what the time to come will bring
        probing = [source.spent_s for source in self._tried if source.probes]
        spent_s = outcome.verify_s + (sum(probing) if probing else outcome.draft_s)
        self._settle(outcome)
        self._tokens = KEEP * self._tokens + len(outcome.accepted.path) + 1
        self._seconds = KEEP * self._seconds + spent_s
        for source in self._sources:
            source.observe(outcome)
            source.proposer.observe(outcome)

    def _pace(self, source: Source) -> float:
        """Tokens a second that a draft's time must bring: what time brought lately, at least
        plain decoding's rate, and a premium since wide drafts are gambles."""
        plain = 1.0 / self._cost.seconds(1)
        lately = self._tokens / self._seconds if self._seconds else 0.0
        return max(plain, lately) + (CAUTION if source.probes else DOUBT) * plain

    def _won(self, offer: Offer) -> float:
        """Tokens that it would bring beyond a plain pass and what its further time must bring."""
        return (
            offer.tokens - 1.0 - self._pace(offer.source) * (offer.seconds - self._cost.seconds(1))
        )

    def end(self) -> None:
        for source in self._sources:
            source.proposer.end()

    def _ask(self, source: Source, state: State, room: int) -> Offer | None:
        if source in self._off:
            return None
        try:
            return source.offer(state, room, self._pace(source))
        except Exception as error:  # one drafter's fault must not cost the others
            self._switch_off(source, error)
            return None

    def _make(self, offer: Offer) -> Draft:
        self._tried.append(offer.source)
        try:
            return offer.make()
        except Exception as error:  # see _ask()
            self._switch_off(offer.source, error)
            return EMPTY

    def _switch_off(self, source: Source, error: Exception) -> None:
        self._off.append(source)
        name = source.proposer.name
        self._fault = f"drafter '{name}' is off for this answer: {type(error).__name__}: {error}"

    def _may_try(self, offer: Offer, pays: bool) -> bool:
        """Sources that know their luck without a try need a good offer. The others need credit:
        however good an offer looks, what they lost before bounds what they may lose."""
        credit_s = self._credit_s.get(offer.source)
        if credit_s is None:
            return pays
        if pays:
            return credit_s > -TRUSTED_DEBT * self._cost.seconds(1)
        return credit_s > 0 and offer.worth_trying

    def _settle(self, outcome: Outcome) -> None:
        """Book what this round's tries really won or lost against plain decoding."""
        plain_s = self._cost.seconds(1)
        for source, credit_s in self._credit_s.items():
            change = INTEREST * (outcome.verify_s + outcome.draft_s)
            if source in self._tried:
                change -= source.spent_s
                if tuple(outcome.draft.source[:1]) in ((), (source.proposer.name,)):
                    change += (len(outcome.accepted.path) + 1) * plain_s - outcome.verify_s
            least, most = -DEEPEST_DEBT * plain_s, MOST_CREDIT * plain_s
            self._credit_s[source] = max(least, min(most, credit_s + change))
        self._tried = []

    def _why_plain(self, offers: Sequence[Offer]) -> str:
        cost = f"a pass of 4 costs {self._cost.relative(4):.1f} plain ones"
        if not offers:
            return f"auto → plain: nothing to guess from; {cost}"
        return f"auto → plain: {'; '.join(o.source.words for o in offers)}; {cost}"


def _short(draft: Draft) -> str:
    name = {"ngram": "n-gram", "draft": "draft model"}.get(draft.source[0], draft.source[0])
    return f"{name} ×{len(draft)}"  # noqa: RUF001
