"""What the user may ask the chat for, as plain data: a closed union."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Literal

from edgespec.models.shown import shown
from edgespec.options import AnswerOptions, Speculation
from edgespec.tui.settable import Value, changed


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
    """path: ends in one of ENDINGS; "" = a name made of the title and the day."""

    path: str


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
    """proposer: None = as it is, or auto where that is off. draft_tokens: None = what pays."""

    proposer: str | None
    draft_tokens: int | None

    def applied(self, now: Speculation) -> Speculation:
        as_it_is = "auto" if now.proposer == "none" and self.draft_tokens else now.proposer
        proposer = as_it_is if self.proposer is None else self.proposer
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
            f"there is no command /{shown(self.name, 40)}{guess} // begins a message with a slash"
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


COMMANDS = (
    CommandHelp("set", "NAME VALUE", "a sampling setting, shown or changed", Takes.SETTING),
    CommandHelp("system", "TEXT", "the system prompt; - has none", Takes.TEXT),
    CommandHelp("file", "PATH", "attach a text file; - takes the last one back", Takes.FILE),
    CommandHelp("spec", "WAY|N", "guess: auto|off|ngram|draft|tree|recycling", Takes.SPECULATION),
    CommandHelp("model", "NAME", "another model", Takes.MODEL),
    CommandHelp("new", "", "a new conversation", Takes.NOTHING),
    CommandHelp("regenerate", "", "another answer to the last message", Takes.NOTHING),
    CommandHelp("continue", "", "go on with an answer that was cut off", Takes.NOTHING),
    CommandHelp("replay", "", "the last answer without speculation, compared", Takes.NOTHING),
    CommandHelp("edit", "[N]", "change your last message, or the N-th from the end", Takes.NUMBER),
    CommandHelp("branch", "next|previous|N", "another branch of the conversation", Takes.BRANCH),
    CommandHelp("copy", "[N]", "copy the answer, or its code block N", Takes.NUMBER),
    CommandHelp("export", "[PATH.md|.json]", "write the conversation to a file", Takes.EXPORT),
    CommandHelp("search", "TEXT", "find a conversation", Takes.TEXT),
    CommandHelp("rename", "TITLE", "give this conversation a title", Takes.TEXT),
    CommandHelp("delete", "", "delete this conversation", Takes.NOTHING),
    CommandHelp("show", "", "show mode: draft even where it costs", Takes.NOTHING),
    CommandHelp("help", "", "keys, commands and marks", Takes.NOTHING),
    CommandHelp("quit", "", "leave", Takes.NOTHING),
)
