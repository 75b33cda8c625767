"""From what the user names to a pair on this machine: chosen, judged, fetched, recorded."""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edgespec.errors import BadInput, EdgespecError, IncompatiblePair, ModelFileError, NotFound
from edgespec.models.catalogue import Format, Source, catalogue
from edgespec.models.compat import check_vocabularies
from edgespec.models.fetch import fetch, missing_bytes
from edgespec.models.header import GgufHeader
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.installed import (
    InstalledModel,
    InstalledPair,
    data_dir,
    find_installed,
    now,
    record,
)
from edgespec.models.model_header import header_of
from edgespec.models.names import Local, Named, Remote, files_of, format_of, parse, quant_of
from edgespec.models.pairs import NO_DRAFT
from edgespec.models.peek import peek
from edgespec.models.shown import shown
from edgespec.models.transfer import Report

Note = Callable[[str], None]
HeaderCheck = Callable[[GgufHeader], object]  # raises ModelFileError for what does not run here


@dataclass(frozen=True, slots=True)
class Wish:
    """What to pull, as typed. draft: "" = the pair's own, or that of the last pull; `none` = none.

    revision: of the target; empty = as the catalogue pins it, else the main branch. formats: those
    that run here, the better first. check: for GGUF models; None = all of them run here.
    """

    name: str
    draft: str = ""
    revision: str = ""
    formats: tuple[Format, ...] = ("gguf",)
    check: HeaderCheck | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """One model on the hub: its files at a commit, the first part first.

    header: what the beginning of a GGUF model says; None for MLX.
    """

    snapshot: Snapshot
    files: tuple[RemoteFile, ...]
    header: GgufHeader | None

    @property
    def format(self) -> Format:
        return "mlx" if self.header is None else "gguf"

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def quantisation(self) -> str:
        """Such as Q4_K_M; empty where it is not told."""
        return self.header.file_type if self.header else quant_of(self.files[0].name)


@dataclass(frozen=True, slots=True)
class PullPlan:
    """What would be fetched.

    note: harmless differences of the vocabularies, in words. base: whether the catalogue says that
    the target only goes on with texts.
    """

    name: str
    target: Chosen
    draft: Chosen | None
    licence: str | None = None
    note: str = ""
    base: bool = False

    @property
    def models(self) -> tuple[Chosen, ...]:
        return (self.target,) if self.draft is None else (self.target, self.draft)

    def missing_bytes(self, hub: Hub) -> int:
        return sum(missing_bytes(hub, model.snapshot, model.files) for model in self.models)


@dataclass(frozen=True, slots=True)
class _Sources:
    """What a wish stands for. draft: None = none. licence, base: as the catalogue says."""

    name: str
    target: Source
    draft: Source | None
    licence: str | None = None
    base: bool = False


def plan_pull(hub: Hub, wish: Wish, note: Note) -> PullPlan:
    """Choose both models and compare their vocabularies; nothing is kept on this machine.

    Raises: BadInput, NotFound; IncompatiblePair naming the first id that differs; ModelFileError;
    as Hub.snapshot().
    """
    named = _sources(wish)
    wanted = replace(named.target, revision=wish.revision or named.target.revision)
    target = _chosen(hub, wanted, wish, note)
    draft = None if named.draft is None else _chosen(hub, named.draft, wish, note)
    licence = target.snapshot.licence or named.licence
    return PullPlan(named.name, target, draft, licence, _compared(target, draft), named.base)


def pull(hub: Hub, plan: PullPlan, report: Report) -> InstalledPair:
    """Fetch what is missing, check it as it lies on the disk, and record the pair.

    Raises: as fetch(); ModelFileError; EdgespecError, before any byte is fetched, where the record
    could not be written.
    """
    _check_recordable()
    paths = [fetch(hub, model.snapshot, model.files, report) for model in plan.models]
    headers = [
        header_of(files[0] if model.format == "gguf" else files[0].parent)
        for model, files in zip(plan.models, paths, strict=True)
    ]
    if len(headers) == 2:
        check_vocabularies(*headers)
    models = [_installed(*both) for both in zip(plan.models, paths, strict=True)]
    pair = InstalledPair(
        plan.name,
        plan.target.format,
        models[0],
        models[1] if len(models) > 1 else None,
        now(),
    )
    record(pair)
    return pair


def _check_recordable() -> None:
    folder = data_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EdgespecError(
            f"{shown(folder)}, where pulled pairs are recorded, cannot be written"
            f" ({shown(error.strerror or error)}), so nothing was fetched; check its permissions,"
            " or move it with EDGESPEC_DATA_DIR."
        ) from error


def _sources(wish: Wish) -> _Sources:
    wanted = parse(wish.name)
    match wanted:
        case Local():
            raise BadInput(
                f"'{shown(wish.name, 120)}' names a file on this machine; run it with 'edgespec"
                f" chat --target {shown(wish.name, 120)}', or name what the hub has."
            )
        case Remote():
            draft = _draft_source(wish, _draft_of_before(wanted.label))
            return _Sources(wanted.label, Source(wanted.repo, quant=wanted.quant), draft)
        case Named():
            entry = catalogue().find(wanted.name)
            if entry is None:
                raise _unknown(wanted.name)
            build = entry.build(*wish.formats)
            if build is None:
                raise NotFound(
                    f"'{entry.name}' comes as {entry.builds[0].format.upper()} only, which no"
                    " backend here runs; 'edgespec doctor' tells what is missing."
                )
            draft = _draft_source(wish, build.draft)
            return _Sources(entry.name, build.target, draft, entry.licence, entry.base)


def _draft_of_before(name: str) -> Source | None:
    """The draft model that this pair was pulled with."""
    pair = find_installed(name)
    if pair is None or pair.draft is None:
        return None
    if pair.format == "mlx":
        return Source(pair.draft.repo)
    _, _, name = pair.draft.files[0].as_posix().partition(f"/{pair.draft.commit}/")
    return Source(pair.draft.repo, file=name)


def _draft_source(wish: Wish, own: Source | None) -> Source | None:
    if not wish.draft:
        return own
    if wish.draft == NO_DRAFT:
        return None
    wanted = parse(wish.draft)
    if not isinstance(wanted, Remote):
        raise BadInput(
            f"--draft {shown(wish.draft, 120)} is no repository on the hub; give user/repo:quant or"
            " none. A file on this machine is given to 'edgespec chat --draft FILE'."
        )
    return Source(wanted.repo, quant=wanted.quant)


def _unknown(name: str) -> NotFound:
    near = difflib.get_close_matches(name, catalogue().names, n=3, cutoff=0.5)
    meant = f"; near it are {', '.join(near)}" if near else ""
    return NotFound(
        f"There is no pair '{shown(name, 120)}'{meant}; 'edgespec pairs' lists them, and"
        " user/repo:quant names any GGUF model on the hub."
    )


def _chosen(hub: Hub, source: Source, wish: Wish, note: Note) -> Chosen:
    snapshot = hub.snapshot(source.repo, source.revision or None, note)
    files = _files(source, snapshot)
    kind: Format = "mlx" if format_of(files) == "mlx" else "gguf"
    if kind not in wish.formats:
        other = "a GGUF" if kind == "mlx" else "an MLX"
        raise NotFound(
            f"{shown(source.repo)} comes as {kind.upper()} only, which no backend here runs; name"
            f" {other} version of it ('edgespec doctor' tells what is missing)."
        )
    if kind == "mlx":
        return Chosen(snapshot, files, None)
    header = peek(hub, snapshot, files, note)
    if header.kind != "model" or not header.tensors:
        raise ModelFileError(
            f"{shown(files[0].name, 120)} in {shown(source.repo)} is of the kind"
            f" '{shown(header.kind, 40)}', not a language model by itself; choose another file."
        )
    _must_run_here(header, wish)
    return Chosen(snapshot, files, header)


def _must_run_here(header: GgufHeader, wish: Wish) -> None:
    """Raises: ModelFileError with what helps."""
    if wish.check is None:
        return
    try:
        wish.check(header)
    except ModelFileError as error:
        raise ModelFileError(
            f"{error} Nothing was fetched; 'edgespec doctor' tells which line installs llama.cpp."
        ) from error


def _files(source: Source, snapshot: Snapshot) -> tuple[RemoteFile, ...]:
    try:
        return files_of(source, snapshot.files)
    except NotFound as error:
        raise NotFound(f"{shown(source.repo)}: {error}") from error


def _compared(target: Chosen, draft: Chosen | None) -> str:
    if draft is None:
        return ""
    if draft.files == target.files:
        raise BadInput(
            f"{shown(target.files[0].name, 120)} is both target and draft, which cannot be faster;"
            " name a smaller model with --draft, or --draft none."
        )
    if draft.format != target.format:
        raise IncompatiblePair(
            f"{shown(draft.snapshot.repo)} is {draft.format.upper()} and"
            f" {shown(target.snapshot.repo)} is {target.format.upper()}; name a draft model in the"
            " target's format."
        )
    if target.header is None or draft.header is None:
        return "MLX vocabularies are compared once they are fetched"
    return check_vocabularies(target.header, draft.header).note


def _installed(model: Chosen, paths: Sequence[Path]) -> InstalledModel:
    files = tuple(path.absolute() for path in paths)
    return InstalledModel(model.snapshot.repo, model.snapshot.commit, files, model.size)
