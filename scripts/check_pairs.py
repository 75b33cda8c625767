"""Hold the catalogue against the hub: repositories, files, sizes, licences and vocabularies.

uv run python scripts/check_pairs.py [--write] [PAIR ...]

Of GGUF files only the headers are read, of MLX repositories the tokenizer. With --write, what was
seen goes into pairs.toml, revisions included. Ends with 1 where a pair did not pass.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import edgespec.models
from edgespec.errors import (
    BadInput,
    EdgespecError,
    IncompatiblePair,
    ModelFileError,
    NetworkError,
)
from edgespec.models.catalogue import Build, Catalogue, Entry, Source, read_catalogue
from edgespec.models.compat import check_vocabularies
from edgespec.models.fetch import fetch
from edgespec.models.hub import Hub, RemoteFile, Snapshot
from edgespec.models.names import files_of
from edgespec.models.peek import peek

FILE = Path(edgespec.models.__file__).with_name("pairs.toml")
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True)
class Seen:
    """One side of a pair as the hub has it."""

    source: Source
    snapshot: Snapshot
    files: tuple[RemoteFile, ...]


class Quiet:
    """A report of a fetch that tells nothing."""

    def resumes(self, file: RemoteFile, done: int) -> None: ...
    def progress(self, file: RemoteFile, done: int) -> None: ...
    def note(self, text: str) -> None: ...


def check(entry: Entry, hub: Hub) -> tuple[Entry, list[str]]:
    """The entry with what the hub has of it, and what was found out, a line for each build.

    Raises: NetworkError, since silence says nothing about a pair.
    """
    seen, builds, lines = entry, [], []
    for build in entry.builds:
        try:
            found, seen = check_build(seen, build, hub)
            lines.append(f"ok      {entry.name} {build.format}: {found.bytes} bytes")
        except NetworkError:
            raise
        except EdgespecError as error:
            found = replace(build, verified=False)
            lines.append(f"FAILED  {entry.name} {build.format}: {error}")
        builds.append(found)
    return replace(seen, builds=tuple(builds)), lines


def check_build(entry: Entry, build: Build, hub: Hub) -> tuple[Build, Entry]:
    """Raises: what the hub refuses, or IncompatiblePair."""
    target = look(build.target, hub)
    draft = look(build.draft, hub) if build.draft else None
    if build.format == "gguf":
        entry = _compare_headers(entry, target, draft, hub)
    else:
        _compare_tokenizers(target, draft, hub)
    entry = replace(entry, licence=target.snapshot.licence or entry.licence)
    seen = replace(
        build, target=target.source, draft=draft.source if draft else None, verified=True
    )
    return seen, entry


def look(source: Source, hub: Hub) -> Seen:
    """A source with its commit and size."""
    snapshot = hub.snapshot(source.repo, source.revision or None)
    files = files_of(source, snapshot.files)
    size = sum(file.size for file in files)
    pinned = replace(source, revision=snapshot.commit, size=size, stated_gb=None)
    return Seen(pinned, snapshot, files)


def _compare_headers(entry: Entry, target: Seen, draft: Seen | None, hub: Hub) -> Entry:
    header = peek(hub, target.snapshot, target.files, print)
    if draft is not None:
        check_vocabularies(header, peek(hub, draft.snapshot, draft.files, print))
    return replace(entry, context=header.context_length)


def _compare_tokenizers(target: Seen, draft: Seen | None, hub: Hub) -> None:
    theirs = _tokens(target, hub)
    ours = _tokens(draft, hub) if draft else {}
    for token in sorted(theirs.keys() & ours.keys()):
        if theirs[token] != ours[token]:
            raise IncompatiblePair(
                f"Id {token} is {theirs[token]!r} in the target but {ours[token]!r} in the draft."
            )


def _tokens(seen: Seen, hub: Hub) -> dict[int, str]:
    """The text of every id in tokenizer.json."""
    files = [file for file in seen.files if file.name == TOKENIZER]
    if not files:
        raise ModelFileError(f"{seen.source.repo} has no {TOKENIZER}.")
    (path,) = fetch(hub, seen.snapshot, files, Quiet())
    found = json.loads(path.read_bytes())
    try:
        tokens = {int(number): str(text) for text, number in found["model"]["vocab"].items()}
        tokens |= {int(added["id"]): str(added["content"]) for added in found["added_tokens"]}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path} is no tokenizer with a vocabulary by id.") from error
    return tokens


def rendered(entries: Sequence[Entry], before: str) -> str:
    """The catalogue as TOML, below the comment that `before` begins with."""
    comment = before[: before.index("[[pair]]")]
    text = comment + "\n".join("\n".join(_entry_lines(entry)) + "\n" for entry in entries)
    assert read_catalogue(text) == Catalogue(tuple(entries))
    return text


def _entry_lines(entry: Entry) -> Iterator[str]:
    yield "[[pair]]"
    for key in ("name", "title", "about", "licence", "context", "base"):
        if value := getattr(entry, key):
            yield f"{key} = {_value(value)}"
    for build in entry.builds:
        yield ""
        yield f"[pair.{build.format}]"
        yield f"target = {_table(build.target)}"
        if build.draft:
            yield f"draft = {_table(build.draft)}"
        yield "evidence = ["
        yield from (f"  {_value(url)}," for url in build.evidence)
        yield "]"
        yield f"verified = {_value(build.verified)}"


def _table(source: Source) -> str:
    known = ((field.name, getattr(source, field.name)) for field in fields(source))
    return "{ " + ", ".join(f"{key} = {_value(value)}" for key, value in known if value) + " }"


def _value(value: str | int | float | bool) -> str:
    # JSON's strings, numbers and truth values are TOML's
    return json.dumps(value, ensure_ascii=False)


def main(arguments: list[str], hub: Hub, file: Path = FILE) -> int:
    """Check the named pairs, or all; the exit code."""
    before = read_catalogue(file.read_text(encoding="utf-8"))
    wanted = {name for name in arguments if name != "--write"} or set(before.names)
    unknown = wanted - set(before.names)
    if unknown:
        print(f"The catalogue has no {', '.join(sorted(unknown))}.", file=sys.stderr)
        return BadInput.exit_code
    checked, lines = {}, []
    for name in (name for name in before.names if name in wanted):
        entry = before.find(name)
        assert entry is not None
        checked[name], told = check(entry, hub)
        print("\n".join(told), flush=True)
        lines += told
    if "--write" in arguments:
        after = [checked.get(entry.name, entry) for entry in before.entries]
        file.write_text(rendered(after, file.read_text(encoding="utf-8")), encoding="utf-8")
    return int(any(line.startswith("FAILED") for line in lines))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:], Hub.from_environment()))
    except EdgespecError as fault:
        print(fault, file=sys.stderr)
        sys.exit(fault.exit_code)
