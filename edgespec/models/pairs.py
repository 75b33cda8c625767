"""From what the user names to the files of a target and its draft."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from edgespec.errors import BadInput, EdgespecError, IncompatiblePair, ModelFileError, NotFound
from edgespec.models.compat import check_vocabularies
from edgespec.models.header import GgufHeader
from edgespec.models.shown import shown
from edgespec.models.split import parts_of, read_model
from edgespec.models.store import find_demo

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
    """The files behind a pair's name, a folder, or a target and a draft.

    pair: `demo`, a folder or a file; target, draft: files; draft `none` turns a pair's own off.
    Raises: NotFound, BadInput, IncompatiblePair, ModelFileError.
    """
    if pair and target:
        raise BadInput(f"Both the pair '{shown(pair)}' and --target are given; give one of them.")
    chosen = _one_model(_path(target)) if target else _named(pair or DEMO)
    if not draft:
        return chosen
    if draft == NO_DRAFT:
        return Pair(chosen.name, chosen.target)
    return _with_draft(chosen, _path(draft))


def demo_pair() -> Pair:
    """The pair that needs no download. Raises: NotFound with the line that installs it."""
    path = find_demo()
    if path is None:
        raise NotFound(f"The pair 'demo' is not installed; {_INSTALL}, or {_GIVE_FILES}.")
    return Pair(DEMO, path)


def _named(pair: str) -> Pair:
    if pair == DEMO:
        return demo_pair()
    path = _path(pair)
    if os.path.exists(path):  # unlike Path.exists, False for any name that no file can have
        return _one_model(path)
    raise NotFound(
        f"There is no pair '{shown(pair)}'; the known pair is '{DEMO}', or {_GIVE_FILES}."
    )


def _path(text: str) -> Path:
    """A path, `~` included; an unknown `~user` stays as it is."""
    return Path(os.path.expanduser(text))


def _one_model(path: Path) -> Pair:
    if os.path.isdir(path):
        return _folder(path)
    header = read_model(path)
    _must_run_alone(header)
    return Pair(shown(header.name, 80), header.path)


def _with_draft(chosen: Pair, path: Path) -> Pair:
    header = read_model(path)
    _must_run_alone(header)
    if header.path.samefile(chosen.target):
        raise BadInput(
            f"{shown(path)} is both target and draft, which cannot be faster;"
            " name a smaller model with --draft, or --draft none."
        )
    found = check_vocabularies(read_model(chosen.target), header)
    return Pair(chosen.name, chosen.target, header.path, (found.note,) if found.note else ())


def _must_run_alone(header: GgufHeader) -> None:
    if header.kind != "model":
        raise BadInput(
            f"{shown(header.path)} is of the kind '{shown(header.kind, 40)}', not a language model"
            " by itself; name the model that it belongs to."
        )
    if not header.tensors:
        raise BadInput(f"{shown(header.path)} holds no weights; name a whole model.")


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


def _models_in(folder: Path) -> tuple[list[GgufHeader], list[str]]:
    """The language models in a folder and why other files were left out.

    Raises: the fault of a file that is larger than every sound model, since it was meant to be
    the target.
    """
    models: list[GgufHeader] = []
    faults: list[tuple[int, EdgespecError]] = []
    for path in sorted({parts_of(path)[0] for path in folder.glob("*.gguf")}):
        try:
            header = read_model(path)
        except (ModelFileError, NotFound) as error:
            present = (part for part in parts_of(path) if part.is_file())
            faults.append((sum(part.stat().st_size for part in present), error))
            continue
        if header.kind == "model" and header.tensors:
            models.append(header)
    largest = max((model.file_size for model in models), default=0)
    for size, fault in faults:
        if size > largest:
            raise fault
    return models, [f"left out: {fault}" for _, fault in faults]
