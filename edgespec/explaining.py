"""What the target thinks of an answer that was made without asking it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from edgespec.decoding.alternatives import considered
from edgespec.decoding.draft import ROOT, Draft, Tokens
from edgespec.decoding.session import Session
from edgespec.errors import BadInput
from edgespec.options import MOST_ALTERNATIVES, Explained
from edgespec.text.narrate import Narrator
from edgespec.text.tokenizer import Tokenizer

WINDOW = 64  # tokens that one pass explains
_KEPT = 32  # windows


@dataclass(frozen=True, slots=True)
class Place:
    """Token number `at` of an answer `ids` to a prompt."""

    prompt: Tokens
    ids: Sequence[int]
    at: int

    def __post_init__(self) -> None:
        if not 0 <= self.at < len(self.ids):
            raise BadInput(f"There is no token {self.at} in an answer of {len(self.ids)} tokens.")

    @property
    def text(self) -> Tokens:
        """Prompt and answer, int32 [n]."""
        return np.concatenate([self.prompt, np.array(self.ids, dtype=np.int32)])


@dataclass(frozen=True, slots=True)
class _Window:
    """What one pass told. text: all ids up to the last one explained, which begin at `start`."""

    text: Tokens
    start: int
    told: tuple[Explained, ...]

    def of(self, text: Tokens, place: int) -> Explained | None:
        """What is known of text[place], where it stands behind the same ids."""
        if not self.start <= place < len(self.text):
            return None
        same = np.array_equal(self.text[: place + 1], text[: place + 1])
        return self.told[place - self.start] if same else None


class Explainer:
    """Explains tokens, and those that follow them in the same pass; remembers the latest.

    Explaining a token far back makes the session read again, with the next answer, what follows
    the tokens that were explained.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._narrator = Narrator(tokenizer)
        self._windows: deque[_Window] = deque(maxlen=_KEPT)

    def explain(self, session: Session, place: Place, most: int) -> Explained:
        """most: alternatives to tell of."""
        text, at = place.text, len(place.prompt) + place.at
        told = self._known(text, at)
        if told is None:
            self._windows.append(self._read(session, text, at))
            told = self._known(text, at)
        assert told is not None
        return replace(told, at=place.at, alternatives=told.alternatives[:most])

    def _known(self, text: Tokens, at: int) -> Explained | None:
        found = (window.of(text, at) for window in self._windows)
        return next((told for told in found if told is not None), None)

    def _read(self, session: Session, text: Tokens, start: int) -> _Window:
        """One pass over text[start:]; the session then holds what the pass read."""
        caps = session.caps
        if text.min() < 0 or text.max() >= caps.vocab:
            raise BadInput(f"The answer has a token outside the vocabulary of {caps.vocab}.")
        width = min(WINDOW, caps.rows, WINDOW if caps.rollback is None else caps.rollback + 1)
        following = [int(token) for token in text[start : start + width]]
        for _ in session.prefill(text[:start]):
            pass
        draft = Draft.chain(following[:-1], "told")
        scores = session.verify(draft)
        told = []
        for node, token in enumerate(following, ROOT):
            logprob, best = considered(scores.logits(node), token, MOST_ALTERNATIVES)
            alternatives = tuple(replace(a, text=self._narrator.alone(a.token)) for a in best)
            told.append(Explained(start, token, logprob, alternatives))
        session.commit(range(len(draft)), following[-1])
        return _Window(text[: start + len(following)], start, tuple(told))
