"""What a command may go on with: names, settings, files, models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from edgespec.history.export import ENDINGS
from edgespec.models.shown import shown
from edgespec.options import AnswerOptions
from edgespec.tui.command_line import SPECULATION_WORDS, parse, quoted, split
from edgespec.tui.commands import (
    COMMANDS,
    Attach,
    CommandHelp,
    Say,
    SwitchModel,
    Takes,
    Unknown,
    Wrong,
)
from edgespec.tui.settable import DEFAULT, SETTINGS, in_words

_MOST_OFFERED = 200
_MOST_READ = 5000  # entries of one folder that are looked at
_COMMANDS = {command.name: command for command in COMMANDS}
_QUOTES = ("'", '"')


@dataclass(frozen=True, slots=True)
class Offer:
    """One way to go on. text: the whole line once it is taken. label, help: fit to be shown.

    final: whether the line is then complete, so that Enter may send it.
    """

    text: str
    label: str
    help: str = ""
    final: bool = True


@dataclass(frozen=True, slots=True)
class Sources:
    """Where values come from that only the app knows; called from any thread.

    models: names for /model. options: what is set now, shown beside the settings.
    """

    models: Callable[[], Sequence[str]] = tuple
    options: Callable[[], AnswerOptions] = AnswerOptions


@dataclass(frozen=True, slots=True)
class Offers:
    """All ways to go on, best first. stands: whether the text is complete without any of them."""

    all: tuple[Offer, ...] = ()
    stands: bool = True


def offers(text: str, sources: Sources) -> Offers:
    """What the text may go on with; nothing where it is no command.

    Looks into the folder that the text names, which may take a while.
    """
    if not text.startswith("/") or text.startswith("//") or "\n" in text:
        return Offers()
    name, _ = split(text)
    behind = text[1 + len(name) :]
    if not behind:
        found = _names(name)
    elif name in _COMMANDS:
        found = _arguments(_COMMANDS[name], behind.lstrip(), sources)
    else:
        return Offers()
    ways = (offer for offer in found if offer.text.rstrip() != text.rstrip())
    return Offers(tuple(islice(ways, _MOST_OFFERED)), _stands(text, sources))


def takes_while(text: str) -> bool:
    """Whether the offers for this text come from a folder, and so from a thread."""
    command = _COMMANDS.get(split(text)[0]) if text.startswith("/") else None
    return command is not None and command.takes in {Takes.FILE, Takes.EXPORT}


def _stands(text: str, sources: Sources) -> bool:
    match parse(text):
        case Attach(path):
            return _is_file(path)
        case SwitchModel(name):
            return name is None or name in sources.models()
        case Say() | Unknown() | Wrong():
            return False
        case _:
            return True


def _is_file(path: str) -> bool:
    try:
        return Path(path).expanduser().is_file()
    except (OSError, ValueError, RuntimeError):
        return False


def _names(prefix: str) -> Iterator[Offer]:
    for command in COMMANDS:
        if command.name.startswith(prefix):
            bare = command.takes is Takes.NOTHING
            text = f"/{command.name}" if bare else f"/{command.name} "
            label = f"/{command.name} {command.usage}".rstrip()
            yield Offer(text, label, command.help, final=bare)


def _arguments(command: CommandHelp, written: str, sources: Sources) -> Iterator[Offer]:
    line = f"/{command.name} "
    match command.takes:
        case Takes.FILE:
            found = _files(line, written)
        case Takes.EXPORT:
            found = _exports(line, written)
        case Takes.SETTING:
            found = _settings(line, written, sources.options())
        case Takes.MODEL:
            found = _models(line, written, sources.models())
        case Takes.SPECULATION:
            helps = {word: about for word, (_, about) in SPECULATION_WORDS.items()}
            found = _words(line, written, helps)
        case Takes.BRANCH:
            found = _words(line, written, {"next": "", "previous": ""})
        case Takes.NOTHING | Takes.TEXT | Takes.NUMBER:
            found = iter(())
    return found


def _words(line: str, written: str, helps: dict[str, str]) -> Iterator[Offer]:
    for word, about in helps.items():
        if word.startswith(written.lower()):
            yield Offer(line + word, word, about)


def _models(line: str, written: str, names: Sequence[str]) -> Iterator[Offer]:
    wanted = written.lower()
    for name in sorted(names, key=lambda name: not name.lower().startswith(wanted)):
        if wanted in name.lower() and name.isprintable():
            yield Offer(line + name, shown(name))


def _settings(line: str, written: str, options: AnswerOptions) -> Iterator[Offer]:
    name, space, value = written.partition(" ")
    if not space:
        for setting in SETTINGS.values():
            if setting.name.startswith(name.lower()):
                now = in_words(options, setting.name)
                yield Offer(f"{line}{setting.name} ", now, setting.help, final=False)
    elif name in SETTINGS:
        values = ("on", "off", DEFAULT) if SETTINGS[name].kind is bool else (DEFAULT,)
        for one in values:
            if one.startswith(value.strip().lower()):
                yield Offer(f"{line}{name} {one}", one)


def _files(line: str, written: str) -> Iterator[Offer]:
    quote = written[:1] if written[:1] in _QUOTES else ""
    folder, stem = os.path.split(written[len(quote) :])
    for name, is_folder in _entries(folder, stem):
        path = os.path.join(folder, name)
        if is_folder:
            yield Offer(f"{line}{_opened(quote, path)}{os.sep}", f"{name}{os.sep}", final=False)
        else:
            yield Offer(line + quoted(path), name)


def _exports(line: str, written: str) -> Iterator[Offer]:
    folder, stem = os.path.split(written)
    if not stem.lower().endswith(ENDINGS):
        for ending, about in zip(ENDINGS, ("to read", "with all figures"), strict=True):
            name = (stem or "conversation") + ending
            yield Offer(line + os.path.join(folder, name), name, about)
    for offer in _files(line, written):
        if not offer.final:
            yield offer


def _opened(quote: str, path: str) -> str:
    """A path that goes on; its quote is closed when it ends."""
    return f"'{path}" if not quote and path != path.lstrip() else quote + path


def _entries(folder: str, stem: str) -> list[tuple[str, bool]]:
    """Names in a folder that go on from `stem`, and which of them are folders; by name."""
    try:
        place = Path(folder or ".").expanduser()
        with os.scandir(place) as entries:
            found = [
                (entry.name, entry.is_dir())
                for entry in islice(entries, _MOST_READ)
                if _goes_on(entry.name, stem)
            ]
    except (OSError, ValueError, RuntimeError):
        return []  # a folder that cannot be read has nothing to offer; sending tells why
    return sorted(found, key=lambda entry: (not entry[1], entry[0].lower()))


def _goes_on(name: str, stem: str) -> bool:
    # a name with control characters cannot stand in the prompt
    hidden = name.startswith(".") and not stem.startswith(".")
    return name.isprintable() and not hidden and name.lower().startswith(stem.lower())
