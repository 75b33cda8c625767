"""From names and options to a target, perhaps a drafter, and what they cost here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from edgespec import backends
from edgespec.backends import Backend, DeviceMemory, LoadedModel, Placement, SessionOptions
from edgespec.decoding.proposer import Proposer
from edgespec.decoding.request import RuleName
from edgespec.decoding.session import Session
from edgespec.errors import BackendMissing, BadInput, EdgespecError
from edgespec.history import History
from edgespec.history.earlier import earlier_answers
from edgespec.measuring import SAMPLE, Measured, measured_session
from edgespec.models import fit, memory
from edgespec.models.available import Available, GpuMemory, available_memory
from edgespec.models.compat import check_vocabularies
from edgespec.models.id_table import IdTable, vocabulary_digest
from edgespec.models.identity import label_of
from edgespec.models.model_header import ModelHeader, header_of
from edgespec.models.needs import ModelNeeds
from edgespec.models.pairs import Pair
from edgespec.models.shown import shown
from edgespec.options import LoadOptions, Speculation
from edgespec.planning.luck import Drafter, Luck
from edgespec.planning.measure import plain_seconds, reading_seconds, rows_at_most
from edgespec.planning.model_source import DraftCost
from edgespec.planning.planner import Auto
from edgespec.planning.strict import StrictSession
from edgespec.proposers.combine import Fixed
from edgespec.proposers.draft_model import FAMILY_HOPE, TRAINED_HOPE, SmallModel
from edgespec.proposers.memory import MOST_TOKENS, Memory
from edgespec.proposers.model_tree import Branching, ModelTree
from edgespec.proposers.nothing import Nothing
from edgespec.proposers.recent import SHORTEST, RecentSession
from edgespec.proposers.trimmed import TrimmedSession

Report = Callable[[str], None]
DEFAULT_CONTEXT = 4096
LEAST_CONTEXT = 16
SHOW_MODE_TOKENS = 4
_SAMPLE_TIMES = 4  # that a drafter reads the sample, which tells what reading costs it


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that one pair needs, open.

    models: what has to be closed in the end. memory: what they take here, in words.
    draft_left_out: whether the pair has a draft model for which memory was too short.
    """

    pair: Pair
    header: ModelHeader
    backend: str
    models: tuple[LoadedModel, ...]
    target: Measured
    drafter: Drafter | None
    notes: tuple[str, ...]
    luck: Luck
    memory: str
    draft_left_out: bool = False

    def proposer(self, speculation: Speculation) -> Proposer:
        """What guesses under these settings.

        Raises: BadInput when a draft model is asked for and there is none.
        """
        name, drafter = speculation.proposer, self.drafter
        if name == "draft" and drafter is None:
            if self.draft_left_out:
                raise BadInput(
                    f"--fit left the draft model of '{self.pair.name}' out, since both do not fit"
                    " into memory; use --proposer ngram, or a smaller --context or --draft."
                )
            raise no_draft_model(self.pair)
        if name == "none" or speculation.draft_tokens == 0:
            return Nothing()
        if speculation.draft_tokens is None and not speculation.always_draft:
            return Auto(self.luck.sources(name, trees=self.lets_trees), self.target.cost)
        return Fixed(self.luck.fixed(name), speculation.draft_tokens or SHOW_MODE_TOKENS)

    @property
    def lets_trees(self) -> bool:
        """Whether trees may be drafted for somebody who did not ask for them: where chains are
        exact to the bit as measured, nothing unasked may be less."""
        return self.target.session.caps.tree and not self.target.measurement.bit_exact

    def close(self) -> None:
        """Free the weights."""
        for model in self.models:
            model.close()

    def forget(self) -> None:
        """Empty both caches."""
        self.target.session.reset()
        if self.drafter is not None:
            self.drafter.proposer.forget()

    def exactness_under(self, rule: str) -> str:
        """How closely text with guesses that `rule` judges equals text without, in words."""
        if rule == RuleName.COUPLED:
            return self.exactness
        return (
            "same distribution: where the sampler draws, --rule rejection lets guesses decide which"
            f" text a seed gives, not how likely a text is; at temperature 0 {self.exactness}"
        )

    @property
    def exactness(self) -> str:
        """The same under the rule that draws alike with and without guesses, as measured here."""
        names = " or ".join(self.inexact_with)
        but = f", except by --proposer {names}" if names else ""
        if self._same_bits:
            return f"bit-exact: the same text to the bit, whatever is guessed{but}"
        if self.target.measurement.bit_exact:
            *widths, widest = self.target.measurement.seconds
            return (
                f"bit-exact as measured: after {self.target.measurement.context} tokens of text,"
                f" passes over {', '.join(map(str, widths))} and {widest} tokens gave the same"
                f" scores{but}; --strict keeps to such passes"
            )
        widest = max(self.target.measurement.seconds)
        compared = (
            "" if widest >= rows_at_most(self.target.session) else f" of up to {widest} tokens"
        )
        return (
            f"same up to rounding: wider passes{compared} change a score by at most"
            f" {self.target.measurement.largest_difference:.2g}; --strict makes it exact"
        )

    @property
    def inexact_with(self) -> tuple[str, ...]:
        """Proposers whose guesses may change a score by rounding where chains do not: siblings
        lie in the cache in another order than a chain, and sums round by order."""
        alike = self._same_bits or self.target.measurement.bit_exact
        return ("tree", "recycling") if alike and self.target.session.caps.tree else ()

    @property
    def _same_bits(self) -> bool:
        """Whether no pass has a width that was not compared, and all that were agree."""
        session, measurement = self.target.session, self.target.measurement
        compared = measurement.bit_exact and measurement.covers(rows_at_most(session))
        return compared or isinstance(session, StrictSession)


def no_draft_model(pair: Pair) -> BadInput:
    """What is said where a draft model is to guess and the pair has none."""
    return BadInput(
        f"'{pair.name}' has no draft model; name one with --draft FILE, or use --proposer ngram."
    )


def open_pair(pair: Pair, options: LoadOptions, report: Report) -> Loaded:
    """Check everything that can be checked, then load and measure.

    Raises: NotFound, ModelFileError, IncompatiblePair, OutOfMemory, BackendMissing.
    """
    wanted = _check(pair, options)
    backend = backends.find(options.backend, wanted.formats)
    wanted = replace(wanted, plan=_as_kept(wanted, backend))
    checked, options = _fitted(wanted, options, room(backend.probe().gpu_memory), report)
    pair = checked.pair
    opened: list[LoadedModel] = []
    try:
        file = backend.prepare(pair.target, report)
        report(f"loading {label_of(pair.target)}")
        model = backend.load(file, Placement(options.gpu_layers, options.cpu_moe))
        opened.append(model)
        target = measured_session(model, pair.target, options, report)
        sample = model.tokenizer.encode(SAMPLE, special=False)
        drafter = None
        if pair.draft is not None:
            file = backend.prepare(pair.draft, report)
            report(f"loading {label_of(pair.draft)}")
            model = backend.load(file, Placement(options.draft_gpu_layers, guesses_only=True))
            opened.append(model)
            drafter = _drafter(model, checked, sample, options)
        earlier = _earlier(checked, target.session.caps.vocab, options, report)
        luck = Luck.of(target.cost, drafter, earlier, keeps=options.remember)
    except BaseException:
        for model in opened:
            model.close()
        raise
    notes = list(checked.notes)
    if target.session.caps.rollback == 0:
        notes.append("Plain decoding: this model's state cannot be taken back.")
    return Loaded(
        pair,
        checked.header,
        backend.probe().name,
        tuple(opened),
        target,
        drafter,
        tuple(notes),
        luck,
        checked.memory,
        draft_left_out=pair.draft is None and wanted.pair.draft is not None,
    )


def _earlier(checked: _Checked, vocab: int, options: LoadOptions, report: Report) -> Memory | None:
    """What this pair answered before, where the user lets it be looked up and there is some.

    Answers with a token outside of the model's `vocab` were another's of the same name.
    """
    if not options.remember:
        return None
    try:
        history = History.existing()
    except EdgespecError as error:
        report(f"earlier answers are not looked up: {error}")
        return None
    try:
        vocabulary = vocabulary_digest(checked.header.tokens)
        answers = list(earlier_answers(history, checked.pair.name, vocabulary, MOST_TOKENS))
    finally:
        history.close()
    own = [answer for answer in answers if min(answer) >= 0 and max(answer) < vocab]
    return Memory(own) if own else None


@dataclass(frozen=True, slots=True)
class _Checked:
    """What the files' headers promise.

    header, draft: of both models. formats: theirs. shared: ids that they have in common. table: of
    a draft whose ids are its own. memory: the plan against what is free.
    """

    pair: Pair
    header: ModelHeader
    draft: ModelHeader | None
    formats: tuple[str, ...]
    plan: memory.MemoryPlan
    shared: int
    table: IdTable | None
    notes: tuple[str, ...]
    memory: str = ""


@runtime_checkable
class KeepsOtherwise(Protocol):
    """A backend that loads some models from copies of its own, of other sizes than the files."""

    def needs(self, header: ModelHeader) -> ModelNeeds:
        """Sizes of what is loaded; raises ModelFileError for what this backend cannot run."""
        ...


def plan_for(pair: Pair, options: LoadOptions) -> memory.MemoryPlan:
    """What a pair takes as it would be loaded here; by its files where no backend loads it.

    Raises: NotFound, BadInput, ModelFileError, IncompatiblePair.
    """
    wanted = _check(pair, options)
    try:
        return _as_kept(wanted, backends.find(options.backend, wanted.formats))
    except (BackendMissing, ImportError):  # whatever is wrong with it, the plan is asked for
        return wanted.plan


def _as_kept(checked: _Checked, backend: type[Backend]) -> memory.MemoryPlan:
    """The plan with the sizes of what the backend loads."""
    keeper: object = backend
    if not isinstance(keeper, KeepsOtherwise):
        return checked.plan
    draft = None if checked.draft is None else keeper.needs(checked.draft)
    return replace(checked.plan, target=keeper.needs(checked.header), draft=draft)


def room(gpus: Iterable[DeviceMemory]) -> Available:
    """What this machine has free for models, with the GPUs that a backend uses."""
    return Available(
        available_memory(),
        tuple(GpuMemory(gpu.free_bytes, gpu.unified, gpu.partial) for gpu in gpus),
    )


def usual_context(header: ModelHeader) -> int:
    """Tokens where no context was asked for."""
    return min(header.context_length or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def _check(pair: Pair, options: LoadOptions) -> _Checked:
    header = header_of(pair.target)
    if header.id_table is not None:
        raise BadInput(
            f"{shown(header.path)} guesses for another model and cannot answer itself; name it with"
            " --draft, beside the --target that it was trained for."
        )
    draft = header_of(pair.draft) if pair.draft else None
    context = options.context or usual_context(header)
    shared = check_vocabularies(header, draft).shared if draft is not None else 0
    plan = replace(
        memory.plan(header, draft, context, options.kv_type),
        gpu_layers=options.gpu_layers,
        draft_gpu_layers=options.draft_gpu_layers,
        cpu_moe=options.cpu_moe,
        flash_attention=options.flash_attention,
    )
    memory.check_kv_type(plan)
    _check_context(plan)
    formats = tuple({model.format: None for model in (header, draft) if model is not None})
    table = draft.id_table if draft is not None else None
    return _Checked(pair, header, draft, formats, plan, shared, table, pair.notes)


def _check_context(plan: memory.MemoryPlan) -> None:
    if plan.context < LEAST_CONTEXT:
        raise BadInput(
            f"A context of {plan.context} tokens holds no conversation; give --context"
            f" {LEAST_CONTEXT} or more."
        )
    if plan.draft is not None and plan.draft_context < LEAST_CONTEXT:
        raise BadInput(
            f"The draft model was trained on texts of {plan.draft_context} tokens, too few to guess"
            " by; name another with --draft, or --draft none."
        )


def _fitted(
    checked: _Checked, options: LoadOptions, free: Available, report: Report
) -> tuple[_Checked, LoadOptions]:
    """What is loaded here: as asked for, or with what `fit` changed so that it fits."""
    plan, notes = checked.plan, list(checked.notes)
    if options.fit:
        fitted = fit.fit(plan, free)
        plan = fitted.plan
        if fitted.changes:
            notes.append(f"To fit into memory: {', '.join(fitted.changes)}.")
    else:
        fit.check(plan, free)
    line = memory.one_line(plan, free)
    report(line)
    if plan.tight(free):
        notes.append(f"Memory is short: {line}.")
    trained = plan.target.trained_context
    if trained and plan.context > trained:
        notes.append(
            f"The model was trained on {trained} tokens; text beyond them may make no sense."
        )
    if plan.draft is not None and plan.draft_context < min(SHORTEST, plan.context):
        notes.append(
            f"The draft model reads {plan.draft_context} tokens; beyond that answers go on without"
            " it."
        )
    pair = checked.pair if plan.draft is not None else replace(checked.pair, draft=None)
    options = replace(
        options, context=plan.context, kv_type=plan.kv_type, gpu_layers=plan.gpu_layers
    )
    return replace(checked, pair=pair, plan=plan, notes=tuple(notes), memory=line), options


def _drafter(
    model: LoadedModel, checked: _Checked, sample: list[int], options: LoadOptions
) -> Drafter:
    """sample: some text in the target's ids."""
    context = checked.plan.draft_context
    settings = SessionOptions(context, options.threads, rows=memory.DRAFT_ROWS, lazy=True)
    session: Session = model.session(replace(settings, flash_attention=options.flash_attention))
    session = as_drafter(session, (context, checked.plan.context), checked.table, checked.shared)
    known = [token for token in sample if token < checked.shared] * _SAMPLE_TIMES
    prompt = known[: context // 2]
    vocab, read_s = checked.shared, reading_seconds(session, prompt)
    takes = DraftCost(plain_seconds(session, prompt[: len(sample)]), read_s)
    hope = FAMILY_HOPE if checked.table is None else TRAINED_HOPE
    chain, branching = SmallModel(session, vocab, hope), Branching(session, vocab, hope)
    return Drafter(chain, takes, ModelTree(session, vocab, hope), branching)


def as_drafter(
    session: Session, contexts: tuple[int, int], table: IdTable | None, shared: int
) -> Session:
    """A draft model's session that takes the target's ids, and texts beyond its own context.

    contexts: the draft model's and the target's. shared: ids below it are the target's too.
    """
    own, whole = contexts
    if SHORTEST <= own < whole:
        session = RecentSession(session, whole)
    return session if table is None else TrimmedSession(session, table.ids, table.unknown, shared)
