"""From what the user names to the files of a target and its draft."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import BadInput, EdgespecError, IncompatiblePair, ModelFileError, NotFound
from edgespec.models.catalogue import catalogue
from edgespec.models.compat import check_vocabularies
from edgespec.models.folder_header import looks_like_adapter, looks_like_model
from edgespec.models.found import (
    FoundModel,
    files_called,
    find_model,
    found_models,
    snapshot_files,
)
from edgespec.models.hub_settings import check_endpoint
from edgespec.models.installed import InstalledPair, find_installed, installed_pairs
from edgespec.models.model_header import ModelHeader, header_of
from edgespec.models.names import Local, Named, Remote, choose, format_of, is_gguf, parse
from edgespec.models.shown import shown
from edgespec.models.sizes import size_text
from edgespec.models.split import parts_of
from edgespec.models.store import find_demo, find_demo_draft

DEMO = "demo"
NO_DRAFT = "none"
_INSTALL = "'edgespec doctor' prints the line that installs its weights"
_GIVE_FILES = "give a GGUF file with --target FILE"


@dataclass(frozen=True, slots=True)
class Pair:
    """A target and what drafts for it. notes: how they were chosen, in words, one line each."""

    name: str
    target: Path
    draft: Path | None = None
    notes: tuple[str, ...] = ()


def resolve(pair: str | None, target: str | None, draft: str | None) -> Pair:
    """The files behind a pair's name, a folder, or a target and a draft; nothing is downloaded.

    pair: `demo`, a pulled pair, `user/repo:quant` of what is in the hub's cache, a model of another
    program, a folder or a file. target, draft: files or `user/repo:quant`; draft `none` turns a
    pair's own off.
    Raises: NotFound, BadInput, IncompatiblePair, ModelFileError.
    """
    if pair and target:
        raise BadInput(f"Both the pair '{shown(pair)}' and --target are given; give one of them.")
    chosen = _one_model(_file_of(target)) if target else locate(pair or DEMO)
    if draft == NO_DRAFT:
        return Pair(chosen.name, chosen.target)
    return _with_draft(chosen, _file_of(draft)) if draft else chosen


def demo_pair() -> Pair:
    """The pair that needs no download. Raises: NotFound with the line that installs it."""
    path = find_demo()
    if path is None:
        raise NotFound(f"The pair 'demo' is not installed; {_INSTALL}, or {_GIVE_FILES}.")
    return Pair(DEMO, path, find_demo_draft())


def locate(name: str) -> Pair:
    """The files behind a name, a folder or a file. Raises: as resolve()."""
    wanted = Named(DEMO) if name == DEMO else parse(name)
    match wanted:
        case Local(path):
            return _one_model(path)
        case Remote():
            return _pulled(wanted.label) or _cached(wanted)
        case Named():
            return _known(wanted.name)


def names_a_pair(pair: str | None) -> bool:
    """Whether it is a pair that is named, for good, and not a file or a folder, for once."""
    return not os.path.exists(_path(pair or DEMO))


def _known(name: str) -> Pair:
    if name == DEMO:
        return demo_pair()
    _must_find_the_cache()
    return _pulled(name) or _elsewhere(name) or _not_here(name)


def _must_find_the_cache() -> None:
    """Raises: BadInput where the hub's library, which knows its place, cannot be imported."""
    if os.environ.get("HF_ENDPOINT"):
        check_endpoint()


def _pulled(name: str) -> Pair | None:
    """The pair of this name that was pulled, as far as it is still there."""
    found = find_installed(name)
    if found is None:
        return None
    missing = found.target.missing
    if missing:
        raise NotFound(
            f"The pair '{shown(found.name, 80)}' lacks {shown(missing[0].name)}; {found.remedy}."
        )
    draft, notes = _pulled_draft(found)
    return Pair(found.name, found.path(found.target), draft, notes)


def _pulled_draft(pair: InstalledPair) -> tuple[Path | None, tuple[str, ...]]:
    if pair.draft is None:
        return None, ()
    if pair.draft.missing:
        name = shown(pair.name, 80)
        return None, (f"The draft model of '{name}' is gone; {pair.remedy}.",)
    return pair.path(pair.draft), ()


def _cached(remote: Remote) -> Pair:
    """A repository's model that some program has put on this disk."""
    _must_find_the_cache()
    files = snapshot_files(remote.repo)
    if format_of(files) is None:
        elsewhere = find_model(remote.label)
        if elsewhere is not None:
            return _found(elsewhere)
        raise NotFound(
            f"{remote.label} is not on this machine; 'edgespec pull {remote.label}' fetches it."
        )
    own = files_called(remote.quant, files)
    try:
        first = choose(own, "")[0] if own else choose(files, remote.quant)[0]
    except NotFound as error:
        raise NotFound(
            f"{remote.repo}, as far as it is on this machine: {str(error).rstrip('.')}, or run"
            f" 'edgespec pull {remote.label}'."
        ) from error
    return Pair(remote.label, first.path if is_gguf(first.name) else first.path.parent)


def _elsewhere(name: str) -> Pair | None:
    """A model of another program, unless the catalogue has a pair of this name."""
    if catalogue().find(name) is not None:
        return None
    found = find_model(name)
    return None if found is None else _found(found)


def _found(model: FoundModel) -> Pair:
    return Pair(shown(model.name, 120), model.path, None, (f"used in place, from {model.place}",))


def _not_here(name: str) -> Pair:
    """Raises: NotFound with the line that fetches it, or the nearest names."""
    entry = catalogue().find(name)
    if entry is not None:
        sizes = [f"{size_text(build.bytes)} as {build.format.upper()}" for build in entry.builds]
        raise NotFound(
            f"The pair '{entry.name}' is not on this machine; 'edgespec pull {entry.name}' fetches"
            f" it ({', '.join(sizes)})."
        )
    known = [DEMO, *catalogue().names]
    known += [pair.name for pair in installed_pairs().pairs]
    known += [model.name for model in found_models()]
    near = difflib.get_close_matches(name, dict.fromkeys(known), n=3, cutoff=0.5)
    meant = f"; near it are {', '.join(shown(n, 80) for n in near)}" if near else ""
    raise NotFound(
        f"There is no pair '{shown(name, 120)}'{meant}; 'edgespec pairs' lists them all, or"
        f" {_GIVE_FILES}."
    )


def _file_of(text: str) -> Path:
    """The file or folder that --target or --draft names."""
    path = _path(text)
    if os.path.exists(path):  # unlike Path.exists, False for any name that no file can have
        return path
    try:
        wanted = parse(text)
    except BadInput:
        return path
    return _cached(wanted).target if isinstance(wanted, Remote) else path


def _path(text: str) -> Path:
    """A path, `~` included; an unknown `~user` stays as it is."""
    return Path(os.path.expanduser(text))


def _one_model(path: Path) -> Pair:
    if os.path.isdir(path) and not _is_one_model(path):
        return _folder(path)
    header = header_of(path)
    _must_run_alone(header)
    return Pair(shown(header.name, 80), header.path)


def _with_draft(chosen: Pair, path: Path) -> Pair:
    header = header_of(path)
    _must_run_alone(header)
    if header.path.samefile(chosen.target):
        raise BadInput(
            f"{shown(path)} is both target and draft, which cannot be faster;"
            " name a smaller model with --draft, or --draft none."
        )
    found = check_vocabularies(header_of(chosen.target), header)
    return Pair(chosen.name, chosen.target, header.path, (found.note,) if found.note else ())


def _must_run_alone(header: ModelHeader) -> None:
    if header.kind != "model":
        raise BadInput(
            f"{shown(header.path)} is of the kind '{shown(header.kind, 40)}', not a language model"
            " by itself; name the model that it belongs to."
        )
    if not header.has_weights:
        raise BadInput(f"{shown(header.path)} holds no weights; name a whole model.")


def _is_one_model(folder: Path) -> bool:
    """Whether a folder is an MLX model, or means to be one, and not a shelf of models."""
    meant = looks_like_model(folder) or looks_like_adapter(folder)
    return meant and not any(folder.glob("*.gguf"))


def _folder(folder: Path) -> Pair:
    """The largest model of a folder, with the smallest compatible one as its draft."""
    models, notes = _models_in(folder)
    if not models:
        reason = f" ({notes[0]})" if notes else ""
        raise NotFound(f"{shown(folder)} holds no GGUF model{reason}; {_GIVE_FILES}.")
    target, *smaller = sorted(models, key=lambda model: (-model.file_size, model.path.name))
    notes.insert(0, f"target: {shown(target.path.name)}, the largest model in the folder")
    draft: Path | None = None
    for model in reversed(smaller):
        if model.file_size == target.file_size:
            continue
        try:
            found = check_vocabularies(target, model)
        except IncompatiblePair:
            notes.append(f"not a draft: {shown(model.path.name)}, whose vocabulary differs")
            continue
        also = f" ({found.note})" if found.note else ""
        notes.append(f"draft: {shown(model.path.name)}, the smallest that fits the target{also}")
        draft = model.path
        break
    return Pair(shown(target.name, 80), target.path, draft, tuple(notes))


def _models_in(folder: Path) -> tuple[list[ModelHeader], list[str]]:
    """The language models in a folder and why other files were left out.

    Raises: the fault of a file that is larger than every sound model, since it was meant to be
    the target.
    """
    models: list[ModelHeader] = []
    faults: list[tuple[int, EdgespecError]] = []
    for path in _candidates(folder):
        try:
            header = header_of(path)
        except (ModelFileError, NotFound) as error:
            faults.append((_size_of(path), error))
            continue
        if header.kind == "model" and header.has_weights:
            models.append(header)
    largest = max((model.file_size for model in models), default=0)
    for size, fault in faults:
        if size > largest:
            raise fault
    return models, [f"left out: {fault}" for _, fault in faults]


def _candidates(folder: Path) -> list[Path]:
    """GGUF models of a folder, the first part of each, and MLX folders in it."""
    files = {parts_of(path)[0] for path in folder.glob("*.gguf")}
    folders = (path for path in folder.glob("*") if path.is_dir())
    return sorted(files | {path for path in folders if _is_one_model(path)})


def _size_of(path: Path) -> int:
    """Bytes of what is there of a model."""
    files = path.glob("*.safetensors") if path.is_dir() else iter(parts_of(path))
    return sum(file.stat().st_size for file in files if file.is_file())
