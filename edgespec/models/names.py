"""How people name models, and which files of a repository a name means.

Names are those that llama-server and Ollama take: `user/repo:quant`, `hf.co/user/repo:quant`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeVar

from edgespec.errors import BadInput, NotFound
from edgespec.models.catalogue import Format, Source, is_repo
from edgespec.models.shown import shown
from edgespec.models.split import parts_of

_LONGEST: Final = 400
_PREFIXES: Final = (
    "https://huggingface.co/",
    "https://hf.co/",
    "huggingface.co/",
    "hf.co/",
    "hf://",
)
_NAMED: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_QUANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
# an address of the hub that leads into a repository
_PAGE: Final = re.compile(
    r"(?P<repo>[^/]+/[^/]+)/(?:tree|blob|resolve)/(?P<revision>[^/?#]+)"
    r"/?(?P<file>[^?#]*)(?:[?#].*)?"
)
# what llama.cpp takes when no quantisation is named
_USUAL: Final = ("Q4_K_M", "Q8_0")
_SIDECAR: Final = re.compile(r"(mmproj|mtp-|eagle3-|dflash-|dspark-|imatrix)", re.IGNORECASE)
_MLX_BESIDE: Final = (".json", ".jinja", ".txt", ".model")


@dataclass(frozen=True, slots=True)
class Named:
    """A pair of the catalogue or of this machine, in small letters."""

    name: str


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository on the hub. quant: as typed, or a file's name without its ending; empty = the
    usual one."""

    repo: str
    quant: str = ""

    @property
    def label(self) -> str:
        return f"{self.repo}:{self.quant}" if self.quant else self.repo


@dataclass(frozen=True, slots=True)
class Local:
    """A file or a folder on this machine."""

    path: Path


Wanted = Named | Remote | Local


class Entry(Protocol):
    """Anything with a name inside a repository, `/` between folders."""

    @property
    def name(self) -> str: ...


File = TypeVar("File", bound=Entry)


def parse(text: str) -> Wanted:
    """What a name means, by its form alone, unless such a file or folder exists.

    Raises: BadInput for what no model can be called.
    """
    _check_characters(text)
    path = Path(os.path.expanduser(text))
    rest = _without_prefix(text)
    is_address = rest != text
    if os.path.exists(path) or (not is_address and _looks_local(text)):
        return Local(path)
    if is_address and (page := _PAGE.fullmatch(rest)) is not None and is_repo(page["repo"]):
        return _of_page(page, text)
    if "/" not in rest:
        return _named(rest, text)
    repo, colon, quant = rest.rstrip("/").partition(":")
    if not is_repo(repo):
        raise BadInput(
            f"'{shown(text, 120)}' is not a model's name; write user/repo, user/repo:quant, the"
            " name of a pair, or the path of a file that exists."
        )
    if colon and _QUANT.fullmatch(quant) is None:
        raise BadInput(
            f"'{shown(quant, 60)}' in '{shown(text, 120)}' is not a quantisation; write one such"
            f" as {repo}:Q4_K_M."
        )
    return Remote(repo, quant)


def _of_page(page: re.Match[str], text: str) -> Remote:
    """What the address of a repository's folder or file stands for.

    A file is named by all of its name but the ending, which `choose` finds as it finds a
    quantisation.
    """
    file = PurePosixPath(page["file"])
    in_full = is_gguf(file.name) and _QUANT.fullmatch(file.stem) is not None
    remote = Remote(page["repo"], file.stem if in_full else quant_of(file.name))
    if page["revision"] == "main" and (in_full or not file.name):
        return remote
    raise BadInput(
        f"'{shown(text, 120)}' leads into a repository; write {remote.label}, and name a branch or"
        " commit with 'edgespec pull --revision R'."
    )


def _check_characters(text: str) -> None:
    if not text.strip():
        raise BadInput("The model's name is empty; give a pair, user/repo:quant or a file.")
    if len(text) > _LONGEST and not os.path.isabs(text):
        raise BadInput(
            f"A model's name of {len(text)} characters ('{shown(text, 40)}') cannot be meant;"
            " give a pair, user/repo:quant or a file."
        )
    if "\0" in text:
        raise BadInput(f"'{shown(text, 80)}' holds a zero byte, which no name can.")


def _looks_local(text: str) -> bool:
    return text.startswith((".", "/", "~")) or "\\" in text or text.lower().endswith(".gguf")


def _without_prefix(text: str) -> str:
    lower = text.lower()
    prefix = next((prefix for prefix in _PREFIXES if lower.startswith(prefix)), "")
    return text[len(prefix) :]


def _named(name: str, text: str) -> Named:
    # Ollama's names have a tag behind a colon
    stem, colon, tag = name.lower().partition(":")
    if _NAMED.fullmatch(stem) is None or (colon and _QUANT.fullmatch(tag) is None):
        raise BadInput(
            f"'{shown(text, 120)}' is not a pair's name; 'edgespec pairs' lists those there are."
        )
    return Named(name.lower())


def is_gguf(name: str) -> bool:
    """Whether a file's name says that it is a GGUF file."""
    return name.lower().endswith(".gguf")


def is_sidecar(name: str) -> bool:
    """Whether a file belongs to a model instead of being one: projectors, heads, statistics."""
    return _SIDECAR.match(PurePosixPath(name).name) is not None or "mmproj" in name.lower()


def format_of(files: Iterable[Entry]) -> Format | None:
    """The format of the model in a repository or a folder; None if there is none."""
    names = [file.name for file in files]
    if any(is_gguf(name) and not is_sidecar(name) for name in names):
        return "gguf"
    weights = any(name.endswith(".safetensors") and "/" not in name for name in names)
    return "mlx" if weights and "config.json" in names else None


def choose(files: Sequence[File], quant: str = "") -> tuple[File, ...]:
    """The files of one model, the first part first.

    quant: or a file's name without its ending; "" = Q4_K_M, else Q8_0, else the first GGUF; without
    any GGUF, an MLX model whole.
    Raises: NotFound naming what there is.
    """
    models = sorted(
        (f for f in files if is_gguf(f.name) and not is_sidecar(f.name)),
        key=lambda file: file.name,
    )
    if not models:
        return _whole_mlx(files, quant)
    for wanted in (quant,) if quant else _USUAL:
        matching = [file for file in models if _has_quant(file.name, wanted)]
        if matching:
            in_full = (file for file in matching if PurePosixPath(file.name).stem == wanted)
            return _all_parts(next(in_full, matching[0]), files)
    if quant:
        known = ", ".join(sorted({quant_of(file.name) or file.name for file in models}))
        raise NotFound(f"There is no quantisation '{shown(quant, 60)}'; there are {shown(known)}.")
    return _all_parts(models[0], files)


def files_of(source: Source, files: Sequence[File]) -> tuple[File, ...]:
    """The files that an entry of the catalogue means. Raises: NotFound."""
    return _by_file(files, source.file) if source.file else choose(files, source.quant)


def _by_file(files: Sequence[File], name: str) -> tuple[File, ...]:
    first = next((file for file in files if file.name == name), None)
    if first is None:
        raise NotFound(f"The file '{shown(name, 120)}' is not there any more.")
    return _all_parts(first, files)


def quant_of(name: str) -> str:
    """The quantisation that a GGUF file's name tells, in capitals; empty if it tells none."""
    stem = re.sub(r"(-\d{5}-of-\d{5})?\.gguf$", "", PurePosixPath(name).name, flags=re.IGNORECASE)
    found = re.search(
        r"(?<![A-Za-z0-9])((UD-)?I?Q\d[A-Z0-9_]*|T?Q\d_\d|BF16|F16|F32|MXFP4(_MOE)?)$",
        stem.upper(),
    )
    return found[1] if found else ""


def _has_quant(name: str, quant: str) -> bool:
    # as llama.cpp matches: the tag, then a dot or a dash; but not from the middle of a word
    pattern = rf"(?<![A-Za-z0-9]){re.escape(quant)}[.-]"
    return re.search(pattern, PurePosixPath(name).name, re.IGNORECASE) is not None


def _all_parts(file: File, files: Sequence[File]) -> tuple[File, ...]:
    path = Path(file.name)
    wanted = [part.as_posix() for part in parts_of(path)]
    known = {file.name: file for file in files}
    missing = [name for name in wanted if name not in known]
    if missing:
        raise NotFound(
            f"'{shown(file.name, 120)}' is one of {len(wanted)} parts, and"
            f" '{shown(missing[0], 120)}' is missing; choose another quantisation."
        )
    return tuple(known[name] for name in wanted)


def _whole_mlx(files: Sequence[File], quant: str) -> tuple[File, ...]:
    if format_of(files) != "mlx":
        raise NotFound(
            "There is no model that edgespec can run: no GGUF file, and no config.json beside"
            " safetensors files."
        )
    if quant:
        raise NotFound(
            f"There is no quantisation '{shown(quant, 60)}': an MLX repository is one model;"
            " leave the part behind ':' out."
        )
    kept = [
        file
        for file in files
        if "/" not in file.name and file.name.endswith((".safetensors", *_MLX_BESIDE))
    ]
    return tuple(sorted(kept, key=lambda file: file.name))
