"""`edgespec tune`: finds, by replaying answers, what to guess with here, and keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from edgespec.cli.options import SAMPLER, Given, shared_flags
from edgespec.cli.output import Progress, note, one_line, write, write_json
from edgespec.cli.settings import Setting
from edgespec.cli.values import Whole
from edgespec.errors import BadInput, EdgespecError

if TYPE_CHECKING:
    from edgespec.api import Model
    from edgespec.bench.conversations import Conversations
    from edgespec.bench.prompts import Prompt
    from edgespec.bench.recorded import Recorded
    from edgespec.bench.tuning import Candidate, Tuned, Way
    from edgespec.models.choices import Choice
    from edgespec.models.pairs import Pair
    from edgespec.options import LoadOptions

_ANSWERS, _KEPT_ANSWERS, _TOKENS = 12, 100, 128
_DECIDED_HERE = ("proposer", "draft_tokens", "always_draft")
_PLAINLY = {"temperature": 0.0, "rule": "coupled"}  # as answers are made here, whoever says so
_CHANGES_ANSWERS = (*SAMPLER, "rule", "stop", "reasoning")


class ModelFile(click.ParamType[str]):
    """A file's name; whole, even from the environment: it may hold spaces."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not isinstance(value, str) or not value.strip():
            self.fail("a draft model needs a name.", param, ctx)
        return value

    def split_envvar_value(self, rv: str) -> list[str]:
        return [rv]


_DRAFTS = click.option(
    "--draft",
    cls=Setting,
    multiple=True,
    type=ModelFile(),
    metavar="FILE",
    help="A draft model to compare; may be repeated.  [default: the pair's own]",
)


@dataclass(frozen=True, slots=True)
class Material:
    """What is answered: prompts for the target, and conversations that hold their answers.

    most_kept: how many answers of conversations are used.
    """

    prompts: tuple[Prompt, ...]
    conversations: tuple[Conversations, ...]
    most_kept: int
    words: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found and is to be kept for this target."""

    found: Tuned
    choice: Choice
    target: Path

    def tell(self, *, saves: bool, as_json: bool) -> None:
        """Print it and keep it; printed it is even where the disk refuses.

        Raises: as remember().
        """
        if as_json:
            self._tell_json(saves=saves)
            return
        write("\n".join(_lines(self.found)) + "\n")
        if saves:
            self._keep()
        kept = "edgespec chat, run and load() use it" if saves else "nothing is kept"
        write(f"Best for {one_line(self.choice.target)}: {self.choice.words}; {kept}.\n")

    def _tell_json(self, *, saves: bool) -> None:
        saved = False
        try:
            if saves:
                self._keep()
                saved = True
        finally:
            write_json(_as_dict(self.found, self.choice, saved=saved), indent=2)

    def _keep(self) -> None:
        from edgespec.models.choices import remember

        remember(self.target, self.choice)


@click.command()
@click.argument("pair", required=False)
@click.option(
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Your own prompts, an object a line, or conversations as JSON; may be repeated.",
)
@click.option(
    "--answers",
    type=Whole(1, 100_000),
    metavar="N",
    help=f"How many are compared.  [default: {_ANSWERS}; {_KEPT_ANSWERS} of conversations]",
)
@click.option("--dry-run", is_flag=True, help="Compare, but keep nothing.")
@click.option("--forget", "forgets", is_flag=True, help="Remove what was chosen for PAIR.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@partial(shared_flags, draft=_DRAFTS)
def tune(given: Given, pair: str | None, files: tuple[str, ...], **wanted: Any) -> None:
    """Find what to guess with for PAIR, and keep it for `chat`, `run` and `edgespec.load()`.

    Every way of guessing is replayed on answers: those of FILE, else those of your last chats, or,
    where few are kept, those that the target gives, once and plainly, to prompts of edgespec.
    Conversations bring their answers with them and need no pass of the target.
    """
    from edgespec.models.pairs import resolve

    _check(given, files, wanted)
    drafts = tuple(given.draft_beside(pair) or ())
    given = replace(given, values={**given.values, "draft": None})
    name, target, _ = given.which(pair)
    chosen = resolve(name, target, None)
    if wanted["forgets"]:
        _forget(chosen, as_json=wanted["as_json"])
        return
    compared = [resolve(name, target, draft).draft for draft in drafts] or [chosen.draft]
    if not wanted["dry_run"]:
        from edgespec.models.choices import check_room

        check_room(chosen.target)  # now rather than after minutes of work
    material = _material(files, wanted["answers"])
    tried = [draft for draft in compared if draft is not None]
    found = _tuned(given, (name, target), tried, material)
    choice = _choice(found, chosen, material, given.load_options())
    outcome = Outcome(found, choice, chosen.target)
    outcome.tell(saves=not wanted["dry_run"], as_json=wanted["as_json"])


def _check(given: Given, files: tuple[str, ...], wanted: Mapping[str, Any]) -> None:
    """Raises: BadInput for flags that would change nothing here."""
    for name in sorted(given.on_line):
        flag = f"--{name.replace('_', '-')}"
        if name in _DECIDED_HERE:
            raise BadInput(f"tune compares ways to guess; leave {flag} out.")
        if name in _CHANGES_ANSWERS and given.values[name] != _PLAINLY.get(name):
            raise BadInput(f"tune compares on plain answers at temperature 0; leave {flag} out.")
    if not wanted["forgets"]:
        return
    more = {"--dry-run": wanted["dry_run"], "--file": files, "--answers": wanted["answers"]}
    more["--draft"] = "draft" in given.on_line
    for flag in (flag for flag, is_there in more.items() if is_there):
        raise BadInput(f"--forget only removes what was chosen; leave {flag} out.")


def _forget(pair: Pair, *, as_json: bool) -> None:
    from edgespec.models.choices import forget

    forgotten, target = forget(pair.target), one_line(pair.target.name)
    if as_json:
        write_json({"target": pair.target.name, "forgotten": forgotten}, indent=2)
    elif forgotten:
        write(f"What was chosen for {target} is forgotten.\n")
    else:
        write(f"Nothing had been chosen for {target}.\n")


def _material(files: tuple[str, ...], answers: int | None) -> Material:
    from edgespec.bench.conversations import ConversationFile
    from edgespec.bench.prompts import read, shipped

    if not files:
        chats = _kept(answers or _KEPT_ANSWERS)
        if chats is not None:
            note("your last conversations are replayed; --file takes others")
            return Material((), (chats,), answers or _KEPT_ANSWERS, "your last conversations")
        note("the prompts that come with edgespec stand in; --file tunes for what you ask")
        prompts = _across_categories(shipped(), answers or _ANSWERS)
        return Material(prompts, (), 0, "the prompts that come with edgespec")
    own: list[Prompt] = []
    conversations: list[Conversations] = []
    for name in files:
        if (found := ConversationFile.open(Path(name))) is not None:
            conversations.append(found)
        else:
            own += read(Path(name), note)
    words = ", ".join(one_line(Path(name).name) for name in files)
    kept = _across_categories(tuple(own), answers or _ANSWERS)
    return Material(kept, tuple(conversations), answers or _KEPT_ANSWERS, words)


def _kept(most: int) -> Conversations | None:
    """The last conversations of the chat, with `most` answers; None where they have too few."""
    from edgespec.bench.conversations import Kept
    from edgespec.history import History

    try:
        with closing(History.existing()) as history:
            for line in history.notes:
                note(line)
            kept = Kept.of(history.conversations(), most)
    except EdgespecError as error:
        note(str(error))
        return None
    return kept if kept.answers >= min(most, _ANSWERS) else None


def _across_categories(prompts: tuple[Prompt, ...], most: int) -> tuple[Prompt, ...]:
    """The first of each category, then the second, until there are enough turns."""
    by_category: dict[str, list[Prompt]] = {}
    for prompt in prompts:
        by_category.setdefault(prompt.category, []).append(prompt)
    rows = [
        (place, order, prompt)
        for order, found in enumerate(by_category.values())
        for place, prompt in enumerate(found)
    ]
    kept, turns = [], 0
    for _, _, prompt in sorted(rows, key=lambda row: row[:2]):
        if turns < most:
            kept.append(prompt)
            turns += len(prompt.turns)
    return tuple(kept)


def _tuned(
    given: Given, names: tuple[str | None, str | None], drafts: list[Path], material: Material
) -> Tuned:
    from edgespec.api import Speculation, load
    from edgespec.bench.tuning import Workshop, tuned

    options, progress = given.load_options(), Progress(verbose=given.verbose)

    def opened(draft: Path | None) -> Model:
        return load(
            names[0],
            target=names[1],
            draft="none" if draft is None else str(draft),
            options=options,
            speculation=Speculation(),
            report=progress,
        )

    def answers(model: Model) -> list[Recorded]:
        return _answers(model, given, material, progress)

    return tuned(Workshop(opened, answers, options, progress, note), drafts)


def _answers(model: Model, given: Given, material: Material, progress: Progress) -> list[Recorded]:
    from edgespec.bench.recording import from_conversations, record

    said = [c for source in material.conversations for c in source.conversations()]
    records = from_conversations(model, said, material.most_kept, note)
    tokens = given.values["max_tokens"] or _TOKENS
    for number, prompt in enumerate(material.prompts, 1):
        progress(f"the target answers prompt {number} of {len(material.prompts)}")
        try:
            records.extend(record(model, prompt, tokens, given.system))
        except BadInput as error:
            note(f"{prompt.id} is left out: {error}")
    if not records:
        raise BadInput("No answer to tune on; give conversations with answers, or prompts.")
    if all(len(record.reply) < 2 for record in records):
        raise BadInput(
            "All answers are one token long, which no guess makes faster; give longer ones, or"
            " raise --max-tokens."
        )
    return records


def _choice(found: Tuned, pair: Pair, material: Material, options: LoadOptions) -> Choice:
    from edgespec.measuring import chosen_on
    from edgespec.models.choices import Choice

    return Choice(
        target=pair.target.name,
        draft=found.best.draft.absolute() if found.best.draft else None,
        proposer=found.best.proposer,
        draft_tokens=found.best.draft_tokens,
        chosen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        basis=f"{found.answers} answers to {material.words}",
        seconds=found.best.seconds,
        plain_seconds=found.plain.seconds,
        made_on=chosen_on(pair.target, options),
    )


def _lines(found: Tuned) -> Iterator[str]:
    """The comparison, for people."""
    rows = [("plain", found.plain.seconds, "")]
    for candidate in found.candidates:
        best = candidate.best
        length = "as many guesses as pay"
        if best.draft_tokens:
            length = f"always {best.draft_tokens} guesses"
        ratio = found.plain.seconds / best.seconds if best.seconds else 1.0
        more = f"  {ratio:.2f} times plain, {length}"
        if candidate.bound_seconds is not None:
            more += f"; {_rounded(candidate.bound_seconds)} s with perfect foresight"
        rows.append((_named(best), best.seconds, more))
    width = max(len(name) for name, _, _ in rows)
    yield f"What these {found.answers} answers of {found.tokens} tokens take here, replayed:"
    for name, seconds, more in rows:
        yield f"  {name.ljust(width)}  {_rounded(seconds).rjust(7)} s{more}"


def _rounded(seconds: float) -> str:
    return f"{seconds:.3g}" if seconds < 100 else f"{seconds:.0f}"


def _named(way: Way) -> str:
    if way.draft is not None:
        return f"with {one_line(way.draft.name)}"
    return {"tree": "trees", "recycling": "recycling"}.get(way.proposer, "n-gram alone")


def _as_dict(found: Tuned, choice: Choice, *, saved: bool) -> dict[str, Any]:
    return {
        "target": choice.target,
        "basis": choice.basis,
        "answers": found.answers,
        "tokens": found.tokens,
        "plain_seconds": found.plain.seconds,
        "candidates": [_candidate(one, found.plain) for one in found.candidates],
        "chosen": {
            "draft": str(choice.draft) if choice.draft else None,
            "proposer": choice.proposer,
            "draft_tokens": choice.draft_tokens,
            "seconds": choice.seconds,
        },
        "saved": saved,
    }


def _candidate(candidate: Candidate, plain: Way) -> dict[str, Any]:
    best, cost = candidate.best, candidate.cost
    return {
        "draft": str(best.draft) if best.draft else None,
        "proposer": best.proposer,
        "draft_tokens": best.draft_tokens,
        "seconds": best.seconds,
        "speedup": plain.seconds / best.seconds if best.seconds else None,
        "foresight_seconds": candidate.bound_seconds,
        "guess_s": cost.guess_s if cost else None,
        "read_s": cost.read_s if cost else None,
    }
