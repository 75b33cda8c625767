"""The pairs that edgespec knows by name: which files of which repositories go together."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from edgespec.errors import EdgespecError
from edgespec.models.shown import shown

Format = Literal["gguf", "mlx"]
FORMATS: Final[tuple[Format, ...]] = ("gguf", "mlx")
NAME: Final = re.compile(r"[a-z0-9][a-z0-9.]*(-[a-z0-9.]+)*")
_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_QUANT: Final = re.compile(r"[A-Z0-9][A-Z0-9_-]*")
_PAIR_KEYS: Final = {"name", "title", "about", "licence", "context", "base", *FORMATS}
_BUILD_KEYS: Final = {"target", "draft", "evidence", "verified"}
_SOURCE_KEYS: Final = {"repo", "file", "quant", "revision", "size", "stated_gb"}


def is_repo(text: str) -> bool:
    """Whether a repository can be called so: `user/name`, as the hub allows it."""
    return _REPO.fullmatch(text) is not None and ".." not in text and "--" not in text


@dataclass(frozen=True, slots=True)
class Source:
    """One model on the hub.

    file: its file, the first part of a split one; empty where `quant` picks it, or where the
    whole repository is the model (MLX). revision: the commit that was checked; empty until then.
    size: bytes on the hub, None until checked. stated_gb: what the evidence says, in 10**9 bytes.
    """

    repo: str
    file: str = ""
    quant: str = ""
    revision: str = ""
    size: int | None = None
    stated_gb: float | None = None

    @property
    def bytes(self) -> int | None:
        """The size as checked, else as stated; None where nobody says."""
        if self.size is not None or self.stated_gb is None:
            return self.size
        return round(self.stated_gb * 1e9)

    @property
    def label(self) -> str:
        """The repository and what of it, as a name that can be typed."""
        return f"{self.repo}:{self.quant}" if self.quant else self.repo


@dataclass(frozen=True, slots=True)
class Build:
    """A pair in one file format.

    draft: None = the n-gram index drafts. evidence: addresses that name these repositories.
    verified: scripts/check_pairs.py has seen files, sizes and vocabularies on the hub.
    """

    format: Format
    target: Source
    draft: Source | None
    evidence: tuple[str, ...]
    verified: bool = False

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def bytes(self) -> int | None:
        """Of all files; None where one is not known."""
        sizes = [source.bytes for source in self.sources]
        return None if None in sizes else sum(size for size in sizes if size)


@dataclass(frozen=True, slots=True)
class Entry:
    """One pair of the catalogue. licence, context: None where the evidence does not say.

    context: tokens that the target was trained on. base: whether it only goes on with texts.
    """

    name: str
    title: str
    about: str
    builds: tuple[Build, ...]
    licence: str | None = None
    context: int | None = None
    base: bool = False

    def build(self, *formats: Format) -> Build | None:
        """The build in the first of these formats that there is one for."""
        known = {build.format: build for build in self.builds}
        return next((known[wanted] for wanted in formats if wanted in known), None)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All known pairs, roughly from small to large."""

    entries: tuple[Entry, ...]

    def find(self, name: str) -> Entry | None:
        """The entry of this name; upper and lower case are the same."""
        wanted = name.casefold()
        return next((entry for entry in self.entries if entry.name == wanted), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(entry.name for entry in self.entries)


@cache
def catalogue() -> Catalogue:
    """The catalogue that this version ships."""
    return read_catalogue(files("edgespec.models").joinpath("pairs.toml").read_text("utf-8"))


def read_catalogue(text: str) -> Catalogue:
    """A catalogue from TOML. Raises: EdgespecError naming the entry and what is wrong with it."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise EdgespecError(f"The catalogue of pairs is not valid TOML: {error}.") from error
    entries = tuple(_entry(table) for table in found.get("pair", ()))
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise _wrong(name, "the name comes twice")
    return Catalogue(entries)


def _entry(table: Mapping[str, Any]) -> Entry:
    name = table.get("name")
    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise _wrong(str(name), "its name is not made of small letters, digits, dots and dashes")
    _only(name, table, _PAIR_KEYS)
    builds = tuple(_build(name, kind, table[kind]) for kind in FORMATS if kind in table)
    if not builds:
        raise _wrong(name, "it has neither a gguf nor an mlx table")
    context = table.get("context")
    if context is not None and (type(context) is not int or context < 1):
        raise _wrong(name, "its context is not a number of tokens")
    base = table.get("base", False)
    if type(base) is not bool:
        raise _wrong(name, "its base is neither true nor false")
    return Entry(
        name,
        _text(name, table, "title"),
        _text(name, table, "about"),
        builds,
        _text(name, table, "licence") if "licence" in table else None,
        context,
        base,
    )


def _build(name: str, kind: Format, table: Mapping[str, Any]) -> Build:
    _only(name, table, _BUILD_KEYS)
    target = _source(name, kind, table.get("target"))
    draft = _source(name, kind, table["draft"]) if "draft" in table else None
    verified = table.get("verified")
    if type(verified) is not bool:
        raise _wrong(name, f"its {kind} table does not say whether it is verified")
    build = Build(kind, target, draft, _evidence(name, table), verified)
    if verified and not all(source.revision and source.size for source in build.sources):
        raise _wrong(name, f"its {kind} table is verified but lacks a revision or a size")
    return build


def _source(name: str, kind: Format, table: object) -> Source:
    if not isinstance(table, dict):
        raise _wrong(name, f"its {kind} table lacks a target, or one that is a table")
    _only(name, table, _SOURCE_KEYS)
    source = Source(**table)
    if not isinstance(source.repo, str) or not is_repo(source.repo):
        raise _wrong(name, f"'{shown(source.repo, 80)}' is not a repository")
    for given, pattern in ((source.revision, COMMIT), (source.quant, _QUANT)):
        if not isinstance(given, str) or (given and pattern.fullmatch(given) is None):
            raise _wrong(name, f"'{shown(given, 80)}' is not a revision or a quantisation")
    numbers = (source.size, source.stated_gb)
    if any(n is not None and (type(n) not in (int, float) or n <= 0) for n in numbers):
        raise _wrong(name, "a size is not a number above 0")
    if kind == "gguf" and bool(source.file) == bool(source.quant):
        raise _wrong(name, f"{source.repo} needs either a file or a quant")
    if kind == "gguf" and source.file and not source.file.endswith(".gguf"):
        raise _wrong(name, f"'{shown(source.file, 80)}' is not a GGUF file")
    return source


def _evidence(name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    found = table.get("evidence")
    if not isinstance(found, list) or not found:
        raise _wrong(name, "its evidence is missing")
    if not all(isinstance(url, str) and url.startswith("https://") for url in found):
        raise _wrong(name, "its evidence is not a list of addresses")
    return tuple(found)


def _text(name: str, table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _wrong(name, f"its {key} is missing")
    return value


def _only(name: str, table: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise _wrong(name, f"nobody knows its key '{shown(unknown[0], 40)}'")


def _wrong(name: str, what: str) -> EdgespecError:
    return EdgespecError(
        f"The catalogue's entry '{shown(name, 80)}' cannot be used: {what}; install edgespec again."
    )
