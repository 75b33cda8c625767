"""Lines that begin with a slash, read.

`parse` takes any text and never raises: a message, a command, or a reason why it is neither.
A message that itself begins with a slash is written with two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import PurePath

from edgespec.errors import BadInput
from edgespec.history.export import ENDINGS
from edgespec.models.shown import shown
from edgespec.options import Speculation
from edgespec.tui.commands import (
    Attach,
    Branch,
    ChangeSetting,
    ChangeSpeculation,
    Command,
    Continue,
    Copy,
    Delete,
    Detach,
    Edit,
    Export,
    Help,
    NewChat,
    Parsed,
    Quit,
    Regenerate,
    Rename,
    Replay,
    Say,
    Search,
    SetSystem,
    ShowMode,
    ShowSetting,
    ShowSpeculation,
    SwitchModel,
    Unknown,
    Wrong,
)
from edgespec.tui.settable import checked

# what is written, the proposer it names, and its help
SPECULATION_WORDS = {
    "auto": ("auto", "what pays, measured while it runs"),
    "off": ("none", "plain decoding"),
    "ngram": ("ngram", "guesses from the text so far"),
    "draft": ("draft", "guesses from the draft model"),
    "tree": ("tree", "several guesses for the same place"),
    "recycling": ("recycling", "guesses from what the model thought likely before"),
}


def parse(text: str) -> Parsed:
    """What the text asks for."""
    if not text.startswith("/"):
        return Say(text)
    if text.startswith("//"):
        return Say(text[1:])
    written, rest = split(text)
    name = _ALIASES.get(written, written)
    read = _READERS.get(name)
    if read is None:
        near = get_close_matches(name, _READERS, n=1)
        return Unknown(name, near[0] if near else None)
    try:
        return read(rest)
    except BadInput as error:
        return Wrong(name, str(error))


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
    words = rest.replace("=", " ", 1).split(None, 1)
    if not words:
        return ShowSetting(None)
    name = words[0].lower().replace("-", "_")
    written = words[1].strip() if len(words) > 1 else ""
    value = checked(name, written or "default")
    return ChangeSetting(name, value) if written else ShowSetting(name)


def _file(rest: str) -> Command:
    if not rest:
        raise BadInput("name a text file; /file - takes the last one back")
    return Detach() if rest == "-" else Attach(unquoted(rest))


def _export(rest: str) -> Command:
    path = unquoted(rest)
    if path and PurePath(path).suffix.lower() not in ENDINGS:
        raise BadInput(f"name a file that ends in {' or '.join(ENDINGS)}")
    return Export(path)


def _model(rest: str) -> Command:
    return SwitchModel(rest or None)


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


_READERS: Mapping[str, Callable[[str], Command]] = {
    "set": _set,
    "system": _system,
    "file": _file,
    "spec": _spec,
    "model": _model,
    "new": _bare(NewChat()),
    "regenerate": _bare(Regenerate()),
    "continue": _bare(Continue()),
    "replay": _bare(Replay()),
    "edit": _edit,
    "branch": _branch,
    "copy": _copy,
    "export": _export,
    "search": Search,
    "rename": _rename,
    "delete": _bare(Delete()),
    "show": _bare(ShowMode()),
    "help": _bare(Help()),
    "quit": _bare(Quit()),
}
_ALIASES = {"exit": "quit", "q": "quit", "?": "help", "regen": "regenerate"}
