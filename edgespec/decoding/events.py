"""What a run says about itself, in order. The only thing that user interfaces see."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Where a committed token came from."""

    ACCEPTED = "accepted"  # guessed, and the target agreed
    CORRECTION = "correction"  # the target's own, where it turned a guess down
    BONUS = "bonus"  # the target's own, after every guess on the path was right
    PLAIN = "plain"  # the target's own, where nothing was guessed


class Stop(StrEnum):
    """Why an answer ended; the value is what JSON shows."""

    END = "stop"  # an end token or a stop sequence
    LENGTH = "length"
    CONTEXT = "context"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PromptRead:
    """How far the prompt is: `read` of `total` tokens, `reused` of them from the cache.

    begun: texts of the tokens of the answer that stood already, one for each; told once, with the
    first of these events. thinking: the prompt has opened a thought, and the answer begins in it.
    """

    read: int
    total: int
    reused: int
    seconds: float
    begun: tuple[str, ...] = ()
    thinking: bool = False


@dataclass(frozen=True, slots=True)
class Alternative:
    """A token that the target might have chosen.

    logprob: natural log of the softmax of the target's row at temperature 1, before penalties and
    filters.
    """

    token: int
    logprob: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Guess:
    """One drafted token. Tested: the target spoke at the place it stands in.

    probability: the drafter's own confidence, where it has one and alternatives were asked for.
    """

    token: int
    parent: int
    source: str
    tested: bool
    accepted: bool
    text: str = ""
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """One token of the answer. `source` names the proposer of an accepted guess.

    text: what the answer gains with this token; filled in by the text layer, since a
    character may need several tokens and a stop sequence may hold text back.
    logprob, alternatives: what the target thought of this place, where that was asked for; the best
    tokens of its row, best first.
    """

    token: int
    kind: Kind
    source: str = ""
    text: str = ""
    logprob: float | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Round:
    """One propose, verify, accept, commit. The tokens are in the session before this is told.

    index      place of the first token in the reply, from 0.
    plan       what was chosen and why, in words.
    note       a fault that cost this round its draft; empty when all went well.
    draft_s, verify_s, round_s   seconds; round_s covers everything.
    """

    index: int
    tokens: tuple[Committed, ...]
    guesses: tuple[Guess, ...]
    draft_s: float
    verify_s: float
    round_s: float
    plan: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def accepted(self) -> int:
        return sum(guess.accepted for guess in self.guesses)


@dataclass(frozen=True, slots=True)
class Finished:
    """The end of an answer, with any text that was still held back."""

    why: Stop
    text: str = ""


Event = PromptRead | Round | Finished
