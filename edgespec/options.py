"""What an app may ask for, and what it gets back: plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from edgespec.decoding.events import Alternative, Stop
from edgespec.decoding.stats import Stats
from edgespec.errors import BadInput

if TYPE_CHECKING:
    from datetime import datetime

    from edgespec.decoding.sampling import Sampling
    from edgespec.text.template import Message

ProposerName = Literal["auto", "none", "ngram", "draft", "recycling", "tree"]
MOST_DRAFT_TOKENS = 64
MOST_ALTERNATIVES = 20


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Fixed when a model is loaded.

    context: tokens; None = what the model was trained on, at most 4096. gpu_layers: None = all,
    where a device exists. kv_type: of the target's cache, "auto" = what rounds
    alike at every width; a drafter's is always f16.
    strict: only widths that round alike, so that the text is the same to the bit.
    fit: where it does not fit into memory, load what does, and say what was changed.
    remember: guess from this model's earlier answers too, as far as the history holds them.
    """

    backend: str = "auto"
    context: int | None = None
    threads: int | None = None
    gpu_layers: int | None = None
    draft_gpu_layers: int | None = None
    kv_type: str = "auto"
    cpu_moe: bool = False
    flash_attention: str = "auto"
    strict: bool = False
    fit: bool = False
    remember: bool = False

    def __post_init__(self) -> None:
        for name, least in (
            ("context", 1),
            ("threads", 1),
            ("gpu_layers", 0),
            ("draft_gpu_layers", 0),
        ):
            _whole(name, getattr(self, name), least)


@dataclass(frozen=True, slots=True)
class Speculation:
    """How answers are guessed at; may change at any time, since what may be said does not.

    draft_tokens: guesses a round; None = what pays. always_draft: show mode, drafts even where
    plain decoding is faster. rule: how guesses are judged; an answer keeps the one it began with.
    Under "coupled" a seed's text does not depend on guesses, under "rejection" its distribution.
    """

    proposer: str = "auto"
    draft_tokens: int | None = None
    always_draft: bool = False
    rule: str = "coupled"

    def __post_init__(self) -> None:
        known = get_args(ProposerName)
        if self.proposer not in known:
            raise BadInput(f"No proposer '{self.proposer}'; there are: {', '.join(known)}.")
        if self.rule not in ("coupled", "rejection"):
            raise BadInput(f"No rule '{self.rule}'; there are: coupled, rejection.")
        _whole("draft_tokens", self.draft_tokens, 0)
        if (self.draft_tokens or 0) > MOST_DRAFT_TOKENS:
            raise BadInput(
                f"draft_tokens is {self.draft_tokens}; it must be from 0 to {MOST_DRAFT_TOKENS}."
            )


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """May change for each answer.

    sampling: None = what the model's makers recommend, else the project's default.
    overrides: fields of Sampling that replace those of `sampling`. max_tokens: None = until the
    model ends or the context is full. prediction: text that the answer may repeat.
    reasoning: passed to the chat template where it is not None. branch: number of one of several
    answers to the same prompt and seed. alternatives: how many of the target's best tokens each
    Committed tells of, with log-probabilities; 0 = none, which costs nothing.
    """

    sampling: Sampling | None = None
    overrides: Mapping[str, float | int] = field(default_factory=dict)
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    prediction: str = ""
    reasoning: bool | None = None
    branch: int = 0
    alternatives: int = 0

    def __post_init__(self) -> None:
        _whole("max_tokens", self.max_tokens, 1)
        _whole("branch", self.branch, 0)
        _whole("alternatives", self.alternatives, 0)
        if self.alternatives > MOST_ALTERNATIVES:
            raise BadInput(
                f"alternatives is {self.alternatives}; it must be from 0 to {MOST_ALTERNATIVES}."
            )
        if not isinstance(self.prediction, str):
            raise BadInput("prediction must be a text.")
        if not isinstance(self.stop, tuple) or not all(isinstance(s, str) for s in self.stop):
            raise BadInput("stop must be a tuple of texts.")


@dataclass(frozen=True, slots=True)
class Turn:
    """What is to be answered, and what of the answer stands already.

    messages: system (maybe), then user and assistant in turn; the last is the user's.
    begun: ids of the answer that stand: none for a new answer, all for one that is continued,
    those before a chosen token and that token for one that is steered anew.
    expected: ids that probably follow; a source of guesses only.
    options: with a seed, where the answer is to be continued or made again.
    speculation: None = what the model is set to. replies: ids of the assistant's messages, in turn,
    as this very model said them; () where they are not known: such a reply is split anew, as is one
    whose ids say something else. when: the time that the template is told; None = now.

    The noise of an answer hangs on its messages, seed and branch, and begins where `begun` ends:
    so an answer that is continued is the one that was never stopped.
    """

    messages: tuple[Message, ...]
    begun: tuple[int, ...] = ()
    expected: tuple[int, ...] = ()
    options: AnswerOptions = field(default_factory=AnswerOptions)
    speculation: Speculation | None = None
    replies: tuple[tuple[int, ...], ...] = ()
    when: datetime | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """What the target thought of token number `at` of an answer.

    logprob, alternatives: as in Committed.
    """

    at: int
    token: int
    logprob: float
    alternatives: tuple[Alternative, ...]


def _whole(name: str, value: object, least: int) -> None:
    if value is None or (type(value) is int and value >= least):
        return
    raise BadInput(f"{name} is {value!r}; it must be a whole number from {least}.")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What was loaded. exactness: how closely text with guesses equals text without, in words,
    under the rule that is in force.

    inexact_with: proposers that are excepted from that; with them it is so up to rounding.
    notes: what the user should be told once. memory: what it takes and what was free, in words.
    """

    pair: str
    target: str
    draft: str | None
    backend: str
    device: str
    context: int
    exactness: str
    notes: tuple[str, ...] = ()
    memory: str = ""
    inexact_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """One whole answer."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: Stop
    seed: int
    model: ModelInfo
    stats: Stats


class AnswerSettings(TypedDict, total=False):
    """The keywords of generate(), stream() and chat(): fields of Sampling and AnswerOptions."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_window: int
    logit_bias: Mapping[int, float]
    seed: int
    max_tokens: int | None
    stop: str | tuple[str, ...] | list[str] | None
    prediction: str
    reasoning: bool
    branch: int
    alternatives: int


class LoadSettings(TypedDict, total=False):
    """The keywords of load(): fields of LoadOptions and Speculation, and names people know.

    draft_model is draft, num_draft_tokens is draft_tokens, prompt_lookup=True is
    proposer="ngram".
    """

    target: str | None
    draft: str | None
    draft_model: str
    backend: str
    context: int | None
    threads: int | None
    gpu_layers: int | None
    draft_gpu_layers: int | None
    kv_type: str
    cpu_moe: bool
    flash_attention: str
    strict: bool
    fit: bool
    remember: bool
    proposer: str
    draft_tokens: int | None
    num_draft_tokens: int | None
    prompt_lookup: bool
    always_draft: bool
    rule: str
