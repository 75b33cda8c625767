"""What a benchmark asks: the prompts that come with edgespec, or a file of the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO

from edgespec.errors import BadInput, EdgespecError, NotFound
from edgespec.models.shown import shown

CATEGORIES = ("chat", "code", "edit", "summary", "json", "creative", "voice")
UNNAMED = "other"  # the category of a line that names none

_LONGEST_LINE = 1 << 20
_LINE_FORM = 'give one object a line, such as {"id": "a", "category": "chat", "turns": ["Hi"]}'


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a user says, one text for each turn. id: distinct in its file."""

    id: str
    category: str
    turns: tuple[str, ...]


def shipped(categories: Sequence[str] = ()) -> tuple[Prompt, ...]:
    """The prompts that come with edgespec, of these categories or of all.

    Raises: BadInput for a category that there is not.
    """
    for category in categories:
        if category not in CATEGORIES:
            raise BadInput(
                f"There is no category '{shown(category)}'; there are: {', '.join(CATEGORIES)}."
            )
    prompts: list[Prompt] = []
    folder = resources.files("edgespec.bench") / "prompts"
    for category in CATEGORIES:
        if category in categories or not categories:
            with (folder / f"{category}.jsonl").open("rb") as file:
                prompts += _distinct(_prompts(file, category), f"{category}.jsonl", _unheard)
    return tuple(prompts)


def _unheard(note: str) -> None:
    """For who does not ask for notes."""


def read(path: Path, note: Callable[[str], object] = _unheard) -> tuple[Prompt, ...]:
    """The distinct prompts of a file of JSON lines, in its order.

    A line holds `turns`, a list of texts, or `prompt`, one text; `id` or `question_id` and
    `category` may be there. So Spec-Bench's and EAGLE's question.jsonl can be read as they are.
    note: is told in a line how many repeated prompts were left out.
    Raises: NotFound, BadInput with the line that cannot be read, EdgespecError.
    """
    name = shown(path)
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise NotFound(f"There is no file {name}; give a file of prompts.") from error
    except IsADirectoryError as error:
        raise BadInput(f"{name} is a folder; give a file of prompts.") from error
    except OSError as error:
        raise _unreadable(name, error) from error
    with file:
        try:
            prompts = _distinct(_prompts(file, name), name, note)
        except OSError as error:
            raise _unreadable(name, error) from error
    if not prompts:
        raise BadInput(f"{name} holds no prompt; {_LINE_FORM}.")
    return prompts


def _unreadable(name: str, error: OSError) -> EdgespecError:
    reason = shown(error.strerror or error)
    return EdgespecError(f"{name} cannot be read ({reason}); give a file of prompts.")


def _distinct(
    found: Iterator[tuple[str, Prompt]], name: str, note: Callable[[str], object]
) -> tuple[Prompt, ...]:
    """Each prompt once: what answers a prompt for the second time is helped by the first."""
    kept: dict[tuple[str, ...], Prompt] = {}
    ids: set[str] = set()
    repeated = 0
    for where, prompt in found:
        if prompt.turns in kept:
            repeated += 1
            continue
        if prompt.id in ids:
            raise BadInput(f"{where}: the id '{prompt.id}' is taken; give each prompt its own.")
        ids.add(prompt.id)
        kept[prompt.turns] = prompt
    if repeated:
        note(f"{name}: {repeated} repeated prompt{'s' * (repeated > 1)} left out")
    return tuple(kept.values())


def _prompts(file: IO[bytes], name: str) -> Iterator[tuple[str, Prompt]]:
    """Every prompt and the place it stands at, for messages."""
    number = 0
    while line := file.readline(_LONGEST_LINE + 1):
        number += 1
        where = f"{name}, line {number}"
        if len(line) > _LONGEST_LINE:
            raise BadInput(f"{where}: longer than 1 MiB; {_LINE_FORM}.")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            raise BadInput(f"{where}: not UTF-8; save the file as UTF-8.") from error
        if text:
            yield where, _prompt(text, where, f"line-{number}")


def _prompt(text: str, where: str, unnamed: str) -> Prompt:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: not JSON; {_LINE_FORM}.") from error
    if not isinstance(line, dict):
        raise BadInput(f"{where}: not an object; {_LINE_FORM}.")
    turns = line["turns"] if "turns" in line else [line[key] for key in ("prompt",) if key in line]
    if not isinstance(turns, list) or not turns:
        raise BadInput(f"{where}: no turns; {_LINE_FORM}.")
    for turn in turns:
        _check_turn(turn, where)
    name, category = _label(line, "id", "question_id"), _label(line, "category")
    return Prompt(name or unnamed, category or UNNAMED, tuple(turns))


def _check_turn(turn: object, where: str) -> None:
    if not isinstance(turn, str):
        raise BadInput(f"{where}: a turn that is not text; {_LINE_FORM}.")
    if not turn.strip():
        raise BadInput(f"{where}: an empty turn; say something for the model to answer.")
    try:
        turn.encode()
    except UnicodeEncodeError as error:
        raise BadInput(f"{where}: a turn that is no valid Unicode; write it anew.") from error


def _label(line: dict[str, object], *keys: str) -> str:
    """The first of these that is a text or a number, fit for a table."""
    found = (line[key] for key in keys if isinstance(line.get(key), str | int))
    return shown(next(found, ""), most=60).strip()
