"""What a line that begins with a slash asks for, as plain data.

`parse` takes any text and never raises: a message, a command, or a reason why it is neither.
A message that itself begins with a slash is written with two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum, auto
from pathlib import PurePath
from typing import Literal

from edgespec.errors import BadInput
from edgespec.models.shown import shown
from edgespec.options import AnswerOptions, Speculation
from edgespec.tui.settable import Value, changed, checked

EXPORTS = (".md", ".json")
# what is written, the proposer it names, and its help
SPECULATION_WORDS = {
    "auto": ("auto", "what pays, measured while it runs"),
    "off": ("none", "plain decoding"),
    "ngram": ("ngram", "guesses from the text so far"),
    "draft": ("draft", "guesses from the draft model"),
}


@dataclass(frozen=True, slots=True)
class Say:
    """Not a command: a message for the model."""

    text: str


@dataclass(frozen=True, slots=True)
class SetSystem:
    """text: None = show the system prompt, "" = have none."""

    text: str | None


@dataclass(frozen=True, slots=True)
class ShowSetting:
    """name: None = all settings."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ChangeSetting:
    """value: None = what the model or the project takes by default."""

    name: str
    value: Value | None

    def applied(self, options: AnswerOptions) -> AnswerOptions:
        return changed(options, self.name, self.value)


@dataclass(frozen=True, slots=True)
class Attach:
    """path: as it was written, `~` included."""

    path: str


@dataclass(frozen=True, slots=True)
class Detach:
    """Take the document back that was attached last."""


@dataclass(frozen=True, slots=True)
class Export:
    """path: ends in one of EXPORTS."""

    path: str

    @property
    def as_json(self) -> bool:
        return self.path.lower().endswith(".json")


@dataclass(frozen=True, slots=True)
class NewChat:
    pass


@dataclass(frozen=True, slots=True)
class SwitchModel:
    """name: None = choose from the list."""

    name: str | None


@dataclass(frozen=True, slots=True)
class ShowSpeculation:
    pass


@dataclass(frozen=True, slots=True)
class ChangeSpeculation:
    """proposer: None = as it is. draft_tokens: None = what pays."""

    proposer: str | None
    draft_tokens: int | None

    def applied(self, now: Speculation) -> Speculation:
        proposer = now.proposer if self.proposer is None else self.proposer
        return replace(now, proposer=proposer, draft_tokens=self.draft_tokens)


@dataclass(frozen=True, slots=True)
class Help:
    pass


@dataclass(frozen=True, slots=True)
class Copy:
    """block: number of a code block of the last answer, from 1; None = the whole answer."""

    block: int | None


@dataclass(frozen=True, slots=True)
class Edit:
    """back: 1 = the user's last message, 2 = the one before it."""

    back: int


@dataclass(frozen=True, slots=True)
class Regenerate:
    pass


@dataclass(frozen=True, slots=True)
class Continue:
    pass


@dataclass(frozen=True, slots=True)
class Branch:
    """to: a neighbour, or the number of a branch from 1."""

    to: Literal["next", "previous"] | int


@dataclass(frozen=True, slots=True)
class Search:
    """text: "" = the list of all conversations."""

    text: str


@dataclass(frozen=True, slots=True)
class Rename:
    title: str


@dataclass(frozen=True, slots=True)
class Delete:
    """The conversation that is open; the app asks before it does so."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The last answer once more, without speculation."""


@dataclass(frozen=True, slots=True)
class ShowMode:
    """Show mode on or off, whichever it is not."""


@dataclass(frozen=True, slots=True)
class Quit:
    pass


Command = (
    SetSystem | ShowSetting | ChangeSetting | Attach | Detach | Export | NewChat | SwitchModel
    | ShowSpeculation | ChangeSpeculation | Help | Copy | Edit | Regenerate | Continue | Branch
    | Search | Rename | Delete | Replay | ShowMode | Quit
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Unknown:
    """No command has this name. nearest: the one that is meant, perhaps."""

    name: str
    nearest: str | None

    @property
    def reason(self) -> str:
        """One line, fit to be shown."""
        guess = f"; did you mean /{self.nearest}?" if self.nearest else ";"
        return (
            f"there is no command /{shown(self.name, 40)}{guess}"
            " // begins a message with a slash"
        )


@dataclass(frozen=True, slots=True)
class Wrong:
    """A command with something it cannot take. reason: one line, fit to be shown."""

    name: str
    reason: str


Parsed = Say | Command | Unknown | Wrong


class Takes(Enum):
    """What stands behind a command's name; completion offers values by it."""

    NOTHING = auto()
    TEXT = auto()
    NUMBER = auto()
    FILE = auto()
    EXPORT = auto()
    SETTING = auto()
    MODEL = auto()
    SPECULATION = auto()
    BRANCH = auto()


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """One row of the help. usage: what stands behind the name."""

    name: str
    usage: str
    help: str
    takes: Takes


@dataclass(frozen=True, slots=True)
class _Entry:
    about: CommandHelp
    read: Callable[[str], Command]


def parse(text: str) -> Parsed:
    """What the text asks for."""
    if not text.startswith("/"):
        return Say(text)
    if text.startswith("//"):
        return Say(text[1:])
    name, rest = split(text)
    entry = _ENTRIES.get(_ALIASES.get(name, name))
    if entry is None:
        near = get_close_matches(name, _ENTRIES, n=1)
        return Unknown(name, near[0] if near else None)
    try:
        return entry.read(rest)
    except BadInput as error:
        return Wrong(entry.about.name, str(error))


def as_message(text: str) -> str:
    """What has to be written so that `text` is sent as it is."""
    return f"/{text}" if text.startswith("/") else text


def split(text: str) -> tuple[str, str]:
    """The name behind the slash, in small letters, and the rest without the blanks around it."""
    words = text[1:].split(None, 1) if not text[1:2].isspace() else ["", text[1:]]
    name = words[0].lower() if words else ""
    return name, words[1].strip() if len(words) > 1 else ""


def quoted(path: str) -> str:
    """The path as it can be written behind a command, whatever it holds."""
    plain = path == path.strip() and path[:1] not in {"'", '"'} and path not in {"", "-"}
    return path if plain else f"'{path}'"


def unquoted(rest: str) -> str:
    """The path that was written, quotes around it taken off."""
    if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in {"'", '"'}:
        return rest[1:-1]
    return rest


def _bare(command: Command) -> Callable[[str], Command]:
    def read(rest: str) -> Command:
        if rest:
            raise BadInput(f"nothing stands behind it, but there is '{shown(rest, 40)}'")
        return command

    return read


def _system(rest: str) -> Command:
    if not rest:
        return SetSystem(None)
    return SetSystem("" if rest == "-" else rest)


def _set(rest: str) -> Command:
    name, _, written = rest.partition(" ")
    if not name:
        return ShowSetting(None)
    name = name.lower().replace("-", "_")
    written = written.strip().lstrip("= ").strip()
    value = checked(name, written or "default")
    return ChangeSetting(name, value) if written else ShowSetting(name)


def _file(rest: str) -> Command:
    if not rest:
        raise BadInput("name a text file; /file - takes the last one back")
    return Detach() if rest == "-" else Attach(unquoted(rest))


def _export(rest: str) -> Command:
    path = unquoted(rest)
    if PurePath(path).suffix.lower() not in EXPORTS:
        raise BadInput(f"name a file that ends in {' or '.join(EXPORTS)}")
    return Export(path)


def _spec(rest: str) -> Command:
    words = rest.lower().split()
    if not words:
        return ShowSpeculation()
    proposer, _ = SPECULATION_WORDS.get(words[0], (None, ""))
    lengths = words[1:] if proposer is not None else words
    if len(lengths) > 1 or not all(length.isdecimal() for length in lengths):
        known = ", ".join(SPECULATION_WORDS)
        raise BadInput(f"give one of {known}, and perhaps the number of tokens to guess")
    wanted = ChangeSpeculation(proposer, _whole(lengths[0]) if lengths else None)
    wanted.applied(Speculation())  # raises for a length that is not allowed
    return wanted


def _copy(rest: str) -> Command:
    return Copy(_number(rest, "the number of a code block") if rest else None)


def _edit(rest: str) -> Command:
    return Edit(_number(rest, "1 for the last message, 2 for the one before") if rest else 1)


def _branch(rest: str) -> Command:
    match rest.lower():
        case "next" | "":
            return Branch("next")
        case "previous" | "prev":
            return Branch("previous")
        case _:
            return Branch(_number(rest, "next, previous or a number from 1"))


def _rename(rest: str) -> Command:
    if not rest:
        raise BadInput("give a title")
    return Rename(" ".join(rest.split()))


def _number(rest: str, wanted: str) -> int:
    if not rest.isdecimal() or _whole(rest) < 1:
        raise BadInput(f"'{shown(rest, 40)}' does not fit; give {wanted}")
    return _whole(rest)


def _whole(digits: str) -> int:
    # more digits than any number here needs; int() refuses very many of them
    return int(digits[:19])


def _entry(
    name: str, usage: str, help_text: str, takes: Takes, read: Callable[[str], Command]
) -> _Entry:
    return _Entry(CommandHelp(name, usage, help_text, takes), read)


def _plain(name: str, help_text: str, command: Command) -> _Entry:
    return _entry(name, "", help_text, Takes.NOTHING, _bare(command))


_ENTRIES = {
    entry.about.name: entry
    for entry in (
        _entry("set", "NAME VALUE", "a sampling setting, shown or changed", Takes.SETTING, _set),
        _entry("system", "TEXT", "the system prompt, shown or changed; - has none", Takes.TEXT,
               _system),
        _entry("file", "PATH", "attach a text file; - takes the last one back", Takes.FILE, _file),
        _entry("spec", "auto|off|ngram|draft|N", "how answers are guessed at", Takes.SPECULATION,
               _spec),
        _entry("model", "NAME", "another model", Takes.MODEL, lambda rest: SwitchModel(rest or None)),
        _plain("new", "a new conversation", NewChat()),
        _plain("regenerate", "another answer to the last message", Regenerate()),
        _plain("continue", "go on with an answer that was cut off", Continue()),
        _plain("replay", "the last answer without speculation, compared", Replay()),
        _entry("edit", "[N]", "change your last message, or the N-th from the end", Takes.NUMBER,
               _edit),
        _entry("branch", "next|previous|N", "another branch of the conversation", Takes.BRANCH,
               _branch),
        _entry("copy", "[N]", "copy the answer, or its code block N", Takes.NUMBER, _copy),
        _entry("export", "PATH.md|.json", "write the conversation to a file", Takes.EXPORT,
               _export),
        _entry("search", "TEXT", "find a conversation", Takes.TEXT, lambda rest: Search(rest)),
        _entry("rename", "TITLE", "give this conversation a title", Takes.TEXT, _rename),
        _plain("delete", "delete this conversation", Delete()),
        _plain("show", "show mode: draft even where it costs", ShowMode()),
        _plain("help", "keys, commands and marks", Help()),
        _plain("quit", "leave", Quit()),
    )
}  # fmt: skip
_ALIASES = {"exit": "quit", "q": "quit", "?": "help", "regen": "regenerate"}

COMMANDS: tuple[CommandHelp, ...] = tuple(entry.about for entry in _ENTRIES.values())
