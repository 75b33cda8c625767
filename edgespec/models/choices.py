"""Which way of guessing was found best for a target on this machine.

One small JSON file a target, named by its fingerprint, in the user's data folder. A file that
is damaged counts as none.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from edgespec.errors import BadInput, EdgespecError
from edgespec.models.identity import fingerprint
from edgespec.models.installed import data_dir
from edgespec.models.pairs import Pair, resolve
from edgespec.models.shown import shown
from edgespec.models.store import write_atomically

PROPOSERS: Final = ("auto", "none", "ngram", "draft", "recycling", "tree")
WITHOUT_DRAFT_MODEL: Final = ("none", "ngram", "recycling")  # of these
_MOST_TOKENS: Final = 64
_LONGEST_S: Final = 1e9
_MOST_BYTES: Final = 1 << 20
_MADE_ELSEWHERE: Final = (
    "it is not known to hold for this device and this build of the backend; 'edgespec tune' chooses"
    " anew"
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to guess with.

    target: the file's name, for people. draft: a model file; None = no draft model. proposer,
    draft_tokens: as in Speculation. chosen_at: ISO date and time. basis: what it was chosen on, in
    words. seconds, plain_seconds: what the answers of the basis take with it and without guesses.
    made_on: which processor, devices and build of a backend it holds for; "" = not known.
    """

    target: str
    draft: Path | None
    proposer: str
    draft_tokens: int | None
    chosen_at: str
    basis: str
    seconds: float
    plain_seconds: float
    made_on: str = ""

    @property
    def words(self) -> str:
        """The choice in a few words."""
        length = f", always {self.draft_tokens} guesses" if self.draft_tokens else ""
        if self.draft is not None:
            return f"draft model {shown(self.draft.name, 80)}{length}"
        return f"{_WORDS[self.proposer]}{length}"


_WORDS: Final = {
    "auto": "n-gram alone",
    "ngram": "n-gram alone",
    "none": "plain decoding",
    "draft": "a draft model",
    "recycling": "recycling alone",
    "tree": "trees of n-grams and recycling",
}


def remember(target: Path, choice: Choice) -> None:
    """Keep a choice for this target, in place of an earlier one.

    Raises: as fingerprint(); EdgespecError where the disk refuses.
    """
    content = asdict(choice) | {"draft": None if choice.draft is None else str(choice.draft)}
    write_atomically(_file(target), json.dumps(content, indent=1).encode())


def check_room(target: Path) -> None:
    """Raises, before anything was measured, what remember() would raise afterwards."""
    probe = _folder() / f".{fingerprint(target)}.probe"
    write_atomically(probe, b"")
    probe.unlink(missing_ok=True)


def chosen_for(target: Path) -> Choice | None:
    """What was chosen for this target.

    Raises: as fingerprint(); EdgespecError where the choice that is kept is damaged.
    """
    return _read(_file(target))


def forget(target: Path) -> bool:
    """Remove what was chosen for this target; whether there was anything.

    Raises: as fingerprint(); EdgespecError where the disk refuses.
    """
    file = _file(target)
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        reason = shown(error.strerror or error)
        raise EdgespecError(
            f"{shown(file)} cannot be removed ({reason}); check its folder."
        ) from error
    return True


def all_choices() -> Iterator[Choice]:
    """Every choice that can be read."""
    try:
        files = sorted(_folder().glob("*.json"))
    except OSError:
        return
    for file in files:
        with contextlib.suppress(EdgespecError):
            if (choice := _read(file)) is not None:
                yield choice


def as_chosen(pair: Pair, here: Callable[[Path], str]) -> tuple[Pair, Choice | None]:
    """The pair with the draft model that was chosen for its target, and the choice.

    Without one, or where it cannot be used (any more), the pair as it is; a note in it says why.
    here: what a choice for a target has to be made on.
    """
    try:
        choice = chosen_for(pair.target)
        if choice is None:
            return pair, None
        if choice.made_on != here(pair.target):
            return not_used(pair, _MADE_ELSEWHERE), None
        if choice.draft is None:
            return replace(pair, draft=None), choice
        if os.path.isdir(choice.draft) and not os.path.isdir(pair.target):
            raise BadInput(f"{shown(choice.draft)} is a folder, not a draft model's file.")
        found = resolve(None, str(pair.target), str(choice.draft))
    except EdgespecError as error:
        return not_used(pair, error), None
    return replace(pair, draft=found.draft), choice


def not_used(pair: Pair, reason: EdgespecError | str) -> Pair:
    """The pair with a note of why the choice for its target is set aside."""
    note = f"what 'edgespec tune' chose is not used: {reason}"
    return replace(pair, notes=(*pair.notes, note))


def _folder() -> Path:
    return data_dir() / "choices"


def _file(target: Path) -> Path:
    return _folder() / f"{fingerprint(target)}.json"


def _read(file: Path) -> Choice | None:
    """Raises: EdgespecError for what is there and no choice."""
    try:
        if not file.is_file():  # a pipe would never end
            if os.path.lexists(file):
                raise ValueError("it is no file")
            return None
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError("it is far too long")
        return _from_json(json.loads(data))
    except OSError as error:
        raise _damaged(file, error.strerror or error) from error
    except KeyError as error:
        raise _damaged(file, f"it lacks {error}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise _damaged(file, error) from error


def _damaged(file: Path, reason: object) -> EdgespecError:
    return EdgespecError(
        f"{shown(file)} holds no choice ({shown(reason, 120)}); 'edgespec tune' makes it anew, and"
        " 'edgespec tune --forget' removes it."
    )


def _from_json(data: Mapping[str, Any]) -> Choice:
    """Raises KeyError, TypeError or ValueError for what is no choice."""
    data = {"made_on": ""} | dict(data)  # older choices do not tell
    draft, tokens = data["draft"], data["draft_tokens"]
    for name in ("target", "proposer", "chosen_at", "basis", "made_on"):
        if not isinstance(data[name], str):
            raise TypeError(f"{name} is no text")
    if data["proposer"] not in PROPOSERS:
        raise ValueError("there is no such proposer")
    if tokens is not None and not (type(tokens) is int and 1 <= tokens <= _MOST_TOKENS):
        raise ValueError("no number of guesses")
    for name in ("seconds", "plain_seconds"):
        if type(data[name]) not in (int, float) or not 0 <= data[name] < _LONGEST_S:
            raise ValueError(f"{name} is no time")
    if draft is None and data["proposer"] == "draft":
        raise ValueError("it names no draft model to guess with")
    if draft is not None and data["proposer"] in WITHOUT_DRAFT_MODEL:
        raise ValueError("it names a draft model that is not to guess")
    if draft is not None and (b"\0" in os.fsencode(draft) or not os.path.isabs(draft)):
        raise ValueError("its draft model is no file's whole path")
    datetime.fromisoformat(data["chosen_at"])
    return Choice(
        target=data["target"],
        draft=None if draft is None else Path(draft),
        proposer=data["proposer"],
        draft_tokens=tokens,
        chosen_at=data["chosen_at"],
        basis=data["basis"],
        seconds=float(data["seconds"]),
        plain_seconds=float(data["plain_seconds"]),
        made_on=data["made_on"],
    )
