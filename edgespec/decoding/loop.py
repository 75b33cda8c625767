"""The speculative loop. Every proposer, backend and sampling mode goes through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, repeat
from time import perf_counter

import numpy as np

from edgespec.decoding.accept import Accepted, accept
from edgespec.decoding.alternatives import considered
from edgespec.decoding.draft import EMPTY, ROOT, Draft
from edgespec.decoding.events import (
    Committed,
    Event,
    Finished,
    Guess,
    Kind,
    PromptRead,
    Round,
    Stop,
)
from edgespec.decoding.history import TokenHistory
from edgespec.decoding.proposer import Guarded, Outcome, Proposer, State, UpTo
from edgespec.decoding.request import Request
from edgespec.decoding.session import Scores, Session
from edgespec.errors import BadInput, CacheFull

Clock = Callable[[], float]


class Decoding:
    """One answer in the making. A round does no I/O: open() drafts, close() judges.

    Whoever drives it runs the forward pass in between, for one session or for many at once.
    """

    def __init__(
        self, session: Session, request: Request, proposer: Proposer, clock: Clock = perf_counter
    ) -> None:
        caps = session.caps
        if len(request.prompt) >= caps.context:
            raise BadInput(
                f"The prompt has {len(request.prompt)} tokens and the context holds {caps.context}."
                " Shorten it, or raise --context."
            )
        self.session, self.request = session, request.seeded()
        self.proposer = Guarded(proposer, caps.vocab, trees=caps.tree)
        self.finished: Stop | None = None
        assert self.request.reply is not None
        self._index = self.request.reply.start
        self._history = TokenHistory(request.prompt)
        self._left = request.max_tokens
        self._round = 0
        self._clock = clock
        self.proposer.begin(self.request)

    def open(self) -> Draft:
        """Guess what follows the pending token.

        The first round is plain: the first token should not wait for a drafter to read the
        prompt.
        """
        self._opened_s = self._clock()
        self._rule = self.request.rule_for(self._round, trees=self.session.caps.tree)
        window = self.request.sampling.window
        self._recent = tuple(self._history.array[-window:].tolist()) if window else ()
        room = self._room()
        if self._round == 0 or room < 1:
            self._draft = EMPTY
        else:
            state = State(self._history.array, self._index, self._rule, self._recent)
            self._draft = self.proposer.propose(state, UpTo(room))
        self._drafted_s = self._clock()
        return self._draft

    def without_draft(self) -> Draft:
        """Give up this round's draft, where the cache has no room for it."""
        self._draft = EMPTY
        return self._draft

    def close(self, scores: Scores) -> Round:
        """Accept, commit, observe; the event tells of what is already in the session."""
        draft, verified_s = self._draft, self._clock()
        accepted = self._cut(accept(draft, scores, self._rule, self._recent, self._index))
        self.session.commit(accepted.path, accepted.next_token)
        tokens = accepted.tokens(draft)
        draft_s = self._drafted_s - self._opened_s
        verify_s = verified_s - self._drafted_s
        self.proposer.observe(Outcome(draft, accepted, scores, draft_s, verify_s))
        index = self._index
        self._history.extend(tokens)
        self._index += len(tokens)
        self._left -= len(tokens)
        self._round += 1
        self.finished = self.finished or self._why_stop()
        return Round(
            index=index,
            tokens=self._considered(_committed(draft, accepted), accepted, scores),
            guesses=self._weighed(_guesses(draft, accepted)),
            draft_s=draft_s,
            verify_s=verify_s,
            round_s=self._clock() - self._opened_s,
            plan=self.proposer.plan,
            note=self.proposer.take_note(),
        )

    def _considered(
        self, tokens: tuple[Committed, ...], accepted: Accepted, scores: Scores
    ) -> tuple[Committed, ...]:
        """The tokens with what the target thought of their places, where that is asked for."""
        most = self.request.alternatives
        if not most:
            return tokens
        told = []
        for token, node in zip(tokens, (ROOT, *accepted.path), strict=True):
            logprob, alternatives = considered(scores.logits(node), token.token, most)
            told.append(replace(token, logprob=logprob, alternatives=alternatives))
        return tuple(told)

    def _weighed(self, guesses: tuple[Guess, ...]) -> tuple[Guess, ...]:
        """The guesses with how sure their proposer was, where that is asked for."""
        if not self.request.alternatives:
            return guesses
        sure: Iterator[float | None] = chain(self._draft.confidence, repeat(None))
        return tuple(replace(g, probability=p) for g, p in zip(guesses, sure, strict=False))

    def _room(self) -> int:
        caps = self.session.caps
        room = min(self._left, caps.context - len(self._history), caps.rows)
        room -= 1  # the target adds one itself
        return room if caps.rollback is None else min(room, caps.rollback)

    def _cut(self, accepted: Accepted) -> Accepted:
        """End tokens and stop sequences cut the path before it is committed."""
        tokens = accepted.tokens(self._draft)
        ends = [n for n, token in enumerate(tokens, 1) if token in self.request.end_tokens]
        if ends:
            tokens = tokens[: ends[0]]
        stop = self.request.stops.first_stop(tokens)
        keep = min((n for n in (stop, *ends[:1]) if n is not None), default=None)
        if keep is None:
            return accepted
        self.finished = Stop.END
        return accepted.keep(keep, self._draft)

    def _why_stop(self) -> Stop | None:
        if self._left <= 0:
            return Stop.LENGTH
        return Stop.CONTEXT if len(self._history) >= self.session.caps.context else None


def speculate(
    session: Session, request: Request, proposer: Proposer, clock: Clock = perf_counter
) -> Iterator[Event]:
    """Answer `request`, yielding one event per step of the prompt and per round.

    The text is distributed exactly as the target alone would sample it, whatever the proposer.
    A caller may stop listening at any event; the session stays whole.

    Raises: BadInput at once for a prompt that is empty or fills the context.
    """
    decoding = Decoding(session, request, proposer, clock)
    return _drive(decoding, clock)


def _drive(decoding: Decoding, clock: Clock) -> Iterator[Event]:
    try:
        yield from _read_prompt(decoding, clock)
        while decoding.finished is None:
            scores = _verify(decoding, decoding.open())
            if scores is None:
                yield Finished(Stop.CONTEXT)
                return
            yield decoding.close(scores)
        yield Finished(decoding.finished)
    finally:
        decoding.proposer.end()


def _verify(decoding: Decoding, draft: Draft) -> Scores | None:
    """One pass, without the draft where the cache has no room for it; None where it is full."""
    try:
        return decoding.session.verify(draft)
    except CacheFull:
        return _verify(decoding, decoding.without_draft()) if draft else None


def _read_prompt(decoding: Decoding, clock: Clock) -> Iterator[PromptRead]:
    prompt = np.ascontiguousarray(decoding.request.prompt, dtype=np.int32)
    start, reused = clock(), None
    for read in decoding.session.prefill(prompt):
        reused = read if reused is None else reused
        yield PromptRead(read, len(prompt), reused, clock() - start)


def _committed(draft: Draft, accepted: Accepted) -> tuple[Committed, ...]:
    kept = [Committed(draft.tokens[n], Kind.ACCEPTED, draft.source[n]) for n in accepted.path]
    last, at = accepted.next_token, accepted.cut_at
    if at is not None:
        return (*kept, Committed(last, Kind.ACCEPTED, draft.source[at]))
    if draft.children(accepted.path[-1] if accepted.path else ROOT):
        return (*kept, Committed(last, Kind.CORRECTION))
    return (*kept, Committed(last, Kind.BONUS if draft else Kind.PLAIN))


def _guesses(draft: Draft, accepted: Accepted) -> tuple[Guess, ...]:
    """Every drafted token; tested where the walk reached its parent."""
    kept = {*accepted.path, accepted.cut_at}
    reached = {ROOT, *accepted.path}
    return tuple(
        Guess(token, parent, source, parent in reached, node in kept)
        for node, (token, parent, source) in enumerate(
            zip(draft.tokens, draft.parents, draft.source, strict=True)
        )
    )
