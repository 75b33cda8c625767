"""What answer is wanted, and where in the conversation's tree it goes; decided without a screen."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from edgespec.tui.kept import Run, options_of, runs_of
from edgespec.tui.paths import before, turn_again, turn_for
from edgespec.tui.transcript import Mark

if TYPE_CHECKING:
    from edgespec.decoding.events import Alternative
    from edgespec.history import Conversation, Saved
    from edgespec.options import AnswerOptions, Turn
    from edgespec.tui.talking import Answerer

_SEED_BITS = 32


@dataclass(frozen=True, slots=True)
class Wish:
    """An answer to be made.

    into: the kept answer that is continued. beside: the one that this is a branch of. runs: the
    tokens of turn.begun.
    """

    turn: Turn
    into: int | None = None
    beside: int | None = None
    runs: tuple[Run, ...] = ()

    @property
    def seed(self) -> int | None:
        seed = self.turn.options.overrides.get("seed")
        return None if seed is None else int(seed)


def seeded(options: AnswerOptions, seed: int | None = None) -> AnswerOptions:
    """The options with a seed: the one that is set, else this one, else a fresh one."""
    if options.overrides.get("seed") is not None:
        return options
    fresh = secrets.randbits(_SEED_BITS) if seed is None else seed
    return replace(options, overrides={**options.overrides, "seed": fresh})


def first_answer(conversation: Conversation, options: AnswerOptions, by: Answerer) -> Wish:
    """To the message at the end of the path."""
    return Wish(turn_for(conversation.system, conversation.path, seeded(options), by))


def another_answer(
    conversation: Conversation, answer: Saved, options: AnswerOptions, by: Answerer
) -> Wish:
    """A branch beside an answer: the same seed, other noise."""
    count = len(conversation.siblings(answer.id))
    options = replace(seeded(options, answer.seed), branch=count)
    above = before(conversation.path, answer.id)
    return Wish(turn_for(conversation.system, above, options, by), beside=answer.id)


def rest_of(
    conversation: Conversation, answer: Saved, options: AnswerOptions, by: Answerer
) -> Wish:
    """What is missing of an answer that was cut off, under the prompt and the noise with which it
    began."""
    above = before(conversation.path, answer.id)
    turn = turn_again(conversation.system, above, answer, as_then(options, answer), by)
    return Wish(replace(turn, begun=answer.ids), into=answer.id, runs=numbered_runs(answer))


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer token by token, as far as it is known."""

    saved: Saved
    ids: tuple[int, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Token `index` of an answer shall be another one."""

    index: int
    token: Alternative


def steered(
    conversation: Conversation,
    answered: Answered,
    choice: Choice,
    options: AnswerOptions,
    by: Answerer,
) -> Wish:
    """The answer anew from the chosen token on. Prompt and noise stay, and what stood there before
    is what probably follows."""
    saved, index, chosen = answered.saved, choice.index, choice.token
    above = before(conversation.path, saved.id)
    turn = turn_again(conversation.system, above, saved, as_then(options, saved), by)
    begun = (*answered.ids[:index], chosen.token)
    turn = replace(turn, begun=begun, expected=answered.ids[index + 1 :])
    runs = (*answered.runs[:index], (chosen.text, Mark.PLAIN))
    return Wish(turn, beside=saved.id, runs=runs)


def as_then(options: AnswerOptions, answer: Saved) -> AnswerOptions:
    """The options with the noise of a kept answer, and with what its prompt hangs on."""
    then, _ = options_of(answer.stats, options)
    options = replace(options, reasoning=then.reasoning)
    if answer.seed is None:
        return seeded(options)
    overrides = {**options.overrides, "seed": answer.seed}
    return replace(options, overrides=overrides, branch=answer.branch)


def numbered_runs(answer: Saved) -> tuple[Run, ...]:
    """One run for each token. Where the tokens were not kept one by one, the first run is all."""
    return padded(runs_of(answer.content, answer.stats), len(answer.ids))


def padded(runs: Sequence[Run], tokens: int) -> tuple[Run, ...]:
    return (*runs, *([("", Mark.PLAIN)] * (tokens - len(runs))))
